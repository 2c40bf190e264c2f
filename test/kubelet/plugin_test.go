package kubelet_test

import (
	"context"
	"errors"
	"net"
	"os"
	"slices"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	deviceplugin "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"
)

// plugin is a device plug-in. The kubelet prefers its devices in order.
type plugin struct {
	deviceplugin.UnimplementedDevicePluginServer
	n        *node
	resource string
	endpoint string // name of its socket

	devices []device

	end func() // nil while it is stopped
}

// device is a device that a plug-in offers.
type device struct {
	id   string
	numa []int64
}

// devices returns devices without topology.
func devices(ids ...string) (list []device) {
	for _, id := range ids {
		list = append(list, device{id: id})
	}
	return list
}

// serve starts a plug-in for the resource and registers it.
func (n *node) serve(resource, endpoint string, devices ...device) *plugin {
	n.t.Helper()
	p := &plugin{n: n, resource: resource, endpoint: endpoint + ".sock", devices: devices}
	n.t.Cleanup(p.stop)
	p.start()
	return p
}

// start listens and registers. A kubelet that starts removes the sockets of
// plug-ins before it makes its own, so this waits for the latter.
func (p *plugin) start() {
	p.n.t.Helper()
	dir := "device-plugins/"
	p.n.await(p.resource+" is registered", func() bool {
		conn, err := net.Dial("unix", p.n.path(dir+"kubelet.sock"))
		if err != nil {
			return false
		}
		conn.Close()
		p.stop()
		p.listen(p.n.path(dir + p.endpoint))
		return p.register(p.n.path(dir+"kubelet.sock")) == nil
	})
}

func (p *plugin) listen(socket string) {
	p.n.t.Helper()
	if err := os.Remove(socket); err != nil && !errors.Is(err, os.ErrNotExist) {
		must(p.n.t, err)
	}
	p.end = serveGRPC(p.n.t, socket, func(srv *grpc.Server) { deviceplugin.RegisterDevicePluginServer(srv, p) })
}

func (p *plugin) register(socket string) error {
	conn, err := grpc.NewClient("unix://"+socket, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return err
	}
	defer conn.Close()
	ctx, cancel := context.WithTimeout(context.Background(), guard/3)
	defer cancel()
	_, err = deviceplugin.NewRegistrationClient(conn).Register(ctx, &deviceplugin.RegisterRequest{
		Version: deviceplugin.Version, Endpoint: p.endpoint, ResourceName: p.resource,
		Options: &deviceplugin.DevicePluginOptions{GetPreferredAllocationAvailable: true},
	})
	return err
}

// stop ends the plug-in as when its pod is deleted.
func (p *plugin) stop() {
	if p.end != nil {
		p.end()
		p.end = nil
	}
}

func (p *plugin) ListAndWatch(_ *deviceplugin.Empty, stream grpc.ServerStreamingServer[deviceplugin.ListAndWatchResponse]) error {
	resp := &deviceplugin.ListAndWatchResponse{}
	for _, d := range p.devices {
		out := &deviceplugin.Device{ID: d.id, Health: deviceplugin.Healthy}
		if len(d.numa) > 0 {
			out.Topology = &deviceplugin.TopologyInfo{}
		}
		for _, id := range d.numa {
			out.Topology.Nodes = append(out.Topology.Nodes, &deviceplugin.NUMANode{ID: id})
		}
		resp.Devices = append(resp.Devices, out)
	}
	if err := stream.Send(resp); err != nil {
		return err
	}
	<-stream.Context().Done()
	return nil
}

func (p *plugin) GetDevicePluginOptions(context.Context, *deviceplugin.Empty) (*deviceplugin.DevicePluginOptions, error) {
	return &deviceplugin.DevicePluginOptions{GetPreferredAllocationAvailable: true}, nil
}

func (p *plugin) GetPreferredAllocation(_ context.Context, req *deviceplugin.PreferredAllocationRequest) (*deviceplugin.PreferredAllocationResponse, error) {
	resp := &deviceplugin.PreferredAllocationResponse{}
	for _, r := range req.GetContainerRequests() {
		ids := slices.Clone(r.GetMustIncludeDeviceIDs())
		for _, id := range slices.Sorted(slices.Values(r.GetAvailableDeviceIDs())) {
			if len(ids) < int(r.GetAllocationSize()) && !slices.Contains(ids, id) {
				ids = append(ids, id)
			}
		}
		resp.ContainerResponses = append(resp.ContainerResponses, &deviceplugin.ContainerPreferredAllocationResponse{DeviceIDs: ids})
	}
	return resp, nil
}

func (p *plugin) Allocate(_ context.Context, req *deviceplugin.AllocateRequest) (*deviceplugin.AllocateResponse, error) {
	resp := &deviceplugin.AllocateResponse{}
	for range req.GetContainerRequests() {
		resp.ContainerResponses = append(resp.ContainerResponses, &deviceplugin.ContainerAllocateResponse{})
	}
	return resp, nil
}

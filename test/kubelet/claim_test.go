package kubelet_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"

	"google.golang.org/grpc"
	dra "k8s.io/kubelet/pkg/apis/dra/v1"
	registration "k8s.io/kubelet/pkg/apis/pluginregistration/v1"
)

// driver is a DRA driver that prepares whatever a claim was allocated.
type driver struct {
	dra.UnimplementedDRAPluginServer
	registration.UnimplementedRegistrationServer
	name string

	registered atomic.Bool

	mu       sync.Mutex
	prepared map[string][]*dra.Device // by UID of the claim
}

// prepare returns the allocation of a claim.
func (d *driver) prepare(claim string, devices []*dra.Device) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.prepared == nil {
		d.prepared = map[string][]*dra.Device{}
	}
	d.prepared[claim] = devices
}

// allocate returns the requests r0, r1 and so on, the devices that answer them, and
// what the driver prepares.
func (d *driver) allocate(devices []string) (requests, results []any, prepared []*dra.Device) {
	for i, id := range devices {
		request := fmt.Sprint("r", i)
		requests = append(requests, map[string]any{"name": request, "exactly": map[string]any{"deviceClassName": "gpu"}})
		results = append(results, map[string]any{"request": request, "driver": d.name, "pool": nodeName, "device": id})
		prepared = append(prepared, &dra.Device{
			PoolName: nodeName, DeviceName: id, RequestNames: []string{request}, CdiDeviceIds: []string{"k8s.gpu.nvidia.com/device=" + id},
		})
	}
	return requests, results, prepared
}

// drive serves the driver until the test ends, and has the kubelet find it.
func (n *node) drive(d *driver) {
	n.t.Helper()
	for _, socket := range []string{"plugins/" + d.name + ".sock", "plugins_registry/" + d.name + "-reg.sock"} {
		n.await("the folder of "+socket, func() bool {
			_, err := os.Stat(filepath.Dir(n.path(socket)))
			return err == nil
		})
		n.t.Cleanup(serveGRPC(n.t, n.path(socket), func(srv *grpc.Server) {
			dra.RegisterDRAPluginServer(srv, d)
			registration.RegisterRegistrationServer(srv, d)
		}))
	}
	// A pod that comes before the driver waits for a minute or more.
	n.await("the driver is registered", d.registered.Load)
}

func (d *driver) GetInfo(context.Context, *registration.InfoRequest) (*registration.PluginInfo, error) {
	return &registration.PluginInfo{
		Type: registration.DRAPlugin, Name: d.name, Endpoint: home + "/plugins/" + d.name + ".sock",
		SupportedVersions: []string{dra.DRAPluginService},
	}, nil
}

func (d *driver) NotifyRegistrationStatus(_ context.Context, s *registration.RegistrationStatus) (*registration.RegistrationStatusResponse, error) {
	d.registered.Store(s.GetPluginRegistered())
	return &registration.RegistrationStatusResponse{}, nil
}

func (d *driver) NodePrepareResources(_ context.Context, req *dra.NodePrepareResourcesRequest) (*dra.NodePrepareResourcesResponse, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	resp := &dra.NodePrepareResourcesResponse{Claims: map[string]*dra.NodePrepareResourceResponse{}}
	for _, c := range req.GetClaims() {
		resp.Claims[c.GetUid()] = &dra.NodePrepareResourceResponse{Devices: d.prepared[c.GetUid()]}
	}
	return resp, nil
}

func (d *driver) NodeUnprepareResources(_ context.Context, req *dra.NodeUnprepareResourcesRequest) (*dra.NodeUnprepareResourcesResponse, error) {
	resp := &dra.NodeUnprepareResourcesResponse{Claims: map[string]*dra.NodeUnprepareResourceResponse{}}
	for _, c := range req.GetClaims() {
		resp.Claims[c.GetUid()] = &dra.NodeUnprepareResourceResponse{}
	}
	return resp, nil
}

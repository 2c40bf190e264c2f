package kubelet_test

import (
	"context"
	"fmt"
	"maps"
	"net"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	runtime "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// cri is a container runtime whose containers are entries in a map. They go on
// while the kubelet is down, as real ones do.
type cri struct {
	runtime.UnimplementedRuntimeServiceServer

	mu         sync.Mutex
	serial     int
	sandboxes  map[string]*runtime.PodSandboxStatus
	containers map[string]*entry
}

type entry struct {
	sandbox string
	status  *runtime.ContainerStatus
}

// serveCRI serves a runtime on the socket until the test ends.
func serveCRI(t *testing.T, socket string) *cri {
	t.Helper()
	c := &cri{sandboxes: map[string]*runtime.PodSandboxStatus{}, containers: map[string]*entry{}}
	t.Cleanup(serveGRPC(t, socket, func(srv *grpc.Server) {
		runtime.RegisterRuntimeServiceServer(srv, c)
		runtime.RegisterImageServiceServer(srv, images{})
	}))
	return c
}

// serveGRPC serves on a socket until stop is called.
func serveGRPC(t *testing.T, socket string, register func(*grpc.Server)) (stop func()) {
	t.Helper()
	listener, err := net.Listen("unix", socket)
	must(t, err)
	srv := grpc.NewServer()
	register(srv)
	served := make(chan struct{})
	go func() { defer close(served); srv.Serve(listener) }()
	return func() { srv.Stop(); <-served }
}

// runs reports whether the latest container of that name does.
func (c *cri) runs(pod, container string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	e := c.find(pod, container)
	return e != nil && e.status.State == runtime.ContainerState_CONTAINER_RUNNING
}

// exit ends a running container, as if its process had exited.
func (c *cri) exit(pod, container string, code int32) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.find(pod, container).end(code)
}

func (c *cri) find(pod, container string) (latest *entry) {
	for _, e := range c.containers {
		s := c.sandboxes[e.sandbox]
		if s == nil || strings.TrimSuffix(s.Metadata.Name, "-"+nodeName) != pod || e.status.Metadata.Name != container {
			continue
		}
		if latest == nil || e.status.CreatedAt > latest.status.CreatedAt {
			latest = e
		}
	}
	return latest
}

func (e *entry) end(code int32) {
	if e.status.State != runtime.ContainerState_CONTAINER_EXITED {
		e.status.State, e.status.ExitCode = runtime.ContainerState_CONTAINER_EXITED, code
		e.status.FinishedAt = time.Now().UnixNano()
		e.status.Reason = map[bool]string{true: "Completed", false: "Error"}[code == 0]
	}
}

// id returns a name that was never given before.
func (c *cri) id() string {
	c.serial++
	return fmt.Sprintf("%064x", c.serial)
}

func (c *cri) Version(context.Context, *runtime.VersionRequest) (*runtime.VersionResponse, error) {
	return &runtime.VersionResponse{Version: "0.1.0", RuntimeName: "stub", RuntimeVersion: "0.1.0", RuntimeApiVersion: "v1"}, nil
}

func (c *cri) Status(context.Context, *runtime.StatusRequest) (*runtime.StatusResponse, error) {
	return &runtime.StatusResponse{Status: &runtime.RuntimeStatus{Conditions: []*runtime.RuntimeCondition{
		{Type: runtime.RuntimeReady, Status: true}, {Type: runtime.NetworkReady, Status: true},
	}}}, nil
}

func (c *cri) UpdateRuntimeConfig(context.Context, *runtime.UpdateRuntimeConfigRequest) (*runtime.UpdateRuntimeConfigResponse, error) {
	return &runtime.UpdateRuntimeConfigResponse{}, nil
}

func (c *cri) RunPodSandbox(_ context.Context, req *runtime.RunPodSandboxRequest) (*runtime.RunPodSandboxResponse, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	id, cfg := c.id(), req.GetConfig()
	c.sandboxes[id] = &runtime.PodSandboxStatus{
		Id: id, Metadata: cfg.GetMetadata(), State: runtime.PodSandboxState_SANDBOX_READY, CreatedAt: time.Now().UnixNano(),
		Labels: cfg.GetLabels(), Annotations: cfg.GetAnnotations(),
		Network: &runtime.PodSandboxNetworkStatus{Ip: "10.99.1.1"},
		// A sandbox with other namespaces than asked for would be created again.
		Linux: &runtime.LinuxPodSandboxStatus{Namespaces: &runtime.Namespace{Options: cfg.GetLinux().GetSecurityContext().GetNamespaceOptions()}},
	}
	return &runtime.RunPodSandboxResponse{PodSandboxId: id}, nil
}

func (c *cri) StopPodSandbox(_ context.Context, req *runtime.StopPodSandboxRequest) (*runtime.StopPodSandboxResponse, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if s := c.sandboxes[req.GetPodSandboxId()]; s != nil {
		s.State = runtime.PodSandboxState_SANDBOX_NOTREADY
	}
	for _, e := range c.containers {
		if e.sandbox == req.GetPodSandboxId() {
			e.end(137)
		}
	}
	return &runtime.StopPodSandboxResponse{}, nil
}

func (c *cri) RemovePodSandbox(_ context.Context, req *runtime.RemovePodSandboxRequest) (*runtime.RemovePodSandboxResponse, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.sandboxes, req.GetPodSandboxId())
	maps.DeleteFunc(c.containers, func(_ string, e *entry) bool { return e.sandbox == req.GetPodSandboxId() })
	return &runtime.RemovePodSandboxResponse{}, nil
}

func (c *cri) PodSandboxStatus(_ context.Context, req *runtime.PodSandboxStatusRequest) (*runtime.PodSandboxStatusResponse, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.sandboxes[req.GetPodSandboxId()]
	if s == nil {
		return nil, status.Errorf(codes.NotFound, "no sandbox %s", req.GetPodSandboxId())
	}
	return &runtime.PodSandboxStatusResponse{Status: proto.Clone(s).(*runtime.PodSandboxStatus)}, nil
}

func (c *cri) ListPodSandbox(_ context.Context, req *runtime.ListPodSandboxRequest) (*runtime.ListPodSandboxResponse, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	resp := &runtime.ListPodSandboxResponse{}
	f := req.GetFilter()
	for id, s := range c.sandboxes {
		if f.GetId() != "" && f.GetId() != id || f.GetState() != nil && f.GetState().State != s.State || !has(s.Labels, f.GetLabelSelector()) {
			continue
		}
		resp.Items = append(resp.Items, &runtime.PodSandbox{
			Id: id, Metadata: s.Metadata, State: s.State, CreatedAt: s.CreatedAt, Labels: s.Labels, Annotations: s.Annotations,
		})
	}
	return resp, nil
}

func (c *cri) CreateContainer(_ context.Context, req *runtime.CreateContainerRequest) (*runtime.CreateContainerResponse, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.sandboxes[req.GetPodSandboxId()] == nil {
		return nil, status.Errorf(codes.NotFound, "no sandbox %s", req.GetPodSandboxId())
	}
	id, cfg := c.id(), req.GetConfig()
	c.containers[id] = &entry{req.GetPodSandboxId(), &runtime.ContainerStatus{
		Id: id, Metadata: cfg.GetMetadata(), State: runtime.ContainerState_CONTAINER_CREATED, CreatedAt: time.Now().UnixNano(),
		Image: cfg.GetImage(), ImageRef: cfg.GetImage().GetImage(), Labels: cfg.GetLabels(), Annotations: cfg.GetAnnotations(),
		LogPath: filepath.Join(req.GetSandboxConfig().GetLogDirectory(), cfg.GetLogPath()),
	}}
	return &runtime.CreateContainerResponse{ContainerId: id}, nil
}

func (c *cri) StartContainer(_ context.Context, req *runtime.StartContainerRequest) (*runtime.StartContainerResponse, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e := c.containers[req.GetContainerId()]
	if e == nil {
		return nil, status.Errorf(codes.NotFound, "no container %s", req.GetContainerId())
	}
	e.status.State, e.status.StartedAt = runtime.ContainerState_CONTAINER_RUNNING, time.Now().UnixNano()
	return &runtime.StartContainerResponse{}, nil
}

func (c *cri) StopContainer(_ context.Context, req *runtime.StopContainerRequest) (*runtime.StopContainerResponse, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e := c.containers[req.GetContainerId()]; e != nil {
		e.end(143)
	}
	return &runtime.StopContainerResponse{}, nil
}

func (c *cri) ReopenContainerLog(context.Context, *runtime.ReopenContainerLogRequest) (*runtime.ReopenContainerLogResponse, error) {
	return &runtime.ReopenContainerLogResponse{}, nil
}

func (c *cri) RemoveContainer(_ context.Context, req *runtime.RemoveContainerRequest) (*runtime.RemoveContainerResponse, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.containers, req.GetContainerId())
	return &runtime.RemoveContainerResponse{}, nil
}

func (c *cri) ListContainers(_ context.Context, req *runtime.ListContainersRequest) (*runtime.ListContainersResponse, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	resp := &runtime.ListContainersResponse{}
	f := req.GetFilter()
	for id, e := range c.containers {
		s := e.status
		if f.GetId() != "" && f.GetId() != id || f.GetPodSandboxId() != "" && f.GetPodSandboxId() != e.sandbox ||
			f.GetState() != nil && f.GetState().State != s.State || !has(s.Labels, f.GetLabelSelector()) {
			continue
		}
		resp.Containers = append(resp.Containers, &runtime.Container{
			Id: id, PodSandboxId: e.sandbox, Metadata: s.Metadata, Image: s.Image, ImageRef: s.ImageRef,
			State: s.State, CreatedAt: s.CreatedAt, Labels: s.Labels, Annotations: s.Annotations,
		})
	}
	return resp, nil
}

func (c *cri) ContainerStatus(_ context.Context, req *runtime.ContainerStatusRequest) (*runtime.ContainerStatusResponse, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e := c.containers[req.GetContainerId()]
	if e == nil {
		return nil, status.Errorf(codes.NotFound, "no container %s", req.GetContainerId())
	}
	return &runtime.ContainerStatusResponse{Status: proto.Clone(e.status).(*runtime.ContainerStatus)}, nil
}

func (c *cri) ListContainerStats(context.Context, *runtime.ListContainerStatsRequest) (*runtime.ListContainerStatsResponse, error) {
	return &runtime.ListContainerStatsResponse{}, nil
}

func has(labels, wanted map[string]string) bool {
	for k, v := range wanted {
		if labels[k] != v {
			return false
		}
	}
	return true
}

// Package kubelet is a simulated kubelet: the PodResources service on a unix
// socket. It lists the configured pods, and misbehaves on request in the ways
// that real kubelets do.
//
// It takes over the socket as the kubelet does: it creates a new one beside it
// and renames it into place. The file of a kubelet that has ended remains.
package kubelet

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	podresources "k8s.io/kubelet/pkg/apis/podresources/v1"
)

// Server is one simulated kubelet. Its methods may be called at any time.
type Server struct {
	podresources.UnimplementedPodResourcesListerServer
	socket string
	listen func() (net.Listener, error)

	mu          sync.Mutex
	grpc        *grpc.Server // nil while it is down
	served      chan struct{}
	pods        []Pod
	ended       []Pod // still listed
	old         bool
	allocatable map[string][]string
	failures    []error
	padding     int
	garbage     bool
	hang        chan struct{} // closed when calls continue; nil when they do not wait
	calls       int
	inFlight    int
	most        int
}

// ErrRateLimited is the kubelet's answer when its clients together make more
// than 100 calls in a second.
var ErrRateLimited = status.Error(codes.ResourceExhausted, "rejected by rate limit")

// Serve starts a kubelet on a unix socket at the path.
func Serve(socket string) (*Server, error) {
	s := &Server{socket: socket}
	s.listen = s.listenUnix
	return s, s.Start()
}

// ServeFunc starts a kubelet; listen returns the listener of each start.
func ServeFunc(listen func() (net.Listener, error)) (*Server, error) {
	s := &Server{listen: listen}
	return s, s.Start()
}

func (s *Server) listenUnix() (net.Listener, error) {
	if err := os.MkdirAll(filepath.Dir(s.socket), 0o755); err != nil {
		return nil, err
	}
	fresh := s.socket + ".new"
	if err := os.Remove(fresh); err != nil && !os.IsNotExist(err) {
		return nil, err
	}
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: fresh, Net: "unix"})
	if err != nil {
		return nil, err
	}
	l.SetUnlinkOnClose(false)
	if err := os.Rename(fresh, s.socket); err != nil {
		_ = l.Close()
		return nil, err
	}
	return l, nil
}

// Start starts a kubelet that is down; it lists the configured pods, including
// pods from before.
func (s *Server) Start() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.grpc != nil {
		return nil
	}
	l, err := s.listen()
	if err != nil {
		return fmt.Errorf("start the simulated kubelet: %w", err)
	}
	srv := grpc.NewServer(grpc.ForceServerCodecV2(codec{s}))
	podresources.RegisterPodResourcesListerServer(srv, s)
	s.grpc, s.served = srv, make(chan struct{})
	go func(done chan struct{}) {
		defer close(done)
		_ = srv.Serve(l) // the error after it was stopped
	}(s.served)
	return nil
}

// Stop ends the kubelet at once, as SIGKILL does. The file of its socket
// remains.
func (s *Server) Stop() {
	s.mu.Lock()
	srv, served := s.grpc, s.served
	s.grpc = nil
	s.mu.Unlock()
	if srv == nil {
		return
	}
	s.Resume()
	srv.Stop()
	<-served
}

// Restart stops the kubelet and starts a kubelet that lists these pods: no pods
// for a kubelet that has not reached the API server yet.
func (s *Server) Restart(pods ...Pod) error {
	s.Stop()
	s.SetPods(pods...)
	return s.Start()
}

// SetPods sets the running pods. They are listed; see also Old.
func (s *Server) SetPods(pods ...Pod) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.old {
		s.ended = append(s.ended, s.pods...)
	}
	s.pods = slices.Clone(pods)
	s.ended = slices.DeleteFunc(s.ended, func(p Pod) bool {
		return slices.ContainsFunc(s.pods, func(q Pod) bool { return p.Namespace == q.Namespace && p.Name == q.Name })
	})
}

// Old makes the kubelet list pods that have ended until they are deleted, as
// before 1.34. Call Old again to change it.
func (s *Server) Old(on bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.old, s.ended = on, nil
}

// SetAllocatable sets the allocatable device ids, by resource.
func (s *Server) SetAllocatable(ids map[string][]string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.allocatable = ids
}

// Hang makes calls wait until Resume or Stop.
func (s *Server) Hang() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.hang == nil {
		s.hang = make(chan struct{})
	}
}

// Resume ends Hang.
func (s *Server) Resume() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.hang != nil {
		close(s.hang)
		s.hang = nil
	}
}

// Fail makes the next calls that still have a client fail, one for each error.
func (s *Server) Fail(errs ...error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.failures = append(s.failures, errs...)
}

// Pad adds this many bytes to the answers to List.
func (s *Server) Pad(bytes int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.padding = bytes
}

// Garbage turns on or off answers that are no PodResources.
func (s *Server) Garbage(on bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.garbage = on
}

// Calls returns the number of calls, and the most at the same time.
func (s *Server) Calls() (all, most int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.calls, s.most
}

// enter begins a call and returns the function that ends it.
func (s *Server) enter(ctx context.Context) (leave func(), err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls++
	s.inFlight++
	s.most = max(s.most, s.inFlight)
	if wait := s.hang; wait != nil {
		s.mu.Unlock()
		select {
		case <-wait:
		case <-ctx.Done():
		}
		s.mu.Lock()
	}
	if gone := ctx.Err(); gone != nil {
		err = status.FromContextError(gone).Err()
	} else if len(s.failures) > 0 {
		err, s.failures = s.failures[0], s.failures[1:]
	}
	return func() {
		s.mu.Lock()
		s.inFlight--
		s.mu.Unlock()
	}, err
}

// List implements the service.
func (s *Server) List(ctx context.Context, _ *podresources.ListPodResourcesRequest) (*podresources.ListPodResourcesResponse, error) {
	leave, err := s.enter(ctx)
	defer leave()
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	resp := Answer(slices.Concat(s.pods, s.ended)...)
	if s.padding > 0 {
		resp.PodResources = append(resp.PodResources, &podresources.PodResources{Namespace: "padding", Name: strings.Repeat("x", s.padding)})
	}
	return resp, nil
}

// GetAllocatableResources implements the service.
func (s *Server) GetAllocatableResources(ctx context.Context, _ *podresources.AllocatableResourcesRequest) (*podresources.AllocatableResourcesResponse, error) {
	leave, err := s.enter(ctx)
	defer leave()
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return allocatable(s.allocatable), nil
}

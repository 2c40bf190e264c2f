package sim

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/accel-exporter/accel-exporter/internal/sim/kubelet"
)

// HasKubelet reports whether the simulation at a state file is a Kubernetes
// node.
func HasKubelet(state string) (bool, error) {
	s, err := Read(state)
	return err == nil && s.Has("kubelet"), err
}

// maxSocket is the maximum length of the path of a unix socket, without the NUL
// and the suffix of the temporary name (sys/un.h).
const maxSocket = 108 - 1 - len(".new")

// longUp is the uptime of a kubelet that was already running.
const longUp = time.Hour

// served is a simulated kubelet and its last configuration.
type served struct {
	server *kubelet.Server
	socket string
	node   string // identifies its simulation
	starts string
}

// ServeKubelet serves the PodResources API of the simulation at a state file
// and follows every edit of it until ctx ends; then wait must be called. When
// it returns, the kubelet is up and has been for long.
func ServeKubelet(ctx context.Context, state string) (wait func(), err error) {
	socket := KubeletSocket(state)
	if len(socket) > maxSocket {
		return nil, fmt.Errorf("%s: a socket's path has at most %d bytes; choose a shorter one for the state", socket, maxSocket)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer func() {
		if err != nil {
			cancel()
		}
	}()
	changed, err := watchFile(ctx, state)
	if err != nil {
		return nil, err
	}
	s, err := Read(state)
	if err != nil {
		return nil, err
	}
	if err := s.needsKubelet(); err != nil {
		return nil, fmt.Errorf("%s: %w", state, err)
	}
	server, err := kubelet.Serve(socket)
	if err != nil {
		return nil, err
	}
	k := &served{server: server, socket: socket}
	if err := k.follow(s); err != nil {
		server.Stop()
		return nil, err
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer cancel()
		defer server.Stop()
		for range changed {
			s, err := Read(state)
			if err == nil {
				err = k.follow(s)
			}
			if err != nil {
				fmt.Fprintln(os.Stderr, "accel-sim: the kubelet stays as it is:", err)
			}
		}
	}()
	return func() { <-done }, nil
}

// follow applies the state to the kubelet.
func (k *served) follow(s *State) error {
	pods, is, starts := s.podsListed(), s.Get("kubelet"), s.Get("kubelet.starts")
	if !s.Has("kubelet") {
		is = "removed" // another simulation, of a machine outside Kubernetes
	}
	k.server.SetAllocatable(s.allocatable())
	if is == "down" || is == "removed" {
		k.starts = starts
		k.server.Stop()
		k.server.SetPods(pods...)
		if is == "removed" {
			return os.RemoveAll(filepath.Dir(k.socket))
		}
		return nil
	}
	node := s.Get("scenario") + " " + s.Get("epoch")
	if _, err := os.Stat(k.socket); err != nil || starts != k.starts || node != k.node {
		if err := k.server.Restart(pods...); err != nil {
			return err
		}
	}
	if node != k.node {
		// Clients take the age of the socket for the start of the kubelet.
		began := time.Now().Add(-longUp)
		if err := os.Chtimes(k.socket, began, began); err != nil {
			return err
		}
	}
	k.starts, k.node = starts, node
	k.server.SetPods(pods...)
	k.server.Garbage(is == "garbage")
	if is == "hang" {
		k.server.Hang()
	} else {
		k.server.Resume()
	}
	return k.server.Start()
}

// podsListed returns the pods that the kubelet lists now. While the list is
// incomplete, static pods come first: they are on its own disk.
func (s *State) podsListed() []kubelet.Pod {
	pods := s.pods()
	if s.Has("kubelet.lists") {
		slices.SortStableFunc(pods, func(a, b pod) int {
			return cmp.Compare(strings.Count(a.uid, "-"), strings.Count(b.uid, "-"))
		})
		most, err := strconv.Atoi(s.Get("kubelet.lists"))
		if err != nil { // "static", as restartKubelet wrote it
			for most < len(pods) && !strings.Contains(pods[most].uid, "-") {
				most++
			}
		}
		pods = pods[:min(most, len(pods))]
	}
	var out []kubelet.Pod
	for _, p := range pods {
		if !p.finished {
			out = append(out, s.listed(p))
		}
	}
	return out
}

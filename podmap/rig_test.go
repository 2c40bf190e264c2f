package podmap_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/accel-exporter/accel-exporter/internal/sim/kubelet"
	"github.com/accel-exporter/accel-exporter/podmap"
)

const (
	gpuA = "GPU-5f1c9a1e-0001-0001-0001-000000000001"
	gpuB = "GPU-5f1c9a1e-0002-0002-0002-000000000002"
	gpu  = "nvidia.com/gpu"
)

// rig is a Watcher of a simulated kubelet in a synctest bubble.
type rig struct {
	t    *testing.T
	pipe kubelet.Pipe
	srv  *kubelet.Server
	path string
	w    *podmap.Watcher
}

// bubble runs a test with a running kubelet and a Watcher that is not started. A Dial in
// the options connects the Watcher to something else.
func bubble(t *testing.T, opts podmap.Options, test func(*testing.T, *rig)) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "kubelet.sock")
	synctest.Test(t, func(t *testing.T) {
		r := &rig{t: t, path: path, pipe: kubelet.Pipe{File: path}}
		var err error
		if r.srv, err = kubelet.ServeFunc(r.pipe.Listen); err != nil {
			t.Fatal(err)
		}
		opts.Socket = path
		if opts.Dial == nil {
			opts.Dial = r.pipe.Dial
		}
		r.w = podmap.New(opts)
		test(t, r)
		r.srv.Stop()
	})
}

// run starts the Watcher and waits for its first list.
func (r *rig) run() {
	var running sync.WaitGroup
	running.Go(func() { r.w.Run(r.t.Context()) })
	r.t.Cleanup(running.Wait)
	synctest.Wait()
}

// socket replaces the file of the socket.
func (r *rig) socket() {
	if err := r.pipe.Create(); err != nil {
		r.t.Fatal(err)
	}
}

// restart replaces the kubelet by a kubelet that lists the pods, and waits for its first
// list.
func (r *rig) restart(pods ...kubelet.Pod) {
	if err := r.srv.Restart(pods...); err != nil {
		r.t.Fatal(err)
	}
	r.list()
}

// pass lets time pass, until everything that is due has been done.
func (r *rig) pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// list waits for the next list.
func (r *rig) list() {
	before, _ := r.srv.Calls()
	errors := r.w.Status().Calls
	for range 100 {
		r.w.Refresh()
		r.pass(time.Second)
		now, _ := r.srv.Calls()
		if now > before || !cmp.Equal(errors, r.w.Status().Calls) {
			return
		}
	}
	r.t.Fatal("no list in 100 s")
}

// lists sets the pods and waits for the next list.
func (r *rig) lists(pods ...kubelet.Pod) {
	r.srv.SetPods(pods...)
	r.list()
}

// lines returns the state of a Map and one line per allocation.
func lines(m *podmap.Map) []string {
	list := []string{string(m.State)}
	for _, h := range m.Allocations {
		list = append(list, line(h))
	}
	for _, h := range m.Superseded {
		list = append(list, "superseded: "+line(h))
	}
	return list
}

func line(h podmap.Allocation) string {
	s := fmt.Sprintf("%s %s: %s/%s %s", h.Resource, h.DeviceID, h.Pod.Namespace, h.Pod.Name, strings.Join(h.Containers, ","))
	for _, f := range []struct {
		is   bool
		name string
	}{{h.Shared, "shared"}, {h.Kept, "kept"}, {h.Contested, "contested"}, {h.Admin, "admin"}} {
		if f.is {
			s += " " + f.name
		}
	}
	return s
}

func (r *rig) want(when string, want ...string) {
	r.t.Helper()
	if diff := cmp.Diff(want, lines(r.w.Latest())); diff != "" {
		r.t.Errorf("%s (-want +got):\n%s\nstatus: %+v", when, diff, r.w.Status())
	}
}

var (
	train  = kubelet.Simple("ml", "train-0", gpu, gpuA)
	serve  = kubelet.Simple("ml", "serve-0", gpu, gpuB)
	proxy  = kubelet.Simple("kube-system", "proxy", "")
	dns    = kubelet.Simple("kube-system", "dns", "")
	plugin = kubelet.Simple("kube-system", "plugin", "")
	node   = []kubelet.Pod{proxy, dns, plugin, train, serve}
)

const (
	trainLine = gpu + " " + gpuA + ": ml/train-0 main"
	serveLine = gpu + " " + gpuB + ": ml/serve-0 main"
)

// start runs the Watcher with a complete list of the pods.
func (r *rig) start(pods ...kubelet.Pod) {
	r.srv.SetPods(pods...)
	r.run()
	r.settle()
}

// settle waits until the list of a kubelet that has just started counts as complete.
func (r *rig) settle() {
	time.Sleep(61 * time.Second)
	r.list()
}

package podmap_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/accel-exporter/accel-exporter/internal/sim/kubelet"
	"github.com/accel-exporter/accel-exporter/podmap"
)

// shapes are the forms of a pod with a device.
var shapes = []struct {
	name string
	pod  func(name, resource, id string) kubelet.Pod
	want string // containers
}{
	{"one container", simple, "main"},
	{"with a sidecar and a plain container", func(name, resource, id string) kubelet.Pod {
		d := []kubelet.Device{{Resource: resource, ID: id}}
		return kubelet.Pod{Namespace: "ml", Name: name, Containers: []kubelet.Container{{Name: "sidecar", Devices: d}, {Name: "main", Devices: d}, {Name: "logs"}}}
	}, "main,sidecar"},
	{"near two NUMA nodes", func(name, resource, id string) kubelet.Pod {
		d := []kubelet.Device{{Resource: resource, ID: id, NUMA: []int64{0, 1}}}
		return kubelet.Pod{Namespace: "ml", Name: name, Containers: []kubelet.Container{{Name: "main", Devices: d}}}
	}, "main"},
}

// behaviours are actions of a kubelet after a complete list. None of them changes the
// allocations.
var behaviours = []struct {
	name string
	do   func(r *rig, pods []kubelet.Pod)
}{
	{"steady", func(r *rig, _ []kubelet.Pod) { time.Sleep(time.Hour); r.list() }},
	{"restarts with an empty list", func(r *rig, _ []kubelet.Pod) { r.restart() }},
	{"restarts with half of the list", func(r *rig, pods []kubelet.Pod) {
		r.restart()
		r.lists(pods[:len(pods)/2]...)
	}},
	{"restarts with the complete list", func(r *rig, pods []kubelet.Pod) {
		r.restart()
		r.lists(pods...)
	}},
	{"restarts while the API server is down", func(r *rig, _ []kubelet.Pod) {
		r.restart(proxy)
		time.Sleep(50 * time.Minute)
		r.list()
	}},
	{"is down for a minute", func(r *rig, _ []kubelet.Pod) {
		r.srv.Stop()
		r.pass(time.Minute)
	}},
	{"was down for a minute", func(r *rig, pods []kubelet.Pod) {
		r.srv.Stop()
		time.Sleep(time.Minute)
		r.restart(pods...)
	}},
	{"hangs", func(r *rig, _ []kubelet.Pod) {
		r.srv.Hang()
		r.pass(time.Minute)
	}},
	{"answers garbage", func(r *rig, _ []kubelet.Pod) {
		r.srv.Garbage(true)
		r.pass(time.Minute)
	}},
}

// TestAttribution: for every form of id, every form of pod and every behaviour of the
// kubelet, each allocation is attributed to its device without any configuration.
func TestAttribution(t *testing.T) {
	var pods []kubelet.Pod
	var want []string
	for i, c := range resolutions {
		switch c.how {
		case podmap.HowAlias, podmap.HowHash, podmap.HowIgnored, podmap.HowNone, podmap.HowUnknown, podmap.HowAmbiguous:
			continue // requires a configuration, or has no device
		}
		shape := shapes[i%len(shapes)]
		name, containers := fmt.Sprintf("pod-%d", i), shape.want
		if c.dra {
			p := claimed(name, fmt.Sprintf("claim-%d", i), c.id, "")
			p.Claims[0].Devices[0].Driver = c.resource
			pods, containers = append(pods, p), "main,sidecar"
		} else {
			pods = append(pods, shape.pod(name, c.resource, c.id))
		}
		want = append(want, fmt.Sprintf("%s: ml/%s %s", c.want, name, containers))
	}
	slices.Sort(want)
	pods = append(pods, proxy, dns, plugin)
	for _, b := range behaviours {
		t.Run(b.name, func(t *testing.T) {
			bubble(t, podmap.Options{}, func(t *testing.T, r *rig) {
				r.start(pods...)
				b.do(r, pods)
				var got []string
				index := new(podmap.Resolver).Index(machine)
				for _, h := range r.w.Latest().Allocations {
					id, _ := index.Resolve(h.Resource, h.Ref)
					got = append(got, fmt.Sprintf("%s: %s/%s %s", id, h.Pod.Namespace, h.Pod.Name, strings.Join(h.Containers, ",")))
				}
				slices.Sort(got)
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("(-want +got):\n%s", diff)
				}
			})
		})
	}
}

func simple(name, resource, id string) kubelet.Pod { return kubelet.Simple("ml", name, resource, id) }

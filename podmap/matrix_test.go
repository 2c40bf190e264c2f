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

// TestAttribution: for every form of id and every form of pod, each allocation is
// attributed to its device without any configuration, also while a restarted kubelet
// lists half of the pods, none, or does not answer.
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
	bubble(t, podmap.Options{}, func(t *testing.T, r *rig) {
		check := func(when string) {
			t.Helper()
			var got []string
			index := new(podmap.Resolver).Index(machine)
			for _, h := range r.w.Latest().Allocations {
				id, _ := index.Resolve(h.Resource, h.Ref)
				got = append(got, fmt.Sprintf("%s: %s/%s %s", id, h.Pod.Namespace, h.Pod.Name, strings.Join(h.Containers, ",")))
			}
			slices.Sort(got)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", when, diff)
			}
		}
		r.start(pods...)
		check("at first")
		r.restart(pods[:len(pods)/2]...)
		check("with half of the list")
		r.restart()
		check("with an empty list")
		r.srv.Hang()
		r.pass(time.Minute)
		check("while it hangs") // the Watcher ends with a call in flight
	})
}

func simple(name, resource, id string) kubelet.Pod { return kubelet.Simple("ml", name, resource, id) }

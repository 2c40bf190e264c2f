package kube_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/accel-exporter/accel-exporter/podmap/kube"
)

const nvidia = "gpu.nvidia.com"

// resourceSlice returns a slice of a pool of this node. The UUID of each device is its
// name.
func resourceSlice(name string, generation, count int, devices ...string) object {
	list := []object{}
	for _, d := range devices {
		list = append(list, object{"name": d, "attributes": object{"uuid": object{"string": "GPU-" + d}, "driverVersion": object{"version": "580.0.0"}}})
	}
	return object{
		"kind": "ResourceSlice", "metadata": object{"name": name, "uid": "u-" + name},
		"spec": object{"driver": nvidia, "nodeName": node, "pool": object{"name": node, "generation": generation, "resourceSliceCount": count}, "devices": list},
	}
}

// devices returns the names of devices, kept ones in brackets.
func devices(m *kube.Map) string {
	var list []string
	for _, d := range m.Devices {
		if d.Kept.IsZero() {
			list = append(list, d.Name)
		} else {
			list = append(list, "("+d.Name+")")
		}
	}
	return strings.Join(list, " ")
}

// TestSlicesKept: the devices of deleted slices are kept until the driver has published
// the pool in full.
func TestSlicesKept(t *testing.T) {
	type step struct {
		event string
		slice object
		want  string
	}
	one, two := resourceSlice("a", 1, 2, "gpu-0", "gpu-1"), resourceSlice("b", 1, 2, "gpu-2")
	for _, c := range []struct {
		name  string
		steps []step
	}{
		{"the kubelet restarts, then the driver", []step{
			{"ADDED", one, "gpu-0 gpu-1"},
			{"ADDED", two, "gpu-0 gpu-1 gpu-2"},
			{"DELETED", one, "(gpu-0) (gpu-1) gpu-2"},
			{"DELETED", two, "(gpu-0) (gpu-1) (gpu-2)"},
			{"ADDED", resourceSlice("c", 1, 2, "gpu-1", "gpu-2"), "(gpu-0) gpu-1 gpu-2"},
			{"ADDED", resourceSlice("d", 1, 2, "gpu-3"), "gpu-1 gpu-2 gpu-3"},
		}},
		{"the driver removes a device from a slice", []step{
			{"ADDED", resourceSlice("a", 1, 1, "gpu-0", "gpu-1"), "gpu-0 gpu-1"},
			{"MODIFIED", resourceSlice("a", 1, 1, "gpu-1"), "gpu-1"},
		}},
		{"a new generation, slice by slice", []step{
			{"ADDED", one, "gpu-0 gpu-1"},
			{"ADDED", two, "gpu-0 gpu-1 gpu-2"},
			{"ADDED", resourceSlice("c", 2, 2, "gpu-0"), "gpu-0 gpu-1 gpu-2"},
			{"DELETED", one, "gpu-0 (gpu-1) gpu-2"},
			{"ADDED", resourceSlice("d", 2, 2, "gpu-2"), "gpu-0 gpu-2"},
			{"DELETED", two, "gpu-0 gpu-2"},
		}},
		{"the generation restarts", []step{
			{"ADDED", resourceSlice("a", 7, 1, "gpu-0", "gpu-1"), "gpu-0 gpu-1"},
			{"DELETED", resourceSlice("a", 7, 1), "(gpu-0) (gpu-1)"},
			{"ADDED", resourceSlice("b", 1, 1, "gpu-0"), "gpu-0"},
		}},
		{"the driver publishes an empty pool", []step{
			{"ADDED", resourceSlice("a", 1, 1, "gpu-0"), "gpu-0"},
			{"DELETED", resourceSlice("a", 1, 1), "(gpu-0)"},
			{"ADDED", resourceSlice("b", 1, 1), ""},
		}},
	} {
		subtest(t, c.name, func(t *testing.T, a *api) {
			w := a.run(withSlices)
			for i, s := range c.steps {
				a.send(s.event, slicesPath, s.slice)
				if got := devices(w.Latest()); got != s.want {
					t.Errorf("step %d: %q, want %q", i, got, s.want)
				}
			}
			if s := w.Status().Slices; s.State != kube.StateFresh || s.Malformed > 0 {
				t.Errorf("%+v", s)
			}
		})
	}
}

// TestSlicesOutlive: devices whose slices are deleted during an outage are kept, also
// after a long outage.
func TestSlicesOutlive(t *testing.T) {
	bubble(t, func(t *testing.T, a *api) {
		a.send("ADDED", slicesPath, resourceSlice("a", 3, 1, "gpu-0", "gpu-1"))
		w := a.run(withSlices)
		a.set(func() {
			clear(a.objects)
			a.down = true
		})
		a.server.CloseClientConnections()
		time.Sleep(3 * time.Hour)
		if m := w.Latest(); devices(m) != "gpu-0 gpu-1" || m.SliceState != kube.StateStale || m.State != kube.StateUnreachable {
			t.Errorf("%+v", m)
		}
		a.set(func() { a.down = false })
		time.Sleep(time.Minute)
		a.sendText(slicesPath, `{"type":"ERROR","object":{"code":410}}`)
		time.Sleep(time.Minute)
		if m := w.Latest(); devices(m) != "(gpu-0) (gpu-1)" || m.SliceState != kube.StateFresh {
			t.Errorf("%+v", m)
		}
		if s := w.Status().Slices; s.Objects != 0 || s.Kept != 2 {
			t.Errorf("%+v", s)
		}
	})
}

// TestAttributes: the attributes by which drivers identify a device.
func TestAttributes(t *testing.T) {
	text := func(s string) object { return object{"string": s} }
	for _, c := range []struct {
		name, driver string
		device       object
		want         kube.Device
	}{
		{
			"NVIDIA, a GPU", nvidia,
			object{"name": "gpu-1", "attributes": object{
				"type": text("gpu"), "uuid": text("GPU-1"), "minor": object{"int": 1}, "index": object{"int": 2}, "pcieBusID": text("0000:1B:00.0"),
				"resource.kubernetes.io/pciBusID": text("0000:1b:00.0"), "productName": text("H100"), "brand": text("Nvidia"), "example.com/uuid": text("no"),
			}, "capacity": object{"memory": object{"value": "80Gi"}}},
			kube.Device{UUID: "GPU-1", PCI: "0000:1b:00.0"},
		},
		{
			"NVIDIA, a MIG device", nvidia,
			object{"name": "gpu-0-mig-1g10gb-19-0", "attributes": object{
				"type": text("mig"), "uuid": text("MIG-1"), "parentUUID": text("GPU-1"), "parentMinor": object{"int": 0}, "profile": text("1g.10gb"), "pcieBusID": text("0000:1B:00.0"),
			}},
			kube.Device{UUID: "MIG-1", ParentUUID: "GPU-1", PCI: "0000:1B:00.0"},
		},
		{
			"AMD", "gpu.amd.com",
			object{"name": "gpu-1-129", "attributes": object{"type": text("amdgpu"), "pciAddr": text("0000:c1:00.0"), "productName": text("MI300X"), "cardIndex": object{"int": 1}}},
			kube.Device{PCI: "0000:c1:00.0"},
		},
		{
			"Intel, resource.k8s.io/v1beta1", "gpu.intel.com",
			object{"name": "0000-03-00-0-0x56c0", "basic": object{"attributes": object{"pciAddress": text("0000:03:00.0"), "model": text("Flex 170"), "pciId": text("0x56c0")}}},
			kube.Device{PCI: "0000:03:00.0"},
		},
		{"no attributes", "x.y", object{"name": "a", "attributes": nil}, kube.Device{}},
		{"odd values", "x.y", object{"name": "a", "attributes": object{"uuid": object{"bool": true}, "minor": object{"int": nil}, "index": object{"int": -3}, "pciAddr": "x", "profile": object{"string": 5}}}, kube.Device{}},
	} {
		subtest(t, c.name, func(t *testing.T, a *api) {
			s := resourceSlice("a", 1, 1)
			spec := s["spec"].(object)
			spec["driver"], spec["devices"] = c.driver, []object{c.device}
			a.send("ADDED", slicesPath, s)
			w := a.run(withSlices)
			c.want.Driver, c.want.Pool, c.want.Name = c.driver, node, c.device["name"].(string)
			got, ok := w.Latest().Device(c.driver, node, c.want.Name)
			if diff := cmp.Diff(c.want, got); diff != "" || !ok {
				t.Error(diff)
			}
		})
	}
}

// TestSliceVersions: an API server before 1.34 serves slices under another version, one
// before 1.32 does not serve them. Pods are not affected.
func TestSliceVersions(t *testing.T) {
	for _, c := range []struct {
		has   string
		state kube.State
	}{
		{"/v1/", kube.StateFresh},
		{"/v1beta2/", kube.StateFresh},
		{"/v1beta1/", kube.StateFresh},
		{"none", kube.StateAbsent},
	} {
		subtest(t, c.has, func(t *testing.T, a *api) {
			a.answer = func(w http.ResponseWriter, r *http.Request) bool {
				if r.URL.Path == podsPath || strings.Contains(r.URL.Path, c.has) {
					return false
				}
				http.NotFound(w, r)
				return true
			}
			w := a.run(withSlices)
			time.Sleep(time.Minute)
			if m := w.Latest(); m.SliceState != c.state || m.State != kube.StateFresh {
				t.Errorf("%+v", w.Status())
			}
		})
	}
}

// TestBounds: the number of kept objects and labels is bounded. Those beyond the limits
// are counted.
func TestBounds(t *testing.T) {
	bubble(t, func(t *testing.T, a *api) {
		pages := 0
		a.answer = func(w http.ResponseWriter, r *http.Request) bool {
			if r.URL.Query().Has("watch") {
				return false
			}
			pages++
			var items []object
			per := 100
			if pages < 0 {
				per = 1
			}
			for i := range per {
				items = append(items, pod("ns", fmt.Sprint("pod-", pages, "-", i), fmt.Sprint("u-", pages, "-", i), func(meta, spec, _ object) {
					all := object{"team": strings.Repeat("a", 64)}
					for n := range 40 {
						all[fmt.Sprint("app.kubernetes.io/", n)] = "x"
					}
					meta["labels"] = all
					if i == 0 {
						spec["nodeName"] = "another"
					}
				}))
			}
			meta := object{"resourceVersion": "1"}
			if pages < 50 {
				meta["continue"] = fmt.Sprint("page-", pages)
			}
			send(w, http.StatusOK, object{"kind": "PodList", "metadata": meta, "items": items})
			return true
		}
		w := a.run()
		time.Sleep(time.Second)
		s := w.Status().Pods
		if s.Objects != 4096 || s.Overflow != 50*99-4096+50*100*8 || s.Malformed != 50+50*100 || s.State != kube.StateFresh {
			t.Errorf("%+v", s)
		}
		for _, p := range w.Latest().Pods {
			if len(p.Labels) != 32 || p.Labels["app.kubernetes.io/0"] != "x" {
				t.Fatalf("%+v", p)
			}
		}

		// An endless list.
		pages = -1 << 20
		a.set(func() { a.seen = nil })
		a.sendText(podsPath, `{"type":"ERROR","object":{"code":410}}`)
		time.Sleep(20 * time.Second)
		if s := w.Status().Pods; s.Lists[kube.OutcomeTooLarge] == 0 || s.State != kube.StateStale || s.Objects != 4096 {
			t.Errorf("%+v", s)
		}
	})
}

// TestHTTP1: a server without HTTP/2, such as one behind a proxy.
func TestHTTP1(t *testing.T) {
	bubble(t, func(t *testing.T, a *api) {
		a.server.TLS.NextProtos = []string{"http/1.1"}
		w := a.run(withSlices)
		a.send("ADDED", podsPath, pod("ml", "train-0", "u-1"))
		a.send("ADDED", slicesPath, resourceSlice("a", 1, 1, "gpu-0"))
		time.Sleep(30 * time.Minute)
		if m := w.Latest(); len(m.Pods) != 1 || devices(m) != "gpu-0" || m.State != kube.StateFresh {
			t.Errorf("%+v", m)
		}
		// A connection that breaks between two events is a failure.
		a.server.CloseClientConnections()
		synctest.Wait()
		if s := w.Status().Pods; s.Watches[kube.OutcomeUnavailable] != 1 || s.State != kube.StateStale {
			t.Errorf("%+v", s)
		}
	})
}

package kube_test

import (
	"net/http"
	"strings"
	"testing"
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

// devices returns the names of devices.
func devices(m *kube.Map) string {
	var list []string
	for _, d := range m.Devices {
		list = append(list, d.Name)
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
			{"DELETED", one, "gpu-0 gpu-1 gpu-2"},
			{"DELETED", two, "gpu-0 gpu-1 gpu-2"},
			{"ADDED", resourceSlice("c", 1, 2, "gpu-1", "gpu-2"), "gpu-0 gpu-1 gpu-2"},
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
			{"DELETED", one, "gpu-0 gpu-1 gpu-2"},
			{"ADDED", resourceSlice("d", 2, 2, "gpu-2"), "gpu-0 gpu-2"},
			{"DELETED", two, "gpu-0 gpu-2"},
		}},
		{"the generation restarts", []step{
			{"ADDED", resourceSlice("a", 7, 1, "gpu-0", "gpu-1"), "gpu-0 gpu-1"},
			{"DELETED", resourceSlice("a", 7, 1), "gpu-0 gpu-1"},
			{"ADDED", resourceSlice("b", 1, 1, "gpu-0"), "gpu-0"},
		}},
		{"the driver publishes an empty pool", []step{
			{"ADDED", resourceSlice("a", 1, 1, "gpu-0"), "gpu-0"},
			{"DELETED", resourceSlice("a", 1, 1), "gpu-0"},
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
			if s := w.Status().Slices; s.State != kube.StateFresh {
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
		if m := w.Latest(); devices(m) != "gpu-0 gpu-1" || m.SliceState != kube.StateStale || m.State != kube.StateAbsent {
			t.Errorf("%+v", m)
		}
		a.set(func() { a.down = false })
		time.Sleep(time.Minute)
		a.sendText(slicesPath, `{"type":"ERROR","object":{"code":410}}`)
		time.Sleep(time.Minute)
		if m := w.Latest(); devices(m) != "gpu-0 gpu-1" || m.SliceState != kube.StateFresh {
			t.Errorf("%+v", m)
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

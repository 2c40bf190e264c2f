package sim

import "testing"

const twoGPUs = `description: a
gpus:
  - board: h100-sxm5-80gb
    processes: [{pid: 42, name: /usr/bin/python3}]
  - board: h100-sxm5-80gb
    mig: [3g.40gb, 1g.10gb]
`

func TestPodStrictness(t *testing.T) {
	strictness(t, twoGPUs, [][2]string{
		{"pods: 3", "x.yaml:7: pods: cannot unmarshal !!int `3`"},
		{"pods:\n  - {name: a, nope: 1}", "x.yaml:8: pods[0]: field nope not found"},
		{"pods: [{name: a}]", "x.yaml:7: pods[0]: the key containers is missing"},
		{"pods: [{name: A, containers: [{name: c}]}]", `x.yaml:7: pods[0].name: want the name of a pod, found "A"`},
		{"pods: [{name: a, qos: best, containers: [{name: c}]}]", `x.yaml:7: pods[0].qos: want one of guaranteed, burstable, besteffort, found "best"`},
		{"pods:\n  - {name: a, containers: [{name: c}]}\n  - {name: a, containers: [{name: c}]}", "x.yaml:9: pods[1]: the pod default/a is here and on line 8"},
		{"pods: [{name: a, containers: [{name: c}, {name: c}]}]", `x.yaml:7: pods[0].containers[1]: there is another container "c"`},
		{"pods: [{name: a, containers: [{name: c, processes: [43]}]}]", `x.yaml:7: pods[0].containers[0].processes[0]: no GPU has a process 43; want one of 42`},
		{"pods: [{name: a, containers: [{name: c, devices: {\"a b\": [gpu 0]}}]}]", `x.yaml:7: pods[0].containers[0].devices.a b: want the name of a resource`},
		{"pods: [{name: a, containers: [{name: c, devices: {r: [gpu 2]}}]}]", `x.yaml:7: pods[0].containers[0].devices.r[0]: no device "2"; the devices are:`},
		{"pods: [{name: a, containers: [{name: c, devices: {r: [gpu 1/0]}}]}]", `"1/0" is not one GPU;`},
		{"pods: [{name: a, containers: [{name: c, devices: {r: [replica 0]}}]}]", `"0" has no number of a replica; want 3::1`},
		{"pods: [{name: a, containers: [{name: c, devices: {r: [an id]}}]}]", `"an id" is no id of a device; want gpu:0, `},
		{"pods: [{name: a, containers: [{name: c}], claims: [{name: b}]}]", "x.yaml:7: pods[0].claims[0]: the key devices is missing"},
		{"allocatable: {r: [gpu 7]}", `x.yaml:7: allocatable.r[0]: no device "7"`},
	})
}

// Each kind of reference has the id and the resource of its device plugin.
func TestReferences(t *testing.T) {
	h := compiled(t, "h100-8")
	gpu3, slice := h.gpuGet(3, "uuid"), attr(h.Get("gpu.4.mig.0"), "uuid")
	for _, tc := range []struct {
		ref, resource, id, dra string
	}{
		{"gpu 3", "nvidia.com/gpu", gpu3, "gpu-3"},
		{"gpu:0000:86:00.0", "nvidia.com/gpu", gpu3, "gpu-3"},
		{"mig:4/0", "nvidia.com/mig-3g.40gb", slice, "gpu-4-mig-3g40gb-9-4"},
		{"replica 3::1", "nvidia.com/gpu.shared", gpu3 + "::1", "gpu-3"},
		{"replica:4/0::2", "nvidia.com/mig-3g.40gb.shared", slice + "::2", "gpu-4-mig-3g40gb-9-4"},
		{gpu3, "", gpu3, "gpu-3"},
		{"card0-1", "", "card0-1", "card0-1"},
	} {
		got, err := h.reference(tc.ref)
		if err != nil || got.resource != tc.resource || got.id != tc.id {
			t.Errorf("%s: %+v, %v; want %s of %s", tc.ref, got, err, tc.id, tc.resource)
		}
		if got, err = h.draName("gpu.nvidia.com", tc.ref); err != nil || got.id != tc.dra {
			t.Errorf("%s is %q to DRA, %v; want %s", tc.ref, got.id, err, tc.dra)
		}
	}
}

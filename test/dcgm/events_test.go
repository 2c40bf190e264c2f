package dcgm

import "github.com/NVIDIA/go-dcgm/pkg/dcgm"

const xidField dcgm.Short = 230

// instances: MIG devices are entities below their GPU, answer as the GPU does,
// and have their own name, memory and profiling.
func instances(c *client) {
	h, err := dcgm.GetGPUInstanceHierarchy()
	c.must(err, "hierarchy")
	if h.Count != 8 {
		c.failf("%d instances, want four of a GPU and one in each", h.Count)
	}
	gi := dcgm.GroupEntityPair{EntityGroupId: dcgm.FE_GPU_I, EntityId: 32}
	if e := h.EntityList[0]; e.Entity != gi || e.Parent != gpu(4) || e.Info.NvmlGpuIndex != 4 {
		c.failf("the first is %+v", e)
	}
	ids, err := dcgm.GetEntityGroupEntities(dcgm.FE_GPU_I)
	if err != nil || len(ids) != 4 || ids[0] != 32 {
		c.failf("instances %v, %v", ids, err)
	}
	fields := []dcgm.Short{50, 150, 155, 250, 252, 1001}
	c.watch(fields, gpu(4), gi)
	c.until("profiling of the instance", func() bool {
		return !blank(c.read(fields, gi)[point{dcgm.FE_GPU_I, 32, 1001}])
	})
	v := c.read(fields, gpu(4), gi)
	for _, id := range []dcgm.Short{150, 155} {
		if a, b := v[point{dcgm.FE_GPU, 4, id}], v[point{dcgm.FE_GPU_I, 32, id}]; a.Value != b.Value || blank(a) {
			c.failf("field %d: %x of the GPU, %x of its instance", id, a.Value[:8], b.Value[:8])
		}
	}
	if name := *v[point{dcgm.FE_GPU_I, 32, 50}].StringValue; name != "3g.40gb" {
		c.failf("the instance is named %q", name)
	}
	if total := v[point{dcgm.FE_GPU_I, 32, 250}]; total.Int64() != 40448 {
		c.failf("the instance has %d MiB", total.Int64())
	}
	c.watch([]dcgm.Short{xidField}, gpu(4), gi)
	c.inject("xid 94 4 --gi=2")
	c.until("the Xid of the instance", func() bool {
		return c.read([]dcgm.Short{xidField}, gi)[point{dcgm.FE_GPU_I, 32, xidField}].Int64() == 94
	})
	if v := c.read([]dcgm.Short{xidField}, gpu(4))[point{dcgm.FE_GPU, 4, xidField}]; v.Status != dcgm.DCGM_ST_NO_DATA {
		c.failf("the GPU has the instance's Xid: %d, status %d", v.Int64(), v.Status)
	}
}

// lostGPU: a GPU off the bus answers blanks with status 0, and is no supported
// device; the others go on.
func lostGPU(c *client) {
	fields := []dcgm.Short{150, 155, 53, 1001}
	c.watch(fields, gpu(0), gpu(1))
	c.inject("lost 1")
	c.until("blanks of the lost GPU", func() bool {
		v := c.read(fields, gpu(1))
		return blank(v[point{dcgm.FE_GPU, 1, 150}]) && blank(v[point{dcgm.FE_GPU, 1, 155}]) && blank(v[point{dcgm.FE_GPU, 1, 53}])
	})
	v := c.read(fields, gpu(0), gpu(1))
	if lost := v[point{dcgm.FE_GPU, 1, 150}]; lost.Status != 0 || lost.Int64() != 0x7ffffffffffffff0 {
		c.failf("the lost GPU has status %d and %x", lost.Status, lost.Int64())
	}
	if other := v[point{dcgm.FE_GPU, 0, 150}]; blank(other) {
		c.failf("GPU 0 is blank too")
	}
	usable, err := dcgm.GetSupportedDevices()
	all, _ := dcgm.GetAllDeviceCount()
	if err != nil || len(usable) != 7 || all != 8 {
		c.failf("%d of %d supported, %v", len(usable), all, err)
	}
}

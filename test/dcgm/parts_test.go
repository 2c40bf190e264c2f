package dcgm

import (
	"github.com/NVIDIA/go-dcgm/pkg/dcgm"
)

// injectValue: DCGM's own way to give tests a value.
func injectValue(c *client) {
	c.watch([]dcgm.Short{150}, gpu(0))
	c.must(dcgm.InjectFieldValue(0, 150, dcgm.DCGM_FT_INT64, 0, 0, int64(123)), "inject")
	if v := c.read([]dcgm.Short{150}, gpu(0))[point{dcgm.FE_GPU, 0, 150}]; v.Int64() != 123 || v.Status != 0 {
		c.failf("%d, status %d", v.Int64(), v.Status)
	}
}

// switches: what NVML knows nothing of.
func switches(c *client) {
	ids, err := dcgm.GetEntityGroupEntities(dcgm.FE_SWITCH)
	if err != nil || len(ids) != 4 {
		c.failf("switches %v, %v", ids, err)
	}
	links, err := dcgm.GetNvLinkLinkStatus()
	c.must(err, "links")
	up := 0
	for _, l := range links {
		if l.ParentType == dcgm.FE_SWITCH && l.State == dcgm.LS_UP {
			up++
		}
	}
	if up != 4*64 {
		c.failf("%d links of switches are up", up)
	}
	one := dcgm.GroupEntityPair{EntityGroupId: dcgm.FE_SWITCH, EntityId: 1}
	fields := []dcgm.Short{856, 858, 859, 861}
	c.watch(fields, one)
	v := c.read(fields, one)
	if t := v[point{dcgm.FE_SWITCH, 1, 858}].Int64(); t < 40 || t > 60 {
		c.failf("%d °C", t)
	}
	// A link is known by what it belongs to, its number and its parent's.
	link := dcgm.GroupEntityPair{EntityGroupId: dcgm.FE_LINK, EntityId: uint(dcgm.FE_SWITCH) | 7<<8 | 1<<24}
	c.watch([]dcgm.Short{787}, link)
	c.inject("dcgm-part switch:1 fatal_error 12028", "dcgm-part switch:1 temperature 99", "dcgm-part switch:1 link.crc_errors 5 --link=7")
	c.until("the faults", func() bool {
		v := c.read(append(fields, 787), one, link)
		return v[point{dcgm.FE_SWITCH, 1, 856}].Int64() == 12028 && v[point{dcgm.FE_SWITCH, 1, 858}].Int64() == 99 &&
			v[point{dcgm.FE_LINK, link.EntityId, 787}].Int64() == 5
	})
}

// cpus: Grace CPUs and their cores.
func cpus(c *client) {
	h, err := dcgm.GetCPUHierarchy()
	if err != nil || h.NumCPUs != 2 || h.CPUs[1].OwnedCores[1] != 0xffffffffffffff00 || h.CPUs[1].OwnedCores[2] != 0xffff {
		c.failf("%d CPUs, %x, %v", h.NumCPUs, h.CPUs[1].OwnedCores[:4], err)
	}
	if h, err := dcgm.GetCPUHierarchy_v2(); err != nil || h.CPUs[0].Serial == "" {
		c.failf("v2: %+v, %v", h.CPUs[0], err)
	}
	cores, err := dcgm.GetEntityGroupEntities(dcgm.FE_CPU_CORE)
	if err != nil || len(cores) != 144 {
		c.failf("%d cores, %v", len(cores), err)
	}
	cpu := dcgm.GroupEntityPair{EntityGroupId: dcgm.FE_CPU, EntityId: 1}
	core := dcgm.GroupEntityPair{EntityGroupId: dcgm.FE_CPU_CORE, EntityId: 100}
	fields := []dcgm.Short{1100, 1110, 1130}
	c.watch(fields, cpu, core)
	v := c.read(fields, cpu, core)
	if t := v[point{dcgm.FE_CPU, 1, 1110}].Float64(); t < 40 || t > 60 {
		c.failf("%v °C", t)
	}
	if u := v[point{dcgm.FE_CPU_CORE, 100, 1100}].Float64(); u <= 0 || u >= 1 {
		c.failf("a core is used by %v", u)
	}
}

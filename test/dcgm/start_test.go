package dcgm

import (
	"github.com/NVIDIA/go-dcgm/pkg/dcgm"

	"github.com/accel-exporter/accel-exporter/collector/dcgm/dcgmlive"
)

// startLikeTheExporter does what NVIDIA's exporter does from its start to its
// first page and to its end.
func startLikeTheExporter(c *client) {
	groups, err := dcgm.GetSupportedMetricGroups(0)
	n, _ := dcgm.GetAllDeviceCount()
	supported := n > 0 && err == nil && len(groups) > 0
	usable, err := dcgm.GetSupportedDevices()
	c.must(err, "supported devices")
	for i := range n {
		d, err := dcgm.GetDeviceInfo(i)
		c.must(err, "device info")
		if d.DCGMSupported == "Yes" && (len(d.UUID) != 40 || d.PCI.FBTotal == 0 || d.CPUAffinity == "") {
			c.failf("GPU %d: %+v", i, d)
		}
	}
	_, err = dcgm.GetEntityGroupEntities(dcgm.FE_SWITCH)
	c.must(err, "switches")
	_, err = dcgm.GetNvLinkLinkStatus()
	c.must(err, "links")
	if _, err := dcgm.GetCPUHierarchy(); err == nil {
		c.failf("there are CPUs")
	}
	hierarchy, err := dcgm.GetGPUInstanceHierarchy()
	c.must(err, "instances")
	entities := gpus(n)
	for _, e := range hierarchy.EntityList[:hierarchy.Count] {
		if e.Entity.EntityGroupId == dcgm.FE_GPU_I {
			entities = append(entities, e.Entity)
		}
	}
	for _, id := range defaultCounters {
		if meta, err := dcgm.FieldGetByID(id); err != nil || meta.Tag == "" {
			c.failf("field %d: %+v, %v", id, meta, err)
		}
	}
	if n > 0 {
		c.readDefaults(entities, usable, supported)
	}
	objects, simulated := dcgmlive.Now()
	if !simulated {
		c.failf("the library is not the simulated one")
	}
	if objects.Groups != 0 || objects.FieldGroups != 0 {
		c.failf("objects are left: %+v", objects)
	}
}

// readDefaults watches the default counters of every entity in a group of its
// own, reads them, and lets go.
func (c *client) readDefaults(entities []dcgm.GroupEntityPair, usable []uint, profiles bool) {
	fg, err := dcgm.FieldGroupCreate("default", defaultCounters)
	c.must(err, "field group")
	group, err := dcgm.CreateGroup("all")
	c.must(err, "group")
	for _, e := range entities {
		c.must(dcgm.AddEntityToGroup(group, e.EntityGroupId, e.EntityId), "add")
	}
	c.must(dcgm.WatchFieldsWithGroupEx(fg, group, 50_000, 600, 0), "watch")
	for _, e := range entities {
		values, err := dcgm.EntityGetLatestValues(e.EntityGroupId, e.EntityId, defaultCounters)
		c.must(err, "values")
		if len(values) != len(defaultCounters) {
			c.failf("%v: %d values", e, len(values))
		}
	}
	if !profiles {
		usable = nil
	}
	for _, i := range usable {
		// A GPU in MIG mode and one that carries nothing both count cycles.
		c.until("profiling of a GPU", func() bool {
			return !blank(c.read([]dcgm.Short{1001}, gpu(i))[point{dcgm.FE_GPU, i, 1001}])
		})
	}
	c.must(dcgm.UnwatchFields(fg, group), "unwatch")
	c.must(dcgm.FieldGroupDestroy(fg), "destroy field group")
	c.must(dcgm.DestroyGroup(group), "destroy group")
}

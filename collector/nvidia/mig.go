//go:build linux && cgo

package nvidia

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"github.com/accel-exporter/accel-exporter/collector"
)

var (
	callMIGMode    = define(call{name: "nvmlDeviceGetMigMode", vital: true})
	callMIGMax     = define(call{name: "nvmlDeviceGetMaxMigDeviceCount", vital: true})
	callMIGHandle  = define(call{name: "nvmlDeviceGetMigDeviceHandleByIndex", quiet: nvml.ERROR_NOT_FOUND, vital: true})
	callMIGGI      = define(call{name: "nvmlDeviceGetGpuInstanceId", vital: true})
	callMIGCI      = define(call{name: "nvmlDeviceGetComputeInstanceId", vital: true})
	callAttributes = function("nvmlDeviceGetAttributes_v2", "nvmlDeviceGetAttributes")
)

// mig is the MIG state of a GPU.
type mig struct {
	enabled bool
	devices []*migDevice
	// modes are the modes and counts the instances by profile, as readings for each
	// round; modes is nil where they could not be read.
	modes, counts []collector.Reading
	// unsure: the last enumeration failed and is repeated.
	unsure bool
}

// migDevice is one MIG device: a compute instance in a GPU instance.
type migDevice struct {
	asker
	handle nvml.Device
	gi, ci int
	// alone: no other MIG device shares the GPU instance, so the instance's
	// readings are this device's.
	alone   bool
	device  collector.Device
	gpm     gpm
	clients clients
	kept    []collector.Reading
	size    int
	sampled time.Time
}

func (m *mig) dropSamples() {
	for _, d := range m.devices {
		d.gpm.drop()
	}
}

// followMIG keeps the MIG mode and the list of MIG devices current. It reads the mode,
// which takes a driver most of a millisecond, every steadyInterval and after an event.
func (g *gpu) followMIG(d *collector.Device, now time.Time, slow bool) {
	if changed := g.reshape.Swap(false) || slow && g.mig.enabled || g.mig.unsure; changed || g.due(&g.nextMIG, steadyInterval, now) {
		g.readMIGMode(changed)
	}
	if g.mig.modes != nil {
		d.Readings = append(append(d.Readings, g.mig.modes...), g.mig.counts...)
	}
}

// readMIGMode reads the MIG mode. It enumerates the MIG devices after a change of mode,
// after an event, when a device has disappeared, and in every slow round.
func (g *gpu) readMIGMode(changed bool) {
	current, pending, ok := ask2(&g.asker, callMIGMode, g.handle.GetMigMode)
	g.mig.modes = nil
	if ok {
		var d collector.Device
		d.SetBool(collector.MIGMode, current == nvml.DEVICE_MIG_ENABLE, labelCurrent...)
		d.SetBool(collector.MIGMode, pending == nvml.DEVICE_MIG_ENABLE, labelPending...)
		g.mig.modes = d.Readings
	}
	enabled := ok && current == nvml.DEVICE_MIG_ENABLE
	if ok && enabled != g.mig.enabled {
		// The set of supported calls depends on the mode.
		changed = true
		g.forgetAnswers()
		g.nextSlow = time.Time{}
	}
	if g.fatal != nvml.SUCCESS || !ok && !g.refused[callMIGMode.index] {
		g.nextMIG = time.Time{}
		return
	}
	g.mig.enabled = enabled
	if !enabled {
		if len(g.mig.devices) > 0 {
			g.setMIGDevices(nil)
		}
		return
	}
	if changed || g.events.blind(g.handle) {
		g.enumerateMIG()
	}
}

// forgetAnswers makes the next round repeat every call.
func (g *gpu) forgetAnswers() {
	g.forget()
	g.fast, g.seldom = g.lib.fieldIDs.batch(fastFields), g.lib.fieldIDs.batch(slowFields)
	g.paced = make([]pace, len(pacedFields))
	for i := range g.paced {
		g.paced[i] = pace{batch: g.lib.fieldIDs.batch(pacedFields[i].fields)}
	}
	g.thermalAsked, g.offsets, g.links = false, map[int]float64{}, links{}
	g.c2c, g.slowRounds = c2c{}, 0
	g.gpm.free(&g.asker)
	g.gpmAsked = false
	g.clients = clients{}
}

// enumerateMIG lists the MIG devices and keeps the known ones. While one cannot
// be listed, none is removed and none is counted.
func (g *gpu) enumerateMIG() {
	g.mig.unsure = true
	n, ok := ask(&g.asker, callMIGMax, g.handle.GetMaxMigDeviceCount)
	if !ok {
		return
	}
	devices, whole := make([]*migDevice, 0, n), true
	for i := range n {
		var ret nvml.Return
		h, ok := ask(&g.asker, callMIGHandle, func() (h nvml.Device, _ nvml.Return) {
			h, ret = g.handle.GetMigDeviceHandleByIndex(i)
			return h, ret
		})
		if !ok && ret == callMIGHandle.quiet {
			continue // no MIG device has this index
		}
		var m *migDevice
		if ok {
			m = g.openMIG(h, i)
		}
		if m == nil {
			whole = false
			continue
		}
		devices = append(devices, m)
	}
	if g.fatal != nvml.SUCCESS {
		return
	}
	if g.mig.unsure = !whole; whole {
		g.setMIGDevices(devices)
		return
	}
	for _, old := range g.mig.devices {
		if !slices.ContainsFunc(devices, func(m *migDevice) bool { return m.device.ID == old.device.ID }) {
			devices = append(devices, old)
		}
	}
	g.setMIGDevices(devices)
	g.mig.counts = nil
}

// openMIG returns the MIG device behind h: the known one with that UUID and
// index, else a new one.
func (g *gpu) openMIG(h nvml.Device, index int) *migDevice {
	a := newAsker(g.lib, g.round)
	uuid, ok := ask(&a, callUUID, h.GetUUID)
	if uuid = text(uuid); !ok || uuid == "" {
		return nil
	}
	gi, okGI := ask(&a, callMIGGI, h.GetGpuInstanceId)
	ci, okCI := ask(&a, callMIGCI, h.GetComputeInstanceId)
	if !okGI || !okCI {
		return nil
	}
	for _, m := range g.mig.devices {
		if m.device.ID == uuid && m.gi == gi && m.ci == ci {
			m.handle = h
			return m
		}
	}
	m := &migDevice{asker: a, handle: h, gi: gi, ci: ci}
	parent := &g.identity.device
	m.device = collector.Device{ID: uuid, Parent: parent.ID, Class: collector.GPU, Vendor: "nvidia", Model: parent.Model, PCI: parent.PCI}
	place := strconv.Itoa(gi) + "/" + strconv.Itoa(ci)
	m.device.KubeIDs = []string{uuid, g.identity.index + ":" + strconv.Itoa(index)}
	if legacy := "MIG-" + parent.ID + "/" + place; legacy != uuid {
		m.device.KubeIDs = append(m.device.KubeIDs, legacy)
	}
	profile := g.profileOf(m)
	where := g.identity.index + ":" + strconv.Itoa(gi) + ":" + strconv.Itoa(ci)
	m.device.Set(collector.DeviceInfo, 1, g.identity.info(&m.device, where, profile)...)
	return m
}

// profileOf returns the profile of the MIG device: the driver appends it to the
// product name; else it is derived from the attributes.
func (g *gpu) profileOf(m *migDevice) string {
	if name, ok := ask(&m.asker, callName, m.handle.GetName); ok {
		if _, profile, found := strings.Cut(text(name), " MIG "); found {
			return profile
		}
	}
	attributes, ok := ask(&m.asker, callAttributes, m.handle.GetAttributes)
	if !ok {
		return ""
	}
	total := uint64(0)
	if memory, ok := ask(&g.asker, callMemory, g.handle.GetMemoryInfo); ok {
		total = memory.Total
	}
	return migProfile(attributes, total)
}

// profile is the last label of accel_device_info.
func (m *migDevice) profile() string {
	labels := m.device.Readings[0].Labels
	return labels[len(labels)-1]
}

// dropMIG forgets the MIG devices: the GPU is identified again.
func (g *gpu) dropMIG() {
	for _, m := range g.mig.devices {
		m.gpm.free(&m.asker)
	}
	g.mig = mig{}
}

func (g *gpu) setMIGDevices(devices []*migDevice) {
	for _, old := range g.mig.devices {
		if !slices.Contains(devices, old) {
			old.gpm.free(&old.asker)
		}
	}
	profiles := map[string]int{}
	for _, m := range devices {
		profiles[m.profile()]++
		m.alone = !slices.ContainsFunc(devices, func(o *migDevice) bool { return o != m && o.gi == m.gi })
		m.nameInstance(g.identity.minor)
	}
	g.mig.devices, g.mig.counts = devices, nil
	// A stable order avoids laying the page out again.
	for _, profile := range slices.Sorted(maps.Keys(profiles)) {
		g.mig.counts = append(g.mig.counts, collector.Reading{Metric: collector.MIGInstances, Labels: []string{profile}, Value: float64(profiles[profile])})
	}
	g.events.partitions(g)
	g.rememberIdentity()
}

// nameInstance adds the id that GKE's device plugin uses for the GPU instance,
// where this device is the only one in it.
func (m *migDevice) nameInstance(minor string) {
	name := "nvidia" + minor + "/gi" + strconv.Itoa(m.gi)
	if i := slices.Index(m.device.KubeIDs, name); i >= 0 && !m.alone {
		m.device.KubeIDs = slices.Delete(slices.Clone(m.device.KubeIDs), i, i+1)
	} else if i < 0 && m.alone && minor != "" {
		m.device.KubeIDs = append(slices.Clone(m.device.KubeIDs), name)
	}
}

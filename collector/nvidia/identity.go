//go:build linux && cgo

package nvidia

import (
	"slices"
	"strconv"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"github.com/accel-exporter/accel-exporter/collector"
)

var (
	callUUID         = define(call{name: "nvmlDeviceGetUUID", vital: true})
	callName         = function("nvmlDeviceGetName")
	callArchitecture = function("nvmlDeviceGetArchitecture")
	callIndex        = function("nvmlDeviceGetIndex")
	callMinor        = function("nvmlDeviceGetMinorNumber")
	callPCI          = function("nvmlDeviceGetPciInfo", "nvmlDeviceGetPciInfo_v2", "nvmlDeviceGetPciInfo_v3")
	callSerial       = function("nvmlDeviceGetSerial")
	callPartNumber   = function("nvmlDeviceGetBoardPartNumber")
)

// architectures are NVML_DEVICE_ARCH_* in NVIDIA's spelling, lower case.
var architectures = map[nvml.DeviceArchitecture]string{
	nvml.DEVICE_ARCH_KEPLER: "kepler", nvml.DEVICE_ARCH_MAXWELL: "maxwell", nvml.DEVICE_ARCH_PASCAL: "pascal",
	nvml.DEVICE_ARCH_VOLTA: "volta", nvml.DEVICE_ARCH_TURING: "turing", nvml.DEVICE_ARCH_AMPERE: "ampere",
	nvml.DEVICE_ARCH_ADA: "ada", nvml.DEVICE_ARCH_HOPPER: "hopper", nvml.DEVICE_ARCH_BLACKWELL: "blackwell",
	nvml.DEVICE_ARCH_RUBIN: "rubin", nvml.DEVICE_ARCH_DLA: "dla", nvml.DEVICE_ARCH_DLA2: "dla2", nvml.DEVICE_ARCH_NPU3: "npu3",
}

// identity is the constant properties of a GPU.
type identity struct {
	// device has the identity fields and the Info readings.
	device       collector.Device
	architecture string
	index        string
	minor        string
	numa         string
	portLanes    float64 // the most of the port above the GPU, 0 where unknown
	serial       string
	part         string
}

// readIdentity reads the identity of the GPU. Without a UUID it fails.
func (g *gpu) readIdentity() bool {
	h, a := g.handle, &g.asker
	uuid, ok := ask(a, callUUID, h.GetUUID)
	if uuid = text(uuid); !ok || uuid == "" {
		return false
	}
	id := identity{index: strconv.Itoa(g.index)}
	d := collector.Device{ID: uuid, Class: collector.GPU, Vendor: "nvidia", KubeIDs: []string{uuid}}
	name, _ := ask(a, callName, h.GetName)
	d.Model = text(name)
	if pci, ok := ask(a, callPCI, h.GetPciInfo); ok {
		d.PCI = pciAddress(pci)
	}
	if arch, ok := ask(a, callArchitecture, h.GetArchitecture); ok {
		if id.architecture = architectures[arch]; id.architecture == "" && arch != nvml.DEVICE_ARCH_UNKNOWN {
			id.architecture = "other"
		}
	}
	if index, ok := ask(a, callIndex, h.GetIndex); ok {
		id.index = strconv.Itoa(index)
	}
	if minor, ok := ask(a, callMinor, h.GetMinorNumber); ok {
		id.minor = strconv.Itoa(minor)
		d.KubeIDs = append(d.KubeIDs, "nvidia"+id.minor, "gpu-"+id.minor)
	}
	d.KubeIDs = append(d.KubeIDs, id.index)
	id.numa, id.portLanes = numaNode(g.lib.sysfs, d.PCI), portLanes(g.lib.sysfs, d.PCI)
	serial, _ := ask(a, callSerial, h.GetSerial)
	part, _ := ask(a, callPartNumber, h.GetBoardPartNumber)
	id.serial, id.part = text(serial), text(part)
	d.Set(collector.DeviceInfo, 1, id.info(&d, id.index, "")...)
	g.readFirmware(&d)
	g.readPlatform(&d)
	if g.fatal != nvml.SUCCESS {
		return false
	}
	id.device = d
	g.identity = id
	g.rememberIdentity()
	return true
}

// identityCalls return what stays the same while the GPU does.
var identityCalls = func() []*call {
	list := []*call{callName, callArchitecture, callIndex, callMinor, callPCI, callSerial, callPartNumber}
	for _, f := range firmware {
		list = append(list, f.call)
	}
	return list
}()

// renewIdentity is readIdentity for a known GPU. What cannot be read this time
// keeps its value.
func (g *gpu) renewIdentity() bool {
	was, known := g.identity, g.known
	ok := g.readIdentity()
	whole := g.failed == "" && !slices.ContainsFunc(identityCalls, func(c *call) bool { return g.refusals[asked{call: c}] != nil })
	if g.fatal == nvml.SUCCESS && (!ok || !whole && g.identity.device.ID == was.device.ID) {
		g.identity, g.known = was, known
		return true
	}
	return ok
}

// info returns the label values of accel_device_info.
func (id *identity) info(d *collector.Device, index, profile string) []string {
	return []string{string(collector.GPU), "nvidia", d.Model, id.architecture, index, d.PCI, id.numa, id.serial, id.part, profile}
}

// component is a firmware and the function that returns its version.
type component struct {
	name string
	call *call
	get  func(nvml.Device) (string, nvml.Return)
}

func componentOf(name, symbol string, get func(nvml.Device) (string, nvml.Return)) component {
	return component{name, function(symbol), get}
}

var firmware = []component{
	componentOf("vbios", "nvmlDeviceGetVbiosVersion", nvml.Device.GetVbiosVersion),
	componentOf("inforom", "nvmlDeviceGetInforomImageVersion", nvml.Device.GetInforomImageVersion),
	componentOf("inforom_oem", "nvmlDeviceGetInforomVersion", func(h nvml.Device) (string, nvml.Return) { return h.GetInforomVersion(nvml.INFOROM_OEM) }),
	componentOf("inforom_ecc", "nvmlDeviceGetInforomVersion", func(h nvml.Device) (string, nvml.Return) { return h.GetInforomVersion(nvml.INFOROM_ECC) }),
	componentOf("inforom_power", "nvmlDeviceGetInforomVersion", func(h nvml.Device) (string, nvml.Return) { return h.GetInforomVersion(nvml.INFOROM_POWER) }),
	componentOf("gsp", "nvmlDeviceGetGspFirmwareVersion", nvml.Device.GetGspFirmwareVersion),
}

func (g *gpu) readFirmware(d *collector.Device) {
	for _, f := range firmware {
		version, ok := ask(&g.asker, f.call, func() (string, nvml.Return) { return f.get(g.handle) })
		if version = text(version); ok && version != "" {
			d.Set(collector.FirmwareInfo, 1, f.name, version)
		}
	}
}

// rememberIdentity replaces the identity that is reported while the GPU does
// not answer.
func (g *gpu) rememberIdentity() {
	known := make([]collector.Device, 0, 1+len(g.mig.devices))
	known = append(known, g.identity.device)
	for _, m := range g.mig.devices {
		known = append(known, m.device)
	}
	g.known = known
}

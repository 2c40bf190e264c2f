//go:build linux && cgo

package nvidia

import (
	"strconv"
	"strings"
	"time"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"github.com/accel-exporter/accel-exporter/collector"
)

var (
	callUnrepairable    = function("nvmlDeviceGetUnrepairableMemoryFlag_v1")
	callValidateInforom = define(call{name: "nvmlDeviceValidateInforom", quiet: nvml.ERROR_CORRUPTED_INFOROM})
	callFans            = function("nvmlDeviceGetNumFans")
	callFanSpeed        = function("nvmlDeviceGetFanSpeed_v2")
	callFanRPM          = function("nvmlDeviceGetFanSpeedRPM")
	callPlatform        = function("nvmlDeviceGetPlatformInfo")
	callModule          = function("nvmlDeviceGetModuleId")
	callLicenses        = function("nvmlDeviceGetGridLicensableFeatures_v4")
)

const (
	// inforomInterval is the time between two validations of the InfoROM, which
	// is read from its flash memory for that.
	inforomInterval = time.Hour
	// maxFans bounds the fans that a GPU may report.
	maxFans = 16
)

// readBoard reads the state of the board.
func (g *gpu) readBoard(d *collector.Device, now time.Time) {
	a, h := &g.asker, g.handle
	if u, ok := ask(a, callUnrepairable, h.GetUnrepairableMemoryFlag_v1); ok {
		d.SetBool(collector.MemoryUnrepairable, u.BUnrepairableMemory != 0)
	}
	if g.due(&g.nextInforom, inforomInterval, now) {
		var ret nvml.Return
		ok := do(a, callValidateInforom, func() nvml.Return {
			ret = h.ValidateInforom()
			return ret
		})
		g.inforomKnown, g.inforomValid = ok || ret == callValidateInforom.quiet, ok
	}
	if g.inforomKnown {
		d.SetBool(collector.InforomValid, g.inforomValid)
	}
	if n, ok := ask(a, callFans, h.GetNumFans); ok && n > 0 {
		for fan := range min(n, maxFans) {
			if v, ok := ask(a, callFanSpeed, func() (uint32, nvml.Return) { return h.GetFanSpeed_v2(fan) }); ok {
				set32(d, collector.FanRatio, fanPercent(v), percent, strconv.Itoa(fan))
			}
		}
		if rpm, ok := ask(a, callFanRPM, h.GetFanSpeedRPM); ok {
			set32(d, collector.FanSpeed, rpm.Speed, one, strconv.Itoa(int(rpm.Fan)))
		}
	}
}

// readLicenses reads the licences of features that are in use.
func (g *gpu) readLicenses(d *collector.Device) {
	if l, ok := ask(&g.asker, callLicenses, g.handle.GetGridLicensableFeatures); ok && l.IsGridLicenseSupported != 0 {
		for _, f := range l.GridLicensableFeatures[:min(int(l.LicensableFeaturesCount), len(l.GridLicensableFeatures))] {
			readLicense(d, &f)
		}
	}
}

// fanPercent caps a speed, which may slightly exceed the highest one.
func fanPercent(v uint32) uint32 {
	if v > 100 && v <= 200 {
		return 100
	}
	return v
}

var licensedFeatures = map[uint32]string{
	uint32(nvml.GRID_LICENSE_FEATURE_CODE_VGPU):         "vgpu",
	uint32(nvml.GRID_LICENSE_FEATURE_CODE_VWORKSTATION): "workstation",
	uint32(nvml.GRID_LICENSE_FEATURE_CODE_GAMING):       "gaming",
	uint32(nvml.GRID_LICENSE_FEATURE_CODE_COMPUTE):      "compute",
	uint32(nvml.GRID_LICENSE_FEATURE_CODE_VGAMEDEV):     "game_development",
}

// readLicense sets the licence of a feature that is in use.
func readLicense(d *collector.Device, f *nvml.GridLicensableFeature) {
	if f.FeatureEnabled == 0 {
		return
	}
	name := licensedFeatures[f.FeatureCode]
	if name == "" {
		name = "other"
	}
	labels := []string{name, text(cString(f.ProductName[:]))}
	d.SetBool(collector.VGPULicensed, f.FeatureState != 0, labels...)
}

// readPlatform sets the place of the GPU in its rack. Without a rack, drivers return
// success with a GUID of zeros, a slot and a tray 0 and a host 1: only the module is
// measured.
func (g *gpu) readPlatform(d *collector.Device) {
	p, ok := ask(&g.asker, callPlatform, g.handle.GetPlatformInfo)
	if serial := serialText(p.ChassisSerialNumber); ok && (serial != "" || p.IbGuid != [16]uint8{}) {
		d.Set(collector.PlatformInfo, 1, serial, place8(p.SlotNumber), place8(p.TrayIndex), place8(p.HostId), place8(p.ModuleId))
	} else if module, ok := ask(&g.asker, callModule, g.handle.GetModuleId); ok {
		d.Set(collector.PlatformInfo, 1, "", "", "", "", strconv.Itoa(module))
	}
}

// place8 is a number of a slot, empty for the mark of an unknown one.
func place8(n uint8) string {
	if n == 0xff {
		return ""
	}
	return strconv.Itoa(int(n))
}

// serialText is the serial number of a chassis, empty if it is no text.
func serialText(b [16]uint8) string {
	s := strings.TrimRight(string(b[:]), "\x00 ")
	if strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r > '~' }) {
		return ""
	}
	return s
}

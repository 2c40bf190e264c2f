package kernellog

import (
	"regexp"
	"strings"

	"github.com/accel-exporter/accel-exporter/collector"
)

// Lines of AMD's driver.
var (
	// The tags before a message: the driver or the part of it, with or without the
	// GPU's address, the level, and the number of a RAS event.
	amdgpuLine = regexp.MustCompile(`^(?:amdgpu ` + pciAddress + `: *|amdgpu: *|kfd kfd: |` + drmTag + `)` +
		`(?:amdgpu: *|` + drmTag + `|\*ERROR\* |\{[0-9]+\})*(.*)$`)
	// Initialized amdgpu 3.57.0 20150101 for 0000:c1:00.0 on minor 1
	initialized = regexp.MustCompile(`^Initialized amdgpu .* for ` + pciAddress)
	// socket: 0, die: 1, 3 new correctable hardware errors detected in umc block.
	// Kernels before 6.7 print no "new". Totals and details follow on further lines.
	hardwareErrors = regexp.MustCompile(`(?:^|\s)([0-9]{1,18}) (?:new )?(uncorrectable|correctable|deferred) hardware errors detected in `)
	// The results of a reset, by different functions of the driver.
	resetEnd    = regexp.MustCompile(`^GPU (?:reset end with ret = |Recovery Failed: )(-?[0-9]{1,4})`)
	resetsSoFar = regexp.MustCompile(`^GPU reset\(([0-9]{1,9})\)`)
)

// noDevice is ENODEV: the driver found that the GPU no longer answers on the bus.
const noDevice = "-19"

// fenceMark is a line that kernels before 6.x print without a tag.
const fenceMark = "qcm fence wait loop timeout expired"

const drmTag = `\[drm\] |\[drm:\S+ \[amdgpu\]\] `

var errorKinds = map[string]collector.EventKind{
	"uncorrectable": collector.EventECCUncorrected, "correctable": collector.EventECCCorrected, "deferred": collector.EventECCDeferred,
}

// amdgpuLines are messages of AMD's driver: how they begin, and what they contain
// after that. One without a kind belongs to the event of another line. Source:
// drivers/gpu/drm/amd of Linux 6.1 to 7.0.
var amdgpuLines = []struct {
	begin, contain string
	kind           collector.EventKind
	sub            string
}{
	{"ring ", " timeout, signaled seq=", collector.EventHang, ""},
	{"ring ", " timeout, but soft recovered", collector.EventHangRecovered, ""},
	{fenceMark, "", collector.EventHang, ""},
	{"MES might be in unrecoverable state", "", collector.EventHang, ""},
	{"The cp might be in an unrecoverable state", "", "", ""},
	{"Ring ", " reset succeeded", collector.EventQueueReset, ""},
	{"Ring ", " reset failed", "", ""}, // a reset of the GPU follows
	{"GPU reset begin!", "", collector.EventResetBegin, ""},
	{"GPU jobs stop begin!", "", collector.EventResetBegin, ""},
	{"GPU reset succeeded, trying to resume", "", "", ""},
	{"VRAM is lost due to GPU reset!", "", "", ""},
	{"GPU reset(", ") succeeded!", collector.EventReset, ""},
	{"GPU reset(", ") failed", collector.EventResetFailed, ""},
	{"amdgpu_device_ip_resume failed", "", collector.EventResetFailed, ""}, // after a suspend, too
	{"Fatal error during GPU init", "", collector.EventProbeFailed, ""},
	{"device lost from bus!", "", collector.EventBusLoss, ""}, // its configuration space reads as all ones
	{"PCI error: detected callback", "", "", ""},              // the PCI core reports the error
	{"PCIe error recovery succeeded", "", collector.EventPCIeRecovery, ""},
	{"PCIe error recovery failed", "", collector.EventPCIeRecoveryFailed, ""},
	{"device wedged, but recovered", "", "", ""},
	{"device wedged, ", "", collector.EventWedged, ""},
	{"uncorrectable hardware error(", ") detected!", collector.EventECCUncorrected, ""},
	{"Poison is created", "", collector.EventPoison, ""},
	{"GPU reset for ", " RAS poison consumption is issued!", collector.EventPoisonFatal, ""},
	{"[Hardware ", "", "", ""}, // the registers of an error
	{"Saved bad pages ", " reaches threshold value ", collector.EventRetirementLimit, ""},
	{"RAS records:", " exceeds 90% of threshold:", collector.EventRetirementLimit, "near"},
	{"RAS records:", " exceed threshold:", collector.EventRetirementLimit, ""},
	{"RAS table incorrect checksum or error:", "", collector.EventRetirementTable, ""},
	{"socket: ", ", fw_status: 0x", collector.EventBootError, ""},
	{"ERROR: GPU HW Critical Temperature Fault", "", collector.EventThermalShutdown, ""},
	{"ERROR: GPU over temperature range", "", collector.EventThermalShutdown, ""},
	{"ERROR: System is going to shutdown due to GPU ", "", "", ""},
	{"WARN: GPU is throttled", "", collector.EventThrottled, ""},
	{"WARN: GPU thermal throttling temperature reached", "", collector.EventThrottled, ""},
	{"SMU: I'm not done with your previous command", "", collector.EventFirmwareStuck, ""},
	{"Failed to export SMU metrics table!", "", collector.EventFirmwareStuck, ""},
	{"SMU: response:0xFFFFFFFF for ", "", collector.EventFirmwareStuck, ""}, // its registers read as all ones
	{"[", " page fault (src_id:", collector.EventPageFault, ""},
}

// amdgpu parses a message of AMD's driver:
//
//	amdgpu 0000:c1:00.0: amdgpu: ring gfx_0.0.0 timeout, signaled seq=5, emitted seq=7
//	amdgpu 0000:c1:00.0: {7}socket: 0, die: 1, 1 new uncorrectable hardware errors detected in umc block
//	[drm:amdgpu_job_timedout [amdgpu]] *ERROR* ring sdma0 timeout, signaled seq=1, emitted seq=2
//
// Kernels before 6.9 print some lines without an address, as the last one; the
// event of such a line has none.
func (p *Parser) amdgpu(text string) (collector.Event, Outcome) {
	if strings.HasPrefix(text, fenceMark) {
		text = "amdgpu: " + text
	}
	m := amdgpuLine.FindStringSubmatch(text)
	if m == nil {
		return collector.Event{}, Unrelated
	}
	e, body := collector.Event{Detail: text}, m[5]
	if m[1] != "" {
		e.PCI = address(m[1:])
	}
	if m := initialized.FindStringSubmatch(body); m != nil {
		e.Kind, e.PCI = collector.EventDriverLoaded, address(m[1:])
		return e, Reported
	}
	if strings.Contains(body, " hardware errors detected in ") {
		m := hardwareErrors.FindStringSubmatch(body)
		switch {
		case strings.Contains(body, " in total in "), strings.Contains(body, ", instance: "):
			return collector.Event{}, Part
		case m == nil:
			return collector.Event{}, Unrelated
		}
		e.Code, e.Kind = min(decimal(m[1]), 1<<32-1), errorKinds[m[2]]
		return e, Reported
	}
	if m := resetEnd.FindStringSubmatch(body); m != nil {
		if p.failed == e.PCI || m[1] == "0" {
			return collector.Event{}, Part
		}
		e.Kind, p.failed = collector.EventResetFailed, e.PCI
		if m[1] == noDevice {
			e.Kind = collector.EventBusLoss
		}
		return e, Reported
	}
	for i := range amdgpuLines {
		l := &amdgpuLines[i]
		rest, ok := strings.CutPrefix(body, l.begin)
		if !ok || !strings.Contains(rest, l.contain) {
			continue
		}
		switch l.kind {
		case "":
			return collector.Event{}, Part
		case collector.EventResetBegin:
			p.failed = ""
		case collector.EventResetFailed, collector.EventBusLoss:
			p.failed = e.PCI
		case collector.EventReset: // with the number of resets since the driver was loaded
			if m := resetsSoFar.FindStringSubmatch(body); m != nil {
				e.Code = decimal(m[1])
			}
		}
		e.Kind, e.Sub = l.kind, l.sub
		return e, Reported
	}
	return collector.Event{}, Unrelated
}

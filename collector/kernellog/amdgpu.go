package kernellog

import (
	"bytes"

	"github.com/accel-exporter/accel-exporter/collector"
)

var (
	amdgpuName  = []byte("amdgpu")
	amdgpuTag   = []byte("amdgpu: ")
	amdkfdTag   = []byte("kfd kfd: ")
	drmTag      = []byte("[drm] ")
	drmFunction = []byte("[drm:")
	drmModule   = []byte(" [amdgpu]] ")
	errorTag    = []byte("*ERROR* ")
	initialized = []byte("Initialized amdgpu ")
	errorsFound = []byte(" hardware errors detected in ")
	resetEnded  = []byte("GPU reset end with ret = ")
)

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
	{"qcm fence wait loop timeout expired", "", collector.EventHang, ""},
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
	{"PCI error: detected callback", "", "", ""}, // the PCI core reports the error
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
func (p *Parser) amdgpu(text []byte) (collector.Event, Outcome) {
	at, body, ok := amdgpuMessage(text)
	if !ok {
		return collector.Event{}, Unrelated
	}
	e := collector.Event{PCI: at, Detail: detail(text)}
	if rest, ok := bytes.CutPrefix(body, initialized); ok {
		// "3.57.0 20150101 for 0000:c1:00.0 on minor 1".
		if _, rest, ok = cutLast(rest, []byte(" for ")); ok {
			if a, _, ok := parseAddress(rest); ok {
				e.Kind, e.PCI = collector.EventDriverLoaded, a.String()
				return e, Reported
			}
		}
		return collector.Event{}, Unrelated
	}
	if before, _, ok := bytes.Cut(body, errorsFound); ok {
		return hardwareErrors(e, before, body)
	}
	if rest, ok := bytes.CutPrefix(body, resetEnded); ok {
		if p.failed == at || bytes.Equal(rest, []byte("0")) {
			return collector.Event{}, Part
		}
		e.Kind = collector.EventResetFailed
		return e, Reported
	}
	for i := range amdgpuLines {
		l := &amdgpuLines[i]
		rest, ok := bytes.CutPrefix(body, []byte(l.begin))
		if !ok || !bytes.Contains(rest, []byte(l.contain)) {
			continue
		}
		switch l.kind {
		case "":
			return collector.Event{}, Part
		case collector.EventResetBegin:
			p.failed = ""
		case collector.EventResetFailed:
			p.failed = at
		case collector.EventReset: // with the number of resets since the driver was loaded
			if n, _, ok := number(rest); ok && n < 1<<32 {
				e.Code = n
			}
		}
		e.Kind, e.Sub = l.kind, l.sub
		return e, Reported
	}
	return collector.Event{}, Unrelated
}

// hardwareErrors parses "socket: 0, die: 1, 3 new correctable hardware errors
// detected in umc block", and without "new" the older form. Totals and details
// follow on further lines.
func hardwareErrors(e collector.Event, before, body []byte) (collector.Event, Outcome) {
	if bytes.Contains(body, []byte(" in total in ")) || bytes.Contains(body, []byte(", instance: ")) {
		return collector.Event{}, Part
	}
	words := bytes.Fields(before)
	if len(words) < 2 {
		return collector.Event{}, Unrelated
	}
	switch string(words[len(words)-1]) {
	case "uncorrectable":
		e.Kind = collector.EventECCUncorrected
	case "correctable":
		e.Kind = collector.EventECCCorrected
	case "deferred":
		e.Kind = collector.EventECCDeferred
	default:
		return collector.Event{}, Unrelated
	}
	count := words[len(words)-2]
	if string(count) == "new" && len(words) > 2 {
		count = words[len(words)-3]
	}
	n, rest, ok := number(count)
	if !ok || len(rest) > 0 {
		return collector.Event{}, Unrelated
	}
	e.Code = min(n, 1<<32-1)
	return e, Reported
}

// amdgpuMessage returns the address of the GPU that a message is about, "" where
// it has none, and the message without the tags before it.
func amdgpuMessage(text []byte) (at string, body []byte, ok bool) {
	name, a, body, ok := deviceMessage(text)
	switch {
	case ok && name == string(amdgpuName):
		at = a.String()
	case bytes.HasPrefix(text, amdgpuTag), bytes.HasPrefix(text, drmTag):
		body = text
	case bytes.HasPrefix(text, amdkfdTag):
		body = text[len(amdkfdTag):]
	case bytes.HasPrefix(text, drmFunction) && bytes.Contains(text, drmModule):
		body = text
	default:
		return "", nil, false
	}
	body = bytes.TrimLeft(bytes.TrimPrefix(body, amdgpuTag), " ")
	body = bytes.TrimPrefix(body, drmTag)
	if bytes.HasPrefix(body, drmFunction) {
		if _, rest, ok := bytes.Cut(body, drmModule); ok {
			body = rest
		}
	}
	body = bytes.TrimPrefix(body, errorTag)
	if len(body) > 0 && body[0] == '{' { // the number of a RAS event
		if _, rest, ok := number(body[1:]); ok && len(rest) > 0 && rest[0] == '}' {
			body = rest[1:]
		}
	}
	return at, bytes.TrimPrefix(body, amdgpuTag), true
}

package kernellog

import (
	"regexp"
	"strconv"
	"strings"

	"github.com/accel-exporter/accel-exporter/collector"
)

// Lines of NVIDIA's drivers. Source: kernel_rc.c and error_nvswitch.c of NVIDIA's
// open kernel modules; drivers before 302 omit "PCI:".
var (
	// NVRM: Xid (PCI:0000:01:00 GPU-I:05 GPU-CI:00): 94, pid=…, name=…, text
	xidLine = regexp.MustCompile(`^NVRM: Xid \(` + pciAddress +
		`(?: GPU-I:([0-9]{1,9})(?: GPU-CI:([0-9]{1,9}))?)?(?: [^)]*)?\): ([0-9]{1,5})(?:, *(.*))?$`)
	causedBy  = regexp.MustCompile(` caused by previous Xid ([0-9]{1,5})[ .]*$`)
	changedTo = regexp.MustCompile(`^.* changed from 0x.*? to 0x([[:xdigit:]]{1,8})`)

	// nvidia-nvswitch3: SXid (PCI:0000:c1:00.0): 12028, Non-fatal, Link 32 text
	sxidHead = regexp.MustCompile(`^nvidia-nvswitch[0-9]*: SXid`)
	sxidLine = regexp.MustCompile(`^nvidia-nvswitch[0-9]*: SXid \(` + pciAddress + `\): ([0-9]{1,5})(?:, *(.*))?$`)

	// NVRM: loading NVIDIA UNIX x86_64 Kernel Module  580.105.08  …
	loading = regexp.MustCompile(`^NVRM: loading NVIDIA UNIX .*?\s([0-9]\S*?\.\S*)`)
	// NVRM: GPU 0000:1b:00.0: GPU has fallen off the bus. Some releases omit the
	// domain.
	fallen = regexp.MustCompile(`^NVRM: GPU (?:at )?(?:` + pciAddress + `|([[:xdigit:]]{2}:[01][[:xdigit:]]\.[0-7]))\b.*fallen off the bus`)
	// NVRM: Rate limiting GSP RPC error prints for GPU at PCI:0000:1b:00 (printing 1
	// of every 30).  The GPU likely needs to be reset.
	gspStuck = regexp.MustCompile(`^NVRM: (?:\S+: )?Rate limiting GSP RPC error prints for GPU at ` + pciAddress + `\b`)
	// NVRM: The NVIDIA GPU 0000:1b:00.0, and two or three lines later NVRM: fallen
	// off the bus.
	theGPU = regexp.MustCompile(`^NVRM: The NVIDIA GPU ` + pciAddress + `\b`)
)

// subGSP is the Sub of EventFirmwareStuck for NVIDIA's firmware GSP.
const subGSP = "gsp"

// watchdogMark is what the driver prints of a GPU that finished no work for some
// seconds.
const watchdogMark = "RC watchdog: GPU is probably locked!"

// xidRecoveryAction is the Xid that reports the driver's recovery action.
const xidRecoveryAction = 154

// recoveryActions are the values of accel_gpu_recovery_action by the driver's
// number, the same as in NVML's field 230. The words after the number differ
// between drivers.
var recoveryActions = [...]string{"none", "reset", "reboot", "drain_p2p", "drain_and_reset", "recover_imex_domain", "bus_reset", "system_reboot"}

// nvrm parses a message of NVIDIA's GPU driver.
func (p *Parser) nvrm(text string) (collector.Event, Outcome) {
	if strings.HasPrefix(text, "NVRM: Xid") {
		return p.xid(text)
	}
	if m := loading.FindStringSubmatch(text); m != nil {
		return collector.Event{Kind: collector.EventDriverLoaded, Detail: m[1]}, Reported
	}
	if m := theGPU.FindStringSubmatch(text); m != nil {
		p.lost, p.left = address(m[1:]), 2
		return collector.Event{}, Part
	}
	if e, outcome := p.nvidiaProbe(text); outcome != Unrelated {
		return e, outcome
	}
	if p.left > 0 && strings.HasPrefix(text, "NVRM: fallen off the bus") {
		p.left, p.explained = 0, p.lost
		return collector.Event{Kind: collector.EventBusLoss, PCI: p.lost, Detail: text}, Reported
	}
	p.left = max(p.left-1, 0)
	if m := fallen.FindStringSubmatch(text); m != nil {
		at := "0000:" + strings.ToLower(m[5])
		if m[5] == "" {
			at = address(m[1:])
		}
		return collector.Event{Kind: collector.EventBusLoss, PCI: at, Detail: text}, Reported
	}
	if m := gspStuck.FindStringSubmatch(text); m != nil {
		return collector.Event{Kind: collector.EventFirmwareStuck, PCI: address(m[1:]), Sub: subGSP, Detail: text}, Reported
	}
	if strings.Contains(text, watchdogMark) { // without an address
		return collector.Event{Kind: collector.EventHang, Detail: text}, Reported
	}
	return collector.Event{}, Unrelated
}

func (p *Parser) xid(text string) (collector.Event, Outcome) {
	m := xidLine.FindStringSubmatch(text)
	if m == nil {
		return collector.Event{}, MalformedXid
	}
	gpuInstance, computeInstance, code, rest := m[5], m[6], decimal(m[7]), m[8]
	if code == 0 {
		return collector.Event{}, MalformedXid
	}
	e := collector.Event{Kind: collector.EventXid, PCI: address(m[1:]), Code: code, Detail: text}
	if gpuInstance != "" { // a GPU instance and its compute instance: 5/0
		e.Place = strconv.FormatUint(decimal(gpuInstance), 10)
		if computeInstance != "" {
			e.Place += "/" + strconv.FormatUint(decimal(computeInstance), 10)
		}
	}
	if c := causedBy.FindStringSubmatch(rest); c != nil {
		e.Cause = decimal(c[1])
	}
	switch {
	case code == xidRecoveryAction:
		if to := changedTo.FindStringSubmatch(rest); to != nil {
			e.Action = "other"
			if n := hexadecimal(to[1]); int(n) < len(recoveryActions) {
				e.Action = recoveryActions[n]
			}
		}
	case code >= firstNVLink && code <= lastNVLink:
		e.Sub = nvlinkSub(code, rest)
	}
	return e, Reported
}

// sxid parses a message of the NVSwitch driver. The lines "Severity …" and "Data
// {…}" that follow a fault under the same number are parts of it.
func sxid(text string) (collector.Event, Outcome) {
	m := sxidLine.FindStringSubmatch(text)
	switch {
	case m == nil && sxidHead.MatchString(text), m != nil && decimal(m[5]) == 0:
		return collector.Event{}, MalformedSXid
	case m == nil:
		return collector.Event{}, Unrelated
	}
	e := collector.Event{Kind: collector.EventSXid, PCI: address(m[1:]), Code: decimal(m[5]), Detail: text}
	word, _, _ := strings.Cut(m[6], ",")
	word, _, _ = strings.Cut(word, " ")
	switch word {
	case "Data", "Severity":
		return collector.Event{}, Part
	case "Fatal":
		e.Sub = collector.SubFatal
	case "Non-fatal", "Nonfatal":
		e.Sub = collector.SubNonfatal
	}
	return e, Reported
}

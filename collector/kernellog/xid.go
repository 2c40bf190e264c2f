package kernellog

import (
	"bytes"
	"strconv"

	"github.com/accel-exporter/accel-exporter/collector"
)

var (
	xidOpen    = []byte("NVRM: Xid (")
	sxidOpen   = []byte(": SXid (")
	sxidMark   = []byte(": SXid")
	instance   = []byte(" GPU-I:")
	compute    = []byte(" GPU-CI:")
	codeFollow = []byte("): ")
	causedBy   = []byte(" caused by previous Xid ")
	changedTo  = []byte(" changed from 0x")
)

// xidRecoveryAction is the Xid that reports the driver's recovery action.
const xidRecoveryAction = 154

// recoveryActions are the values of accel_gpu_recovery_action by the driver's
// number, the same as in NVML's field 230. The words after the number differ
// between drivers.
var recoveryActions = [...]string{"none", "reset", "reboot", "drain_p2p", "drain_and_reset", "recover_imex_domain"}

// parseXid parses "NVRM: Xid (PCI:0000:01:00 GPU-I:05 GPU-CI:00): 94, pid=…,
// name=…, text", of which only an address and the number are required. Source:
// kernel_rc.c of NVIDIA's open kernel modules; drivers before 302 omit "PCI:".
func (p *Parser) parseXid(text []byte) (collector.Event, Outcome) {
	a, code, rest, ok := parseFault(bytes.TrimPrefix(text, xidOpen), ' ')
	if !ok || !bytes.HasPrefix(text, xidOpen) {
		return collector.Event{}, MalformedXid
	}
	e := collector.Event{Kind: collector.EventXid, PCI: a.String(), Code: code, Place: place(text), Detail: detail(text)}
	if _, tail, ok := cutLast(rest, causedBy); ok {
		if n, after, ok := number(tail); ok && n <= maxCode && len(bytes.TrimRight(after, " .")) == 0 {
			e.Cause = n
		}
	}
	switch {
	case code == xidRecoveryAction:
		e.Action = recoveryAction(rest)
	case code >= firstNVLink && code <= lastNVLink:
		e.Sub = p.driver.sub(code, rest)
	}
	return e, Reported
}

// place parses "GPU-I:05 GPU-CI:00" within the parentheses, a GPU instance and
// its compute instance, as 5/0, or as 5 where there is no compute instance.
// Source: kernel_rc.c, which prints both in decimal.
func place(text []byte) string {
	inside, _, _ := bytes.Cut(text, codeFollow)
	_, tail, ok := bytes.Cut(inside, instance)
	if !ok {
		return ""
	}
	gi, rest, ok := number(tail)
	if !ok {
		return ""
	}
	of := strconv.FormatUint(gi, 10)
	if tail, ok = bytes.CutPrefix(rest, compute); !ok {
		return of
	}
	ci, _, ok := number(tail)
	if !ok {
		return ""
	}
	return of + "/" + strconv.FormatUint(ci, 10)
}

// recoveryAction parses "… changed from 0x0 (None) to 0x1 (GPU Reset
// Required)". It returns "" where
// there is no number.
func recoveryAction(rest []byte) string {
	_, tail, ok := cutLast(rest, changedTo)
	if !ok {
		return ""
	}
	_, to, ok := bytes.Cut(tail, []byte(" to 0x"))
	if !ok {
		return ""
	}
	n, digits, _ := hexadecimal(to, 8)
	if digits == 0 {
		return ""
	}
	if n >= uint64(len(recoveryActions)) {
		return "other"
	}
	return recoveryActions[n]
}

// parseSXid parses "nvidia-nvswitch3: SXid (PCI:0000:c1:00.0): 12028,
// Non-fatal, Link 32 text". The lines "Severity …" and "Data {…}" that follow
// under the same number are parts of it. Source: error_nvswitch.c of NVIDIA's
// open kernel modules.
func parseSXid(text []byte) (collector.Event, Outcome) {
	n := len(nvswitch)
	for n < len(text) && text[n] >= '0' && text[n] <= '9' {
		n++
	}
	body, ok := bytes.CutPrefix(text[n:], sxidOpen)
	if !ok {
		if bytes.HasPrefix(text[n:], sxidMark) {
			return collector.Event{}, MalformedSXid
		}
		return collector.Event{}, Unrelated
	}
	a, code, rest, ok := parseFault(body, ')')
	if !ok {
		return collector.Event{}, MalformedSXid
	}
	e := collector.Event{Kind: collector.EventSXid, PCI: a.String(), Code: code, Detail: detail(text)}
	word, _, _ := bytes.Cut(rest, []byte(","))
	first, _, _ := bytes.Cut(word, []byte(" "))
	switch string(first) {
	case "Data", "Severity":
		return collector.Event{}, Part
	case "Fatal":
		e.Sub = collector.SubFatal
	case "Non-fatal", "Nonfatal":
		e.Sub = collector.SubNonfatal
	}
	return e, Reported
}

// parseFault parses "address): code, rest". More text may follow the address,
// separated by the byte more, up to the parenthesis.
func parseFault(b []byte, more byte) (a address, code uint64, rest []byte, ok bool) {
	a, b, ok = parseAddress(b)
	if !ok || len(b) == 0 || b[0] != ')' && b[0] != more {
		return a, 0, nil, false
	}
	_, b, ok = bytes.Cut(b, codeFollow)
	if !ok {
		return a, 0, nil, false
	}
	code, rest, ok = number(b)
	if !ok || code == 0 || code > maxCode {
		return a, 0, nil, false
	}
	if len(rest) == 0 {
		return a, code, rest, true
	}
	rest, ok = bytes.CutPrefix(rest, []byte(","))
	return a, code, bytes.TrimLeft(rest, " "), ok
}

// cutLast cuts b at the last sep.
func cutLast(b, sep []byte) (before, after []byte, found bool) {
	if i := bytes.LastIndex(b, sep); i >= 0 {
		return b[:i], b[i+len(sep):], true
	}
	return b, nil, false
}

package pcie

import (
	"strconv"
	"strings"
)

// severity is one of the three files that count a function's errors.
type severity int

const (
	correctable severity = iota
	nonfatal
	fatal
	severities
)

// String returns the value of the label severity.
func (s severity) String() string {
	return [severities]string{"correctable", "nonfatal", "fatal"}[s]
}

// otherError is the label of errors that the kernel names in a way that is not
// in the tables.
const otherError = "other"

// errorNames are values of the label error by what the kernel prints: its
// short names (RxErr, drivers/pci/pcie/aer.c) and those of older kernels and of
// the ABI's text (Receiver Error, sysfs-bus-pci-devices-aer).
var errorNames = map[string]string{
	"RxErr": "receiver", "Receiver Error": "receiver",
	"BadTLP": "bad_tlp", "Bad TLP": "bad_tlp",
	"BadDLLP": "bad_dllp", "Bad DLLP": "bad_dllp",
	"Rollover": "replay_rollover", "RELAY_NUM Rollover": "replay_rollover", "REPLAY_NUM Rollover": "replay_rollover",
	"Timeout": "replay_timeout", "Replay Timer Timeout": "replay_timeout",
	"NonFatalErr": "advisory_nonfatal", "Advisory Non-Fatal": "advisory_nonfatal",
	"CorrIntErr": "corrected_internal", "Corrected Internal Error": "corrected_internal",
	"HeaderOF": "header_log_overflow", "Header Log Overflow": "header_log_overflow",

	"Undefined": "undefined",
	"DLP":       "data_link_protocol", "Data Link Protocol": "data_link_protocol",
	"SDES": "surprise_down", "Surprise Down Error": "surprise_down",
	"TLP": "poisoned_tlp", "Poisoned TLP": "poisoned_tlp",
	"FCP": "flow_control_protocol", "Flow Control Protocol": "flow_control_protocol",
	"CmpltTO": "completion_timeout", "Completion Timeout": "completion_timeout",
	"CmpltAbrt": "completer_abort", "Completer Abort": "completer_abort",
	"UnxCmplt": "unexpected_completion", "Unexpected Completion": "unexpected_completion",
	"RxOF": "receiver_overflow", "Receiver Overflow": "receiver_overflow",
	"MalfTLP": "malformed_tlp", "Malformed TLP": "malformed_tlp",
	"ECRC":     "ecrc",
	"UnsupReq": "unsupported_request", "Unsupported Request": "unsupported_request",
	"ACSViol": "acs_violation", "ACS Violation": "acs_violation",
	"UncorrIntErr": "uncorrectable_internal", "Uncorrectable Internal Error": "uncorrectable_internal",
	"BlockedTLP": "mc_blocked_tlp", "MC Blocked TLP": "mc_blocked_tlp",
	"AtomicOpBlocked": "atomicop_blocked", "AtomicOp Egress Blocked": "atomicop_blocked",
	"TLPBlockedErr": "tlp_prefix_blocked", "TLP Prefix Blocked Error": "tlp_prefix_blocked",
	"PoisonTLPBlocked": "poisoned_tlp_blocked",
	"DMWrReqBlocked":   "dmwr_blocked",
	"IDECheck":         "ide_check",
	"MisIDETLP":        "misrouted_ide_tlp",
	"PCRC_CHECK":       "pcrc_check",
	"TLPXlatBlocked":   "tlp_translation_blocked",
}

// count is one line of an AER file.
type count struct {
	name string // value of the label error
	n    uint64
}

// report is one AER file.
type report struct {
	counts []count
	// total is the number of reports; it need not be the sum of counts.
	total uint64
	// counted: total was there.
	counted bool
	// garbled: there was a line that is none of an AER file.
	garbled bool
}

// parseAER reads an AER file: lines of a name, which may have blanks in it,
// and a number. Unknown names are added up under one.
func parseAER(text string) report {
	var r report
	other := count{name: otherError}
	unknown := false
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if line == "" {
			continue
		}
		i := strings.LastIndexByte(line, ' ')
		n, err := strconv.ParseUint(line[i+1:], 10, 64)
		if i <= 0 || err != nil {
			r.garbled = true
			continue
		}
		printed := strings.TrimSpace(line[:i])
		name, known := errorNames[printed]
		switch {
		case strings.HasPrefix(printed, "TOTAL_"):
			r.total, r.counted = n, true
		case known && !r.has(name):
			r.counts = append(r.counts, count{name, n})
		case known || other.n+n < n:
			r.garbled = true // twice, or more than can be counted
		default:
			unknown = true
			other.n += n
		}
	}
	if unknown {
		r.counts = append(r.counts, other)
	}
	return r
}

func (r *report) has(name string) bool {
	for i := range r.counts {
		if r.counts[i].name == name {
			return true
		}
	}
	return false
}

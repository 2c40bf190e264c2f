package pcie

import (
	"slices"
	"strconv"
	"strings"
)

// severity selects one of the three files with error counts of a function.
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

// otherError is the label of errors whose kernel names are not in the tables.
const otherError = "other"

// errorNames are the values of the label error by the kernel's names: the short
// ones (RxErr, drivers/pci/pcie/aer.c) and the names of older kernels and of the
// ABI (Receiver Error, sysfs-bus-pci-devices-aer).
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

// report is the content of one AER file.
type report struct {
	counts []count
	// total is the number of reports; it need not be the sum of counts.
	total uint64
	// counted: the file has a total.
	counted bool
	// garbled: the file has an unexpected line.
	garbled bool
}

// parseAER parses an AER file: lines with a name, which may contain blanks, and
// a number. Unknown names are summed as one.
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
		case known && !slices.ContainsFunc(r.counts, func(c count) bool { return c.name == name }):
			r.counts = append(r.counts, count{name, n})
		case known || other.n+n < n:
			r.garbled = true // repeated, or overflow
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

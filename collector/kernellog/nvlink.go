package kernellog

import (
	_ "embed"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/accel-exporter/accel-exporter/collector"
)

// The Xids of NVLink 5 (Blackwell and newer).
const (
	firstNVLink = 144
	lastNVLink  = 150
)

//go:embed nvlink5.tsv
var nvlinkTable string

// nvlinkRule is one row of the table.
type nvlinkRule struct {
	xid   uint64
	names []string // of the unit, as printed
	unit  string   // in Sub
	// layout has the word intrInfo of drivers before 575 and since. A driver may
	// print either, and no word fits two errors of a unit.
	layout [2]bitPattern
	// status is one bit of errorStatus, or its value for units that number
	// their errors; noStatus where intrInfo is sufficient.
	status   uint32
	noStatus bool
	numbered bool
	fatal    bool
	sub      string
}

// bitPattern is the required value of some bits of a word.
type bitPattern struct{ mask, value uint32 }

func (p bitPattern) matches(w uint32) bool { return w&p.mask == p.value }

// nvlinkRules parses the table with the first NVLink Xid: most machines never
// log one.
var nvlinkRules = sync.OnceValue(func() []nvlinkRule {
	var rules []nvlinkRule
	for line := range strings.Lines(nvlinkTable) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		f := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		if len(f) != 8 {
			panic("nvlink5.tsv: " + line)
		}
		xid, err := strconv.ParseUint(f[0], 10, 64)
		status, statusErr := strconv.ParseUint(f[5], 0, 32)
		if err != nil {
			panic("nvlink5.tsv: " + line)
		}
		r := nvlinkRule{
			xid: xid, names: strings.Split(f[1], "/"), unit: f[2],
			layout: [2]bitPattern{parsePattern(f[3]), parsePattern(f[4])},
			status: uint32(status), noStatus: statusErr != nil, fatal: f[6] == "fatal",
			numbered: strings.HasPrefix(f[2], "NETIR_"),
		}
		r.sub = r.name(f[3])
		if f[7] != "-" {
			r.sub += ":" + f[7]
		}
		rules = append(rules, r)
	}
	return rules
})

// name returns the value of Sub.
func (r *nvlinkRule) name(layout string) string {
	switch {
	case !r.noStatus:
		return fmt.Sprintf("%s:%#x", r.unit, r.status)
	case r.unit == "NETIR_LINK_DOWN":
		reason, _ := strconv.ParseUint(layout[6:12], 2, 8)
		return fmt.Sprintf("%s:%#02x", r.unit, reason)
	default:
		return r.unit
	}
}

func parsePattern(s string) bitPattern {
	var p bitPattern
	for _, c := range s {
		p.mask, p.value = p.mask<<1, p.value<<1
		if c != '-' {
			p.mask |= 1
		}
		if c == '1' {
			p.value |= 1
		}
	}
	return p
}

// NVLinkSubs returns every value that Event.Sub can have for one of the Xids
// 144 to 150, sorted. It is the unit, "RLW_REMAP", for an error that the table
// does not have. For a known error the bit of errorStatus follows:
// "RLW_REMAP:0x4"; for NETIR_BER_EVENT and NETIR_MFDE_EVENT the number; for
// NETIR_LINK_DOWN the reason in bits 25 to 20 of intrInfo:
// "NETIR_LINK_DOWN:0x21". ":fatal" is appended for the errors of RLW_RXPIPE
// that intrInfo marks as fatal.
func NVLinkSubs(xid uint64) []string {
	var subs []string
	for _, r := range nvlinkRules() {
		if r.xid == xid {
			subs = append(subs, r.unit, r.sub)
		}
	}
	slices.Sort(subs)
	return slices.Compact(subs)
}

// nvlinkLine is "…, UNIT Nonfatal XC0 i0 Link 07 (intrInfo errorStatus …)"; words are
// the first two of the error.
var (
	nvlinkLine  = regexp.MustCompile(`^(?:.* )?(\S+) +(Fatal|Nonfatal)(?: (.*))?$`)
	nvlinkWords = regexp.MustCompile(`Link .*?\(0x([[:xdigit:]]{1,8}) 0x([[:xdigit:]]{1,8})`)
)

// nvlinkSub returns "" for a text of another form or with an unknown unit, and
// SubFatal where the driver calls an error fatal that the table does not have.
func nvlinkSub(xid uint64, text string) string {
	m := nvlinkLine.FindStringSubmatch(text)
	if m == nil {
		return ""
	}
	unit, fatal := m[1], m[2] == "Fatal"
	rules := rulesOf(xid, unit)
	if w := nvlinkWords.FindStringSubmatch(m[3]); w != nil {
		fitting, sub := findNVLink(rules, hexadecimal(w[1]), hexadecimal(w[2]))
		if sub != "" {
			return sub
		}
		if len(fitting) > 0 {
			rules = fitting
		}
	}
	sub := commonUnit(rules)
	if fatal && !slices.ContainsFunc(rules, func(r *nvlinkRule) bool { return r.sub == sub }) {
		return collector.SubFatal
	}
	return sub
}

// rulesOf returns the rules of a unit by its printed name.
func rulesOf(xid uint64, printed string) []*nvlinkRule {
	var named []*nvlinkRule
	for i := range nvlinkRules() {
		if r := &nvlinkRules()[i]; r.xid == xid && r.printedAs(printed) {
			named = append(named, r)
		}
	}
	return named
}

// findNVLink returns the rules that fit the words of an error, and its Sub, or ""
// where the error is unknown. Of several errors it returns the first fatal one.
func findNVLink(rules []*nvlinkRule, info, status uint32) (fitting []*nvlinkRule, sub string) {
	for _, r := range rules {
		if r.layout[0].matches(info) || r.layout[1].matches(info) {
			fitting = append(fitting, r)
		}
	}
	var best *nvlinkRule
	for _, r := range fitting {
		switch {
		case r.noStatus || r.status == status:
			return fitting, r.sub
		case r.numbered || r.status&status == 0:
		case best == nil || r.fatal && !best.fatal:
			best = r
		}
	}
	if best != nil {
		return fitting, best.sub
	}
	return fitting, ""
}

// commonUnit returns the unit of all rules, "" where they differ.
func commonUnit(rules []*nvlinkRule) string {
	unit := ""
	for i, r := range rules {
		if i > 0 && r.unit != unit {
			return ""
		}
		unit = r.unit
	}
	return unit
}

// printedAs reports whether the unit is printed by the name, or by all its names.
func (r *nvlinkRule) printedAs(name string) bool {
	return slices.Contains(r.names, name) || name == strings.Join(r.names, "/")
}

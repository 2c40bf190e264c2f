package fpga

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/accel-exporter/accel-exporter/collector"
)

// subdevices are the parts of one PCI function by the driver's names:
// directories such as xmc.u.18874368, dma.xdma.u.5242880 or, in old releases,
// xmc.m.1025.
type subdevices struct {
	dir    string // of the function, empty where there is none
	byType map[string][]string
	hwmon  []string
}

// file returns the path of a file of the function itself, empty where the
// function is absent.
func (s *subdevices) file(name string) string {
	if s.dir == "" {
		return ""
	}
	return s.dir + "/" + name
}

// of returns the directories of the parts of a type, in order of their numbers.
func (s *subdevices) of(kind string) []string { return s.byType[kind] }

// one returns the directory of the first part of a type, empty where there is
// none.
func (s *subdevices) one(kinds ...string) string {
	for _, k := range kinds {
		if d := s.byType[k]; len(d) > 0 {
			return d[0]
		}
	}
	return ""
}

// splitSubdevice splits xmc.u.18874368 into xmc and 18874368.
func splitSubdevice(name string) (kind string, number uint64, ok bool) {
	rest, digits, ok := cutLast(name, ".")
	kind, side, ok2 := cutLast(rest, ".")
	number, err := strconv.ParseUint(digits, 10, 64)
	return kind, number, ok && ok2 && err == nil && kind != "" && (side == "u" || side == "m")
}

func cutLast(s, sep string) (before, after string, found bool) {
	if i := strings.LastIndex(s, sep); i >= 0 {
		return s[:i], s[i+len(sep):], true
	}
	return s, "", false
}

// maxSubdevices bounds the parts of one function.
const maxSubdevices = 512

func listSubdevices(r *reading, dir string) subdevices {
	names, err := r.fs.Names(dir)
	if err != nil {
		if !absent(err) {
			r.fail(err)
		}
		return subdevices{}
	}
	type part struct {
		dir    string
		number uint64
	}
	parts := map[string][]part{}
	n := 0
	s := subdevices{dir: dir, byType: map[string][]string{}}
	for _, name := range names {
		if name == "hwmon" {
			chips, _ := r.fs.Names(dir + "/hwmon")
			for _, c := range chips {
				s.hwmon = append(s.hwmon, dir+"/hwmon/"+c)
			}
		}
		if kind, number, ok := splitSubdevice(name); ok && n < maxSubdevices {
			parts[kind] = append(parts[kind], part{dir + "/" + name, number})
			n++
		}
	}
	for kind, list := range parts {
		slices.SortFunc(list, func(a, b part) int { return cmp.Compare(a.number, b.number) })
		for _, p := range list {
			s.byType[kind] = append(s.byType[kind], p.dir)
		}
	}
	return s
}

// list lists the parts of the card's functions, when that is due or something
// has changed.
func (a *alveo) list(r *reading) {
	if !a.listed.IsZero() && r.now.Sub(a.listed) < a.options.SlowInterval {
		return
	}
	a.listed = r.now
	a.user, a.mgmt = subdevices{}, subdevices{}
	for _, dir := range append([]string{a.dir}, a.claims...) {
		switch driver, _ := r.fs.Link(dir + "/driver"); {
		case driver == "xocl" && a.user.dir == "":
			a.user = listSubdevices(r, dir)
		case driver == "xclmgmt" && a.mgmt.dir == "":
			a.mgmt = listSubdevices(r, dir)
		}
	}
	a.planBoard()
	unit := a.user.one("cu")
	a.load.Lock()
	defer a.load.Unlock()
	switch {
	case unit != "":
		a.load.unit, a.load.since = unit, time.Time{}
	case a.load.unit != "" && a.load.since.IsZero():
		a.load.since = r.now
	case time.Since(a.load.since) >= longestLoad:
		a.load.unit = ""
	}
}

// changed makes the next round list the directories and read the slow files
// again.
func (a *alveo) changed(r *reading) {
	a.listed = time.Time{}
	a.banks = nil
	a.units = nil
	r.fs.forget()
}

// natural reads an integer of at least 0, decimal or 0x. All ones in 32 bits,
// and -1, are the answers of a card that has left the bus.
func (a *alveo) natural(r *reading, m *collector.Metric, text string) (uint64, bool) {
	v, err := strconv.ParseUint(text, 0, 64)
	switch {
	case text == "-1" || err == nil && v == 0xffffffff:
		r.Reject(m, collector.RejectSentinel)
		return 0, false
	case err != nil && strings.HasPrefix(text, "-"):
		r.Reject(m, collector.RejectRange)
		return 0, false
	case err != nil:
		r.Reject(m, collector.RejectType)
		return 0, false
	}
	return v, true
}

// labelCache keeps the label values of readings, which are shared between
// rounds.
type labelCache map[[2]string][]string

func (c *labelCache) of(a, b string) []string {
	key := [2]string{a, b}
	if l, ok := (*c)[key]; ok {
		return l
	}
	if *c == nil || len(*c) >= maxLabels {
		*c = labelCache{}
	}
	l := []string{a, b}
	(*c)[key] = l
	return l
}

// maxLabels bounds a labelCache; beyond it, it is cleared.
const maxLabels = 4096

// states sets 1 for the current state and 0 for the others.
func (c *labelCache) states(r *reading, m *collector.Metric, states []string, state string) {
	for _, s := range states {
		r.SetBool(m, s == state, c.of(s, "")[:1]...)
	}
}

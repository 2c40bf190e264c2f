package pcie

import (
	"errors"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/accel-exporter/accel-exporter/collector"
	"github.com/accel-exporter/accel-exporter/collector/sysfs"
)

// function reads one PCI function: one of an accelerator, or a port above it.
// Only its goroutine uses it.
type function struct {
	directory
	// link: read its link, not only its errors.
	link  bool
	limit *extent
	// counts are the error files as last read. They seldom change.
	counts [severities]struct {
		text string
		report
	}
}

// number is a value as read.
type number struct {
	value float64
	// measured: value is valid. reject is why it is not; empty where there was
	// nothing to judge.
	measured bool
	reject   string
}

// extent is the rate and the width of a link.
type extent struct{ speed, lanes number }

// state is the result of one round.
type state struct {
	at time.Time
	// gone: it left the bus.
	gone   bool
	driver string
	// group is the IOMMU group of a function that a virtual machine can have,
	// else "".
	group string
	// nodes are the DRM nodes of an Intel GPU, which only this package reads:
	// card0, renderD128.
	nodes []string
	power power
	// asked: its link was read; silent: the function did not answer.
	asked, silent bool
	now, limit    extent
	errors        [severities]report
	// read: at least one attribute was read.
	read bool
	err  error
}

// look reads the function once.
func (f *function) look(now time.Time) state {
	s := state{at: now}
	if f.renew(now) {
		f.limit = nil
	}
	for _, step := range []func(*state) error{f.lookDriver, f.lookPower, f.lookLink, f.lookErrors} {
		err := step(&s)
		if errors.Is(err, errGone) {
			return state{at: now, gone: true}
		}
		if s.err == nil {
			s.err = err
		}
	}
	return s
}

func (f *function) lookDriver(s *state) (err error) {
	s.driver, err = f.driver()
	s.read = err == nil
	if strings.Contains(s.driver, "vfio") {
		s.group, _ = f.fs.Link(f.path + "/iommu_group")
	}
	if s.driver == "i915" || s.driver == "xe" {
		names, _ := f.fs.Names(f.path + "/drm")
		s.nodes = slices.DeleteFunc(names, func(n string) bool { return !strings.HasPrefix(n, "card") && !strings.HasPrefix(n, "renderD") })
	}
	return err
}

func (f *function) lookPower(s *state) error {
	text, err := f.read(attrPowerState)
	if err != nil {
		return err
	}
	s.power.state = parsePowerState(text)
	s.power.status, err = f.read(attrRuntimeStatus)
	return err
}

// lookLink reads the link of a function that is awake.
func (f *function) lookLink(s *state) error {
	if !f.link || !s.power.awake() {
		return nil
	}
	now, answered, err := f.lookExtent(attrLinkSpeed, attrLinkWidth)
	if err != nil || now == nil {
		return err
	}
	s.asked, s.silent = true, !answered
	if !answered {
		return nil
	}
	s.now = *now
	if f.limit == nil { // constant for the life of the function
		limit, answered, err := f.lookExtent(attrLinkSpeedMax, attrLinkWidthMax)
		if err != nil || limit == nil || !answered {
			return err
		}
		f.limit = limit
	}
	s.limit = *f.limit
	f.limit.speed.reject, f.limit.lanes.reject = "", "" // counted once
	return nil
}

// lookExtent reads a rate and a width: nil where the function has no such
// attributes. It is not answered where the kernel has marked the function as
// disconnected, or where all bits are ones.
func (f *function) lookExtent(speed, lanes attribute) (e *extent, answered bool, err error) {
	width, err := f.read(lanes)
	if refused(err) {
		return &extent{}, false, nil
	}
	if err != nil || width == "" {
		return nil, false, err
	}
	n, ok := parseWidth(width)
	if ok && n == allOnes {
		return &extent{}, false, nil
	}
	rate, err := f.read(speed)
	if refused(err) {
		return &extent{}, false, nil
	}
	if err != nil {
		return nil, false, err
	}
	e = new(extent)
	if ok && n == 0 && (rate == "" || rate[0] == 'U') {
		return e, true, nil // no link: an integrated endpoint, or nothing trained
	}
	e.lanes = judge(float64(n), ok, n == 0)
	if rate != "" {
		v, unknown, ok := parseSpeed(rate)
		e.speed = judge(v, ok, unknown)
	}
	return e, true, nil
}

// refused reports whether the kernel did not access the function because it is
// marked as disconnected.
func refused(err error) bool { return sysfs.Errno(err) == syscall.EINVAL }

func judge(v float64, ok, sentinel bool) number {
	switch {
	case !ok:
		return number{reject: collector.RejectType}
	case sentinel:
		return number{reject: collector.RejectSentinel}
	}
	return number{value: v, measured: true}
}

// lookErrors reads the error counts, which the kernel keeps in memory.
func (f *function) lookErrors(s *state) error {
	var first error
	for sev, attr := range aerFiles {
		text, err := f.read(attr)
		if errors.Is(err, errGone) {
			return err
		}
		if first == nil {
			first = err
		}
		if last := &f.counts[sev]; text != last.text {
			last.text, last.report = text, parseAER(text)
		}
		if err == nil {
			s.errors[sev] = f.counts[sev].report
		}
	}
	return first
}

// allOnes is the number of lanes in the link status of a function that does not
// answer: six bits of ones (PCI_EXP_LNKSTA_NLW).
const allOnes = 63

// parseSpeed returns the rate of a link in transfers per second: "8.0 GT/s
// PCIe", or "8 GT/s" before Linux 5.7. unknown: the kernel has no rate
// ("Unknown", "Unknown speed"), because there is no link or no answer.
func parseSpeed(s string) (rate float64, unknown, ok bool) {
	if strings.HasPrefix(s, "Unknown") {
		return 0, true, true
	}
	number, unit, _ := strings.Cut(s, " ")
	if unit != "GT/s" && unit != "GT/s PCIe" {
		return 0, false, false
	}
	whole, tenth, _ := strings.Cut(number, ".")
	if len(tenth) > 1 || len(whole) > 4 {
		return 0, false, false
	}
	n, err := strconv.ParseUint(whole+(tenth + "0")[:1], 10, 32)
	if err != nil || n == 0 {
		return 0, false, false
	}
	return float64(n) * 1e8, false, true
}

// parseWidth returns the number of lanes, 0 where there is no link.
func parseWidth(s string) (lanes int, ok bool) {
	n, err := strconv.ParseUint(s, 10, 16)
	return int(n), err == nil
}

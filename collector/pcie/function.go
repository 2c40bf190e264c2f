package pcie

import (
	"cmp"
	"errors"
	"regexp"
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
	link bool
	// limit is what the link supports, which is read from time to time: another
	// function may have this address by now.
	limit     *extent
	limitRead time.Time
}

// number is a value as read: 0 where it is not known. reject is why; empty where
// there was nothing to judge.
type number struct {
	value  float64
	reject string
}

// extent is the rate and the width of a link.
type extent struct{ speed, lanes number }

// state is the result of one look.
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
	if now.Sub(f.limitRead) >= renewAfter {
		f.limit, f.limitRead = nil, now
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

func (f *function) lookPower(s *state) (err error) {
	s.power, err = f.power()
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
func (f *function) lookExtent(speed, lanes string) (e *extent, answered bool, err error) {
	width, err := f.read(lanes)
	if refused(err) {
		return &extent{}, false, nil
	}
	if err != nil || width == "" {
		return nil, false, err
	}
	if width == allOnes {
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
	if width == "0" && (rate == "" || rate[0] == 'U') {
		return e, true, nil // no link: an integrated endpoint, or nothing trained
	}
	e.lanes = parseWidth(width)
	if rate != "" {
		e.speed = parseSpeed(rate)
	}
	return e, true, nil
}

// refused reports whether the kernel did not access the function because it is
// marked as disconnected.
func refused(err error) bool { return sysfs.Errno(err) == syscall.EINVAL }

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
		if err == nil {
			s.errors[sev] = parseAER(text)
		}
	}
	return first
}

// allOnes is the number of lanes in the link status of a function that does not
// answer: six bits of ones (PCI_EXP_LNKSTA_NLW).
const allOnes = "63"

var (
	garbled = number{reject: collector.RejectType}
	unknown = number{reject: collector.RejectSentinel}
)

// speedForm is the rate of a link: "8.0 GT/s PCIe", or "8 GT/s" before Linux 5.7.
var speedForm = regexp.MustCompile(`^([0-9]{1,4})(?:\.([0-9]))? GT/s(?: PCIe)?$`)

// parseSpeed returns the rate of a link in transfers per second. The kernel has
// none ("Unknown", "Unknown speed") where there is no link or no answer.
func parseSpeed(s string) number {
	if strings.HasPrefix(s, "Unknown") {
		return unknown
	}
	m := speedForm.FindStringSubmatch(s)
	if m == nil {
		return garbled
	}
	tenths, err := strconv.ParseUint(m[1]+cmp.Or(m[2], "0"), 10, 32)
	if err != nil || tenths == 0 {
		return garbled
	}
	return number{value: float64(tenths) * 1e8}
}

// parseWidth returns the number of lanes.
func parseWidth(s string) number {
	switch n, err := strconv.ParseUint(s, 10, 16); {
	case err != nil:
		return garbled
	case n == 0:
		return unknown
	default:
		return number{value: float64(n)}
	}
}

package collector

import (
	"slices"
	"strconv"
	"time"
)

const (
	// pairWindow is the maximum time between two reports of the same Xid. NVML
	// delivers within milliseconds and the kernel log within a second; a
	// worker that is being replaced may be late.
	pairWindow = 10 * time.Second
)

// faults are the counts of events by device. They outlive rounds, workers and
// sources.
type faults map[string]*history

// clockSet moves the times of faults with the clock.
func (f faults) clockSet(by time.Duration) {
	for _, h := range f {
		for i := range h.last.list {
			h.last.list[i].Value += by.Seconds()
		}
	}
}

// history is the event counts of one device.
type history struct {
	seen   bool // a source has or had a device of this ID
	based  bool // has the counters that start at 0
	xids   cells
	last   cells // time by xid and partition
	sxids  cells
	events cells
	open   []report
}

// report is a number of faults of one code within one second, and how many of
// them each witness has reported.
type report struct {
	kind EventKind
	code uint64
	at   time.Time
	n    int
	from map[string]int // number by source
}

func newHistory() *history {
	return &history{
		xids:   cells{metric: XidErrors},
		last:   cells{metric: XidTimestamp},
		sxids:  cells{metric: SXidErrors},
		events: cells{metric: DeviceEvents},
	}
}

func (f faults) of(id string) *history {
	h := f[id]
	if h == nil {
		h = newHistory()
		f[id] = h
	}
	return h
}

// unknown returns the number of devices that only events have named.
func (f faults) unknown() int {
	n := 0
	for _, h := range f {
		if !h.seen {
			n++
		}
	}
	return n
}

// count adds an event received at now. It reports whether the event was
// attributed, and whether another witness had reported it before. known is
// whether a source has the device.
func (f faults) count(e *Event, known bool, now time.Time) (counted, again bool) {
	if e.Kind == EventDriverLoaded && e.Device == "" {
		return true, false // of the node, for judges
	}
	if e.Device == "" {
		return false, false
	}
	if f[e.Device] == nil && !known && f.unknown() >= maxUnknown {
		return false, false
	}
	if e.Past {
		return true, false
	}
	// An event can precede the first round; the fault must not be lost.
	h := f.of(e.Device)
	code := strconv.FormatUint(e.Code, 10)
	switch e.Kind {
	case EventXid, EventSXid:
		numbers := &h.xids
		if e.Kind == EventSXid {
			numbers = &h.sxids
		}
		if !numbers.has(code) && len(numbers.list) >= maxXids {
			return false, false
		}
		if e.Kind == EventXid {
			h.last.at([]string{code, e.Partition}).Value = seconds(e.Time)
		}
		if again = h.pair(e, now); !again {
			numbers.add(1, code)
		}
	case EventOperational:
		h.events.add(1, string(e.Kind)+"_"+e.Sub)
	default:
		h.events.add(1, string(e.Kind))
	}
	return true, again
}

// pair reports whether another witness has reported e before, and records e if
// not. There can be any number of witnesses, in any order.
func (h *history) pair(e *Event, now time.Time) bool {
	h.open = slices.DeleteFunc(h.open, func(s report) bool { return now.Sub(s.at) > pairWindow })
	for i := range h.open {
		s := &h.open[i]
		if s.kind == e.Kind && s.code == e.Code && s.from[e.Source] < s.n {
			s.from[e.Source]++
			return true
		}
	}
	for i := range h.open {
		if s := &h.open[i]; s.kind == e.Kind && s.code == e.Code && now.Sub(s.at) < time.Second {
			s.n++
			s.from[e.Source]++
			return false
		}
	}
	h.open = append(h.open, report{kind: e.Kind, code: e.Code, at: now, n: 1, from: map[string]int{e.Source: 1}})
	return false
}

// adopt adds the counts of the same device under another name.
func (h *history) adopt(o *history) {
	for _, pair := range [][2]*cells{{&h.xids, &o.xids}, {&h.sxids, &o.sxids}, {&h.events, &o.events}} {
		for _, r := range pair[1].list {
			pair[0].at(r.Labels).Value += r.Value
		}
	}
	for _, r := range o.last.list {
		l := h.last.at(r.Labels)
		l.Value = max(l.Value, r.Value)
	}
	h.open = append(h.open, o.open...)
}

// begin creates the counters that a GPU has from its first round. Other devices
// get theirs with their first event.
func (h *history) begin() {
	if h.based {
		return
	}
	h.based = true
	for _, labels := range xidBaseline {
		h.xids.at(labels)
	}
	for _, kind := range eventBaseline {
		h.events.add(0, string(kind))
	}
}

package traceproc

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"time"

	"github.com/accel-exporter/accel-exporter/internal/judge/allocation"
	"github.com/accel-exporter/accel-exporter/internal/trace/lifecycle"
	"github.com/accel-exporter/accel-exporter/podmap"
)

// The names of spans. There are no others.
const (
	spanAllocation = "accel.allocation" // all that a pod holds, from the first to the last device
	spanHold       = "accel.hold"       // one device
	spanHeld       = "accel.held"       // told at once: a hold has begun
	spanWait       = "accel.wait"       // from the beginning of a hold to the first activity
	spanIdle       = "accel.idle"       // nothing done
	spanFault      = "accel.fault"      // told at once: the device had a fault
)

const (
	// identifyWithin is how long spans of a pod wait for its UID and its trace
	// context to be known: the API server and the kubelet's directories know of
	// it a little later than the kubelet's list.
	identifyWithin = 10 * time.Second
	// killedWithin is how soon after a fault a hold must end for the fault to
	// be told as what may have ended it.
	killedWithin = 2 * time.Minute
	// maxEvents bounds the faults that are told of one hold.
	maxEvents = 32
	// maxPast bounds the allocations that have ended and are remembered, so
	// that another one of the same pod is another trace.
	maxPast = 1024
)

// Identity is what is known of a pod beside its name.
type Identity struct {
	// UID is the pod's, Context the trace context that it is annotated with.
	UID, Context string
	// Sure says that no more will be known.
	Sure bool
}

// Identifier says what is known of a pod that holds something since some time
// before found. What was known before then may be of another pod of its name.
// It must not block.
type Identifier func(p podmap.Pod, found time.Time) Identity

// Book makes spans of records. It is for one goroutine.
type Book struct {
	// Node names this machine, where a pod's UID is not known.
	node     string
	identify Identifier
	pods     map[podmap.Pod]*story
	past     map[string]int // allocations that have ended, by their seed
	order    []string       // of past
	out      []Span
}

// NewBook returns a Book without a story.
func NewBook(node string, identify Identifier) *Book {
	return &Book{node: node, identify: identify, pods: map[podmap.Pod]*story{}, past: map[string]int{}}
}

// Open returns how many allocations are under way.
func (b *Book) Open() int { return len(b.pods) }

// story is an allocation: what a pod holds.
type story struct {
	pod        podmap.Pod
	found      time.Time // when this program found it
	since, end time.Time
	observed   bool // since is its beginning
	holds      map[uint64]*hold
	devices    []string
	failure    string // of the first hold that has one
	identity   Identity
	seed       string         // "" until the identity is settled
	base       string         // seed, but for the number of the allocation
	waiting    []draft        // until then
	times      map[string]int // holds so far, by device
}

// draft is a span whose IDs are not known yet, but what they are made of.
type draft struct {
	Span
	key, parent string
}

// hold is one device of a story.
type hold struct {
	key      string // of its span
	since    time.Time
	observed bool
	idle     time.Time
	events   []Event
	omitted  int
	fault    string // the latest
	faultAt  time.Time
}

// Write takes records and returns the spans that have ended. now is the time of
// the look that they are from.
func (b *Book) Write(now time.Time, records []lifecycle.Record) []Span {
	b.out = nil
	for i := range records {
		b.record(now, &records[i])
	}
	for _, s := range b.pods {
		b.settle(s, now, false)
	}
	return b.out
}

// Flush returns the spans that wait for the identity of their pod.
func (b *Book) Flush(now time.Time) []Span {
	b.out = nil
	for _, s := range b.pods {
		b.settle(s, now, true)
	}
	return b.out
}

func (b *Book) record(now time.Time, r *lifecycle.Record) {
	s := b.pods[r.Life.Pod]
	if r.Kind == lifecycle.Held {
		b.begin(s, now, r)
		return
	}
	if s == nil || s.holds[r.Hold] == nil {
		return // the Book began in the middle
	}
	h := s.holds[r.Hold]
	switch r.Kind {
	case lifecycle.Activity:
		s.active(b, h, r)
	case lifecycle.IdleBegan:
		h.idle = r.Time
	case lifecycle.IdleEnded:
		s.idle(b, h, r)
	case lifecycle.FaultFound:
		s.fault(b, h, r)
	case lifecycle.Released:
		s.release(b, h, r)
		if delete(s.holds, r.Hold); len(s.holds) == 0 {
			b.close(s, now)
		}
	}
}

func (b *Book) begin(s *story, now time.Time, r *lifecycle.Record) {
	l := r.Life
	if s == nil {
		s = &story{pod: l.Pod, found: now, since: r.Time, observed: r.Observed, holds: map[uint64]*hold{}, times: map[string]int{}}
		b.pods[l.Pod] = s
	}
	if r.Time.Before(s.since) {
		s.since, s.observed = r.Time, r.Observed
	}
	if s.times[l.Device] == 0 {
		s.devices = append(s.devices, l.Device)
	}
	s.times[l.Device]++
	h := &hold{key: keyOf(spanHold, l.Device, s.times[l.Device]), since: r.Time, observed: r.Observed}
	s.holds[r.Hold] = h
	d := h.child(l, spanHeld, r.Time, r.Time, r.Time.UnixNano())
	d.Attrs = append(d.Attrs, Attr{Key: "accel.allocation.start_observed", Type: BoolAttr, Yes: r.Observed})
	b.tell(s, d)
}

// active tells of the time up to the first activity, where all of it was seen.
func (s *story) active(b *Book, h *hold, r *lifecycle.Record) {
	var a attrs
	a.bool("accel.observed", r.Observed)
	h.add(Event{Name: "accel.first_activity", Time: r.Time, Attrs: a})
	if r.Observed && h.observed {
		s.wait(b, h, r.Life, r.Time, true)
	}
}

func (s *story) wait(b *Book, h *hold, l *allocation.Life, end time.Time, activity bool) {
	d := h.child(l, spanWait, h.since, end)
	d.Attrs = append(d.Attrs, Attr{Key: "accel.wait.activity", Type: BoolAttr, Yes: activity})
	b.tell(s, d)
}

func (s *story) idle(b *Book, h *hold, r *lifecycle.Record) {
	d := h.child(r.Life, spanIdle, h.idle, r.Time, h.idle.UnixNano())
	d.Attrs = append(d.Attrs, Attr{Key: "accel.observed", Type: BoolAttr, Yes: r.Observed})
	b.tell(s, d)
}

// fault tells of a fault at once, and keeps it for the hold's span.
func (s *story) fault(b *Book, h *hold, r *lifecycle.Record) {
	f := r.Fault
	if !r.Time.Before(h.faultAt) {
		h.fault, h.faultAt = f.Name, r.Time
	}
	if len(h.events) >= maxEvents {
		h.omitted++
		return
	}
	var a attrs
	a.text("accel.fault.name", f.Name)
	if f.Code > 0 {
		a.int("accel.xid.code", int64(f.Code))
	}
	if f.Cause > 0 {
		a.int("accel.xid.cause", int64(f.Cause))
	}
	a.text("accel.xid.sub", f.Sub)
	a.text("accel.fault.detail", f.Detail)
	a.text("accel.recovery_action", f.Action)
	a.text("accel.health.state", r.Life.Health)
	a.text("accel.health.action", r.Life.Action)
	h.add(Event{Name: spanFault, Time: r.Time, Attrs: a})
	d := h.child(r.Life, spanFault, r.Time, r.Time, f.Name, r.Time.UnixNano(), len(h.events))
	d.Attrs, d.Error = append(d.Attrs, a...), f.Name
	b.tell(s, d)
}

func (h *hold) add(e Event) { h.events = append(h.events, e) }

// release tells of the hold as a whole.
func (s *story) release(b *Book, h *hold, r *lifecycle.Record) {
	l := r.Life
	if h.observed && l.Last.IsZero() && l.IdleKnown && !l.IdleSince.IsZero() {
		s.wait(b, h, l, r.Time, false)
	}
	d := draft{newSpan(spanHold, h.since, r.Time), h.key, keyOf(spanAllocation)}
	a := deviceAttrs(l)
	a.list("accel.allocation.resources", l.Resources)
	if len(l.Containers) > 1 {
		a.list("accel.allocation.containers", l.Containers)
	}
	a.bool("accel.allocation.shared", l.Shared)
	a.bool("accel.allocation.start_observed", h.observed)
	a.bool("accel.allocation.end_observed", r.Observed)
	a.text("accel.health.state", l.Health)
	a.text("accel.health.action", l.Action)
	if h.omitted > 0 {
		a.int("accel.faults_omitted", int64(h.omitted))
	}
	d.Attrs, d.Events, d.Error = a, h.events, h.verdict(l, r.Time)
	b.tell(s, d)
	if d.Error != "" && s.failure == "" {
		s.failure = l.Device + ": " + d.Error
	}
	if r.Time.After(s.end) {
		s.end = r.Time
	}
}

// verdict says why the hold is told as failed. That it ended soon after a fault
// is a fact; that it did for it, nobody knows.
func (h *hold) verdict(l *allocation.Life, end time.Time) string {
	if h.fault != "" && end.Sub(h.faultAt) <= killedWithin {
		return fmt.Sprintf("released %s after %s", max(end.Sub(h.faultAt), 0).Round(time.Second), h.fault)
	}
	if l.Health == "failed" {
		return "the device had failed when it was released"
	}
	return ""
}

// close tells of the allocation as a whole, which has ended.
func (b *Book) close(s *story, now time.Time) {
	b.settle(s, now, true)
	d := draft{Span: newSpan(spanAllocation, s.since, s.end), key: keyOf(spanAllocation)}
	var a attrs
	slices.Sort(s.devices)
	a.list("accel.allocation.devices", s.devices[:min(len(s.devices), maxEvents)])
	a.int("accel.allocation.device_count", int64(len(s.devices)))
	a.bool("accel.allocation.start_observed", s.observed)
	d.Attrs, d.Error = a, s.failure
	b.tell(s, d)
	b.remember(s.base)
	delete(b.pods, s.pod)
}

// remember counts an allocation that has ended.
func (b *Book) remember(base string) {
	if b.past[base]++; b.past[base] > 1 {
		return
	}
	b.order = append(b.order, base)
	if len(b.order) > maxPast {
		delete(b.past, b.order[0])
		b.order = b.order[1:]
	}
}

// tell gives a span out, or keeps it until its identity is settled.
func (b *Book) tell(s *story, d draft) {
	if s.seed == "" {
		s.waiting = append(s.waiting, d)
		return
	}
	d.Trace, d.ID = digest(16, s.seed), digest(8, s.seed, d.key)
	if d.parent != "" {
		d.Parent = digest(8, s.seed, d.parent)
	}
	d.Context = s.identity.Context
	d.Pod = Pod{Namespace: s.pod.Namespace, Name: s.pod.Name, UID: s.identity.UID}
	b.out = append(b.out, d.Span)
}

// settle settles by what the trace of an allocation is known: the pod's UID,
// which another exporter after this one finds again, or where that stays
// unknown the pod's name and the time.
func (b *Book) settle(s *story, now time.Time, atOnce bool) {
	if s.seed != "" {
		return
	}
	s.identity = b.identify(s.pod, s.found)
	if !s.identity.Sure && !atOnce && now.Sub(s.found) < identifyWithin {
		return
	}
	s.base = keyOf("uid", s.identity.UID)
	if s.identity.UID == "" {
		s.base = keyOf("name", b.node, s.pod.Namespace, s.pod.Name, s.since.UnixNano())
	}
	s.seed = keyOf(s.base, b.past[s.base])
	waiting := s.waiting
	s.waiting = nil
	for _, d := range waiting {
		b.tell(s, d)
	}
}

// child begins a span below the hold's.
func (h *hold) child(l *allocation.Life, name string, start, end time.Time, nonce ...any) draft {
	d := draft{newSpan(name, start, end), keyOf(append([]any{name, h.key}, nonce...)...), h.key}
	d.Attrs = deviceAttrs(l)
	return d
}

// newSpan returns a span that does not end before it starts, as it might where
// the clock was set.
func newSpan(name string, start, end time.Time) Span {
	if end.Before(start) {
		end = start
	}
	return Span{Name: name, Start: start, End: end}
}

// keyOf joins what identifies something.
func keyOf(parts ...any) string {
	var key []byte
	for _, p := range parts {
		key = append(fmt.Append(key, p), 0)
	}
	return string(key)
}

// digest returns n bytes as hexadecimal digits that are the same for the same
// parts, and are never all 0, which would be no ID.
func digest(n int, parts ...any) string {
	sum := sha256.Sum256([]byte("accel-exporter\x00" + keyOf(parts...)))
	sum[0] |= 1
	return hex.EncodeToString(sum[:n])
}

// deviceAttrs describe the device of a hold, by the conventions for hardware
// where there is one.
func deviceAttrs(l *allocation.Life) attrs {
	var a attrs
	a.text("hw.id", l.Device)
	a.text("hw.type", string(l.Class))
	if l.Index != "" {
		a.text("hw.name", string(l.Class)+l.Index)
	}
	a.text("hw.vendor", l.Vendor)
	a.text("hw.model", l.Model)
	a.text("hw.parent", l.Parent)
	a.text("accel.device.profile", l.Profile)
	a.text("accel.device.pci_address", l.PCI)
	if len(l.Containers) == 1 {
		a.text("k8s.container.name", l.Containers[0])
	}
	return a
}

package bundle

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/accel-exporter/accel-exporter/collector"
	"github.com/accel-exporter/accel-exporter/internal/judge/allocation"
	"github.com/accel-exporter/accel-exporter/internal/status/history"
)

const (
	// after is how long a bundle waits for readings after the fault.
	after = time.Minute
	// look is how often the directory is looked at.
	look = time.Minute
)

// maxRecords and maxRecordBytes bound the error records of all devices that are kept.
const (
	maxRecords     = 64
	maxRecordBytes = 1 << 20
)

// States of the bundle of a device: the label state of accel_device_bundle_timestamp_seconds.
const (
	recording = "recording" // the minute after the fault has not ended
	unsent    = "unsent"    // in the directory, and not yet at the URL
	saved     = "saved"     // in the directory
	sent      = "sent"      // at the URL
	failed    = "failed"    // could not be written
)

// Options are the inputs of a Recorder. None of the functions may block.
type Options struct {
	Node string
	// Software are the versions of the programs that a vendor asks for.
	Software    []Fact
	Latest      func() *collector.Snapshot
	History     *history.Ring
	Allocations func() *allocation.Report // it may return nil
	// KernelLog returns lines of the kernel log, and whether it is read.
	KernelLog func() (lines []string, known bool)
	// Directory is where bundles are written, "" for nowhere. It has at most Keep.
	Directory string
	Keep      int
	// Target is where bundles are sent, nil for nowhere.
	Target *Target
	// After is how long a bundle waits for readings after the fault, a minute by default.
	After time.Duration
	// Look is how often the directory is looked at, a minute by default.
	Look time.Duration
	Log  *slog.Logger
}

// Recorder is a Judge that records every Snapshot and writes a bundle at each fault. It is
// the last one, because it records the conclusions of the others.
type Recorder struct {
	o      Options
	store  store
	counts *counts
	wake   chan struct{} // the first copy can be written
	put    chan struct{} // a file waits to be sent

	copied string // SHA-256 of the latest copy of an incomplete bundle that was sent

	making sync.Mutex // one at a time, because it takes memory

	mu      sync.Mutex
	failing map[string]bool
	devices map[string]*entry // the latest bundle of each whole device
	cper    []collector.Event // the latest error records, oldest first
	pending *pending          // the bundle that is being recorded
	writing string            // the name of the bundle that is being written
	problem error             // why the latest file could not be written
	// unwritable is why no file can be made in the directory.
	unwritable error
}

// entry is the latest bundle of a device.
type entry struct {
	fault                   time.Time
	changed                 time.Time // when a label has changed, zero if it has changed since the latest Snapshot
	name                    string
	state, location, sha256 string
}

// pending is a bundle that waits for readings after the fault.
type pending struct {
	name      string
	fault     time.Time
	devices   []string
	verdicts  map[string]*collector.Verdict // at the fault
	events    []collector.Event             // at the fault
	published bool                          // the Snapshot with the faults is the latest one
	// requested by a person, not by a fault.
	requested bool
}

// New returns a Recorder that knows the bundles in its directory.
func New(o Options) *Recorder {
	o.After, o.Look = cmp.Or(o.After, after), cmp.Or(o.Look, look)
	r := &Recorder{
		o: o, store: store{directory: o.Directory, node: o.Node, keep: o.Keep}, wake: make(chan struct{}, 1), put: make(chan struct{}, 1),
		failing: map[string]bool{}, devices: map[string]*entry{},
	}
	r.counts = newCounts(&r.store)
	if o.Directory == "" {
		return r
	}
	if r.unwritable = r.store.load(); r.unwritable != nil {
		o.Log.Error("Bundles of evidence cannot be kept", "directory", o.Directory, "err", r.unwritable)
	}
	for _, f := range r.store.list() {
		for _, id := range f.Devices {
			r.devices[id] = &entry{fault: f.Fault, name: f.Name}
			r.follow(f)
		}
	}
	return r
}

// Judge implements collector.Judge.
func (r *Recorder) Judge(s *collector.Snapshot) {
	r.o.History.Add(s)
	if r.o.Directory == "" {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.keepRecords(s.News)
	if p := r.pending; p != nil && !p.published { // the Snapshot with the faults, which a copy needs
		p.published = true
		signal(r.wake)
	}
	for i := range s.Devices {
		d := &s.Devices[i]
		switch {
		case d.Verdict == nil:
		case d.Verdict.State == "failed" && !r.failing[d.ID]:
			r.failing[d.ID] = true
			r.begin(s, cmp.Or(d.Parent, d.ID), d.Verdict)
		case d.Verdict.State == "healthy" || d.Verdict.State == "degraded":
			delete(r.failing, d.ID)
		}
	}
	for i := range s.Devices {
		d := &s.Devices[i]
		if e := r.devices[d.ID]; e != nil {
			if e.changed.IsZero() {
				e.changed = s.Time
			}
			d.Readings = append(d.Readings, collector.Reading{
				Metric: collector.DeviceBundle, Labels: []string{e.state, e.location, e.sha256}, Value: float64(e.changed.UnixMilli()) / 1000,
			})
		}
	}
}

// keepRecords keeps the error records among events. A worker that was restarted reads
// records that are known. Beyond the bounds, the device with the most of them loses its
// oldest: a GPU with hundreds of old records does not push out the record of a fault of
// another one.
func (r *Recorder) keepRecords(news []collector.Event) {
	before := len(r.cper)
	for i := range news {
		e := &news[i]
		if len(e.Record) > 0 && !slices.ContainsFunc(r.cper, func(o collector.Event) bool { return o.Device == e.Device && bytes.Equal(o.Record, e.Record) }) {
			r.cper = append(r.cper, *e)
		}
	}
	if len(r.cper) == before {
		return
	}
	size := func(e *collector.Event) int { return max(len(e.Record), maxRecordBytes/maxRecords) }
	held, total := map[string]int{}, 0
	for i := range r.cper {
		held[r.cper[i].Device] += size(&r.cper[i])
		total += size(&r.cper[i])
	}
	for total > maxRecordBytes {
		oldest := 0
		for i := range r.cper {
			if held[r.cper[i].Device] > held[r.cper[oldest].Device] {
				oldest = i
			}
		}
		held[r.cper[oldest].Device] -= size(&r.cper[oldest])
		total -= size(&r.cper[oldest])
		r.cper = slices.Delete(r.cper, oldest, oldest+1)
	}
}

// begin adds a device to the bundle that is being recorded, or begins one. A device
// whose latest bundle has this fault, or is as young as the history, gets no other: one
// that fails again and again must not push the first evidence out of the directory.
func (r *Recorder) begin(s *collector.Snapshot, id string, v *collector.Verdict) {
	if e := r.devices[id]; e != nil && (!v.Since.After(e.fault) || s.Time.Sub(e.fault) < history.Length) {
		return
	}
	if r.pending == nil {
		r.pending = &pending{
			name:  FileName(r.o.Node, s.Time),
			fault: s.Time, events: slices.Clone(s.Events), verdicts: map[string]*collector.Verdict{},
		}
	}
	r.pending.devices = append(r.pending.devices, id)
	r.pending.verdicts[id] = v
	r.pending.published = false
	r.devices[id] = &entry{fault: s.Time, name: r.pending.name, state: recording}
}

func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// Run writes and sends bundles until ctx is done. A bundle that is being recorded then is
// written as it is, and sent if its receiver answers soon.
func (r *Recorder) Run(ctx context.Context) {
	var sending sync.WaitGroup
	if r.o.Target != nil {
		sending.Go(func() { r.send(ctx) })
	}
	var due <-chan time.Time
	looking := time.NewTicker(r.o.Look)
	defer looking.Stop()
	for {
		select {
		case <-r.wake:
			// What there is, in case that the node does not live for another minute:
			// once more for each device that fails within it.
			if r.write(false) && due == nil {
				due = time.After(r.o.After)
			}
		case <-looking.C:
			r.look()
		case <-due:
			due = nil
			if r.write(true) {
				due = time.After(r.o.After)
			}
		case <-ctx.Done():
			sending.Wait()
			if r.write(true); r.o.Target != nil {
				last, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastTimeout)
				r.sendAll(last)
				cancel()
			}
			return
		}
	}
}

// write writes the bundle that is being recorded, under the same name each time. It
// reports whether it is to be written again. One that cannot be written is tried again for
// as long as the history has its fault.
func (r *Recorder) write(last bool) bool {
	r.mu.Lock()
	p := r.pending
	if p == nil {
		r.mu.Unlock()
		return false
	}
	now := *p
	now.devices, now.verdicts = slices.Clone(p.devices), maps.Clone(p.verdicts)
	if r.writing = p.name; last {
		r.pending = nil
	}
	r.mu.Unlock()

	f, err := r.store.save(&now, r.make(&now))
	count(r.counts.writes, err)
	if err != nil {
		r.o.Log.Error("The evidence of a failed device could not be written", "devices", now.devices, "err", err)
	} else if last {
		r.o.Log.Info("The evidence of a failed device is written", "devices", now.devices, "file", r.store.path(f.Name), "bytes", f.Size, "sha256", f.SHA256)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.writing, r.problem = "", err; err == nil {
		r.unwritable = nil
	}
	switch {
	case !last:
		signal(r.put)
	case err != nil:
		for _, id := range now.devices {
			r.devices[id].state, r.devices[id].changed = failed, time.Time{}
		}
		if s := r.o.Latest(); r.pending == nil && s != nil && s.Time.Sub(p.fault) < history.Length {
			r.pending = p
		}
		return r.pending != nil
	default:
		r.follow(f)
		signal(r.put)
		return false
	}
	return true
}

// look forgets the bundles that a person has removed, and where they were, and finds a
// directory that has become read-only or has gone before there is a fault.
func (r *Recorder) look() {
	err := r.store.probe()
	if err != nil {
		count(r.counts.writes, err)
	}
	r.mu.Lock()
	r.unwritable = err
	r.mu.Unlock()
	for _, f := range r.store.list() {
		if _, err := os.Stat(r.store.path(f.Name)); !errors.Is(err, fs.ErrNotExist) {
			continue
		}
		r.store.drop(f.Name)
		r.mu.Lock()
		if r.pending == nil || r.pending.name != f.Name { // else it is written again
			maps.DeleteFunc(r.devices, func(_ string, e *entry) bool { return e.name == f.Name && e.state != sent })
		}
		r.mu.Unlock()
	}
}

// follow sets the state of the devices of a file.
func (r *Recorder) follow(f File) {
	for _, e := range r.devices {
		if e.name != f.Name {
			continue
		}
		e.sha256, e.location, e.state, e.changed = f.SHA256, r.store.path(f.Name), saved, time.Time{}
		switch {
		case f.Sent:
			e.state, e.location = sent, r.o.Target.shown(f.Name)
		case r.o.Target != nil:
			e.state = unsent
		}
	}
}

// Problem is why bundles cannot be written, nil where they can.
func (r *Recorder) Problem() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return cmp.Or(r.unwritable, r.problem)
}

// Make returns a bundle of a device as it is now, and its name. It is empty for a device
// that does not exist.
func (r *Recorder) Make(device string) (name string, data []byte) {
	s := r.o.Latest()
	if s == nil {
		return "", nil
	}
	i := slices.IndexFunc(s.Devices, func(d collector.Device) bool { return d.ID == device })
	if i < 0 {
		return "", nil
	}
	p := &pending{fault: s.Time, requested: true, devices: []string{cmp.Or(s.Devices[i].Parent, device)}, events: s.Events}
	if v := s.Devices[i].Verdict; v != nil && v.State != "healthy" && !v.Since.IsZero() {
		p.fault = v.Since
	}
	return FileName(r.o.Node, s.Time), r.make(p)
}

// List returns the bundles in the directory, the latest first.
func (r *Recorder) List() []File {
	list := r.store.list()
	slices.Reverse(list)
	return list
}

// Read returns a bundle of List.
func (r *Recorder) Read(name string) ([]byte, error) {
	if !slices.ContainsFunc(r.store.list(), func(f File) bool { return f.Name == name }) {
		return nil, fs.ErrNotExist
	}
	return ReadFile(r.store.path(name))
}

// FileName returns the name of a bundle of a node.
func FileName(node string, at time.Time) string {
	return "accel-" + fileName(node) + at.UTC().Format("-20060102T150405Z") + suffix
}

// fileName returns a text with the characters of a file name only.
func fileName(text string) string {
	return strings.Map(func(c rune) rune {
		if c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '.' || c == '-' || c == '_' {
			return c
		}
		return '_'
	}, cmp.Or(text, "node"))
}

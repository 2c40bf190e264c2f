//go:build linux && cgo

package nvidia

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"github.com/accel-exporter/accel-exporter/collector"
)

var (
	callEventTypes = function("nvmlDeviceGetSupportedEventTypes")
	callRegister   = function("nvmlDeviceRegisterEvents")
	callSetCreate  = function("nvmlEventSetCreate")
	callSetFree    = function("nvmlEventSetFree")
	callSetWait    = define(call{name: "nvmlEventSetWait_v2", versions: []string{"nvmlEventSetWait"}, quiet: nvml.ERROR_TIMEOUT})
)

const (
	// waitTimeout bounds a wait, in milliseconds. A set must not be freed
	// during a wait, so Close and new GPUs wait this long.
	waitTimeout = 1000
	minBackoff  = time.Second
	maxBackoff  = 30 * time.Second
)

// eventKinds are the nvmlEventType* to report. Changes of P-state and clocks
// are not.
var eventKinds = map[uint64]collector.EventKind{
	nvml.EventTypeXidCriticalError:       collector.EventXid,
	nvml.EventMigConfigChange:            collector.EventMIGConfig,
	nvml.EventTypeGpuRecoveryAction:      collector.EventRecoveryAction,
	nvml.EventTypeGpuUnavailableError:    collector.EventUnavailable,
	nvml.EventTypeNonFatalPoisonError:    collector.EventPoison,
	nvml.EventTypeFatalPoisonError:       collector.EventPoisonFatal,
	nvml.EventTypeSingleBitEccError:      collector.EventECCSingleBit,
	nvml.EventTypeDoubleBitEccError:      collector.EventECCDoubleBit,
	nvml.EventTypeSingleBitEccErrorStorm: collector.EventSingleBitStorm,
	nvml.EventTypeDramRetirementEvent:    collector.EventRetirement,
	nvml.EventTypeDramRetirementFailure:  collector.EventRetirementError,
	nvml.EventTypePowerSourceChange:      collector.EventPowerSource,
}

// noInstance is the instance id of an event that the driver cannot place.
const noInstance = 0xFFFFFFFF

// partition is a MIG device by GPU instance and compute instance.
type partition struct {
	gi, ci int
	id     string
}

// watched is a GPU to receive events of.
type watched struct {
	id      string
	types   uint64
	reshape *atomic.Bool
	parts   []partition
	// well: the GPU answers, so it can be registered.
	well, registered bool
}

// events receives the driver's events on its own goroutine.
type events struct {
	lib  *library
	emit func(collector.Event)
	// operational: GPU Operational Events are wanted.
	operational bool

	recorded chan string // GPUs whose error records are to be read; nil for none

	wake chan struct{}
	quit chan struct{}
	// ended is closed for each goroutine that has ended.
	ended []chan struct{}

	mu     sync.Mutex
	gpus   map[nvml.Device]*watched
	counts []collector.CallError
	// unregistered: a GPU waits to be registered.
	unregistered bool
}

func newEvents(lib *library, o *Options, emit func(collector.Event)) *events {
	e := &events{
		lib: lib, emit: emit, operational: o.OperationalEvents, gpus: map[nvml.Device]*watched{},
		wake: make(chan struct{}, 1), quit: make(chan struct{}),
	}
	w := &waiter{events: e, asker: newAsker(lib, new(round))}
	e.start(w.run)
	if o.ErrorRecords {
		e.recorded = make(chan string, 64)
		r := &records{events: e, gpus: map[string]*recordsOf{}}
		e.start(r.run)
	}
	return e
}

// start runs a goroutine that ends when events are stopped.
func (e *events) start(run func()) {
	ended := make(chan struct{})
	e.ended = append(e.ended, ended)
	go func() {
		defer close(ended)
		run()
	}()
}

// watch adds a newly identified GPU. Its events arrive after commit.
func (e *events) watch(g *gpu) {
	supported, ok := ask(&g.asker, callEventTypes, g.handle.GetSupportedEventTypes)
	types := uint64(0)
	for t := range eventKinds {
		types |= t & supported
	}
	if !ok || types == 0 {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	w := e.gpus[g.handle]
	if w == nil {
		w = &watched{}
		e.gpus[g.handle] = w
	}
	w.id, w.types, w.reshape, w.well = g.identity.device.ID, types, &g.reshape, true
	e.unregistered = e.unregistered || !w.registered
}

// lose records that the GPU does not answer and cannot be registered.
func (e *events) lose(h nvml.Device) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if w := e.gpus[h]; w != nil {
		w.well = false
	}
}

// partitions sets the current MIG devices of a GPU.
func (e *events) partitions(g *gpu) {
	e.mu.Lock()
	defer e.mu.Unlock()
	w := e.gpus[g.handle]
	if w == nil {
		return
	}
	w.parts = nil
	for _, m := range g.mig.devices {
		w.parts = append(w.parts, partition{gi: m.gi, ci: m.ci, id: m.device.ID})
	}
}

// blind reports whether no event would announce a change of h's MIG devices.
func (e *events) blind(h nvml.Device) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	w := e.gpus[h]
	return w == nil || !w.registered || w.types&nvml.EventMigConfigChange == 0
}

// commit registers the GPUs found in a round, all at once.
func (e *events) commit() {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.unregistered {
		select {
		case e.wake <- struct{}{}:
		default:
		}
	}
}

// publish passes the counts of a goroutine to the next Sample and resets them.
func (e *events) publish(a *asker) {
	counts, _ := a.take()
	e.mu.Lock()
	defer e.mu.Unlock()
	t := tally{counts: e.counts}
	t.calls(counts)
	e.counts = t.counts
}

// calls returns the failed calls since the previous call.
func (e *events) calls() []collector.CallError {
	e.mu.Lock()
	defer e.mu.Unlock()
	c := e.counts
	e.counts = nil
	return c
}

func (e *events) stop() { close(e.quit) }

func (e *events) stopped(done <-chan struct{}) bool {
	for _, ended := range e.ended {
		select {
		case <-ended:
		case <-done:
			return false
		}
	}
	return true
}

// deliver emits an event of the driver.
func (e *events) deliver(data nvml.EventData, now time.Time) {
	kind, ok := eventKinds[data.EventType]
	if !ok {
		return
	}
	event := collector.Event{Time: now, Source: Name, Kind: kind, Code: data.EventData}
	e.mu.Lock()
	if w := e.gpus[data.Device]; w != nil {
		event.Device = w.id
		event.Partition = w.partitionOf(data.GpuInstanceId, data.ComputeInstanceId)
		if kind == collector.EventMIGConfig {
			w.reshape.Store(true)
		}
	}
	e.mu.Unlock()
	e.emit(event)
	e.readRecords(event.Device)
}

// partitionOf returns the MIG device that caused an event, where it is unique.
func (w *watched) partitionOf(gi, ci uint32) string {
	if gi == noInstance {
		return ""
	}
	found := ""
	for _, p := range w.parts {
		if p.gi != int(gi) || ci != noInstance && p.ci != int(ci) {
			continue
		}
		if found != "" {
			return ""
		}
		found = p.id
	}
	return found
}

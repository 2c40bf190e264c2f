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
	// waitTimeout bounds a wait, in milliseconds: a set must not be freed
	// while it is waited for, so this is how long Close and new GPUs wait.
	waitTimeout = 1000
	minBackoff  = time.Second
	maxBackoff  = 30 * time.Second
)

// eventKinds are nvmlEventType*; P-state and clock changes are no news.
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

// noInstance is the id of an instance that the driver cannot name.
const noInstance = 0xFFFFFFFF

// partition is a MIG device by its place.
type partition struct {
	gi, ci int
	id     string
}

// watched is a GPU whose events are wanted.
type watched struct {
	id      string
	types   uint64
	reshape *atomic.Bool
	parts   []partition
	// well: the GPU answers, so it can be registered.
	well, registered bool
}

// events waits for what the driver announces, on a goroutine of its own.
type events struct {
	lib  *library
	emit func(collector.Event)
	wake chan struct{}
	quit chan struct{}
	done chan struct{}

	mu     sync.Mutex
	gpus   map[nvml.Device]*watched
	counts []collector.CallError
	// unregistered: a GPU waits to be registered.
	unregistered bool
}

func newEvents(lib *library, emit func(collector.Event)) *events {
	e := &events{
		lib: lib, emit: emit, gpus: map[nvml.Device]*watched{},
		wake: make(chan struct{}, 1), quit: make(chan struct{}), done: make(chan struct{}),
	}
	w := &waiter{events: e, asker: newAsker(lib.has, new(round))}
	go w.run()
	return e
}

// watch makes the events of a GPU that has just been learnt wanted. They come
// once commit has been called.
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

// lose says that the GPU does not answer, and cannot be registered anew.
func (e *events) lose(h nvml.Device) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if w := e.gpus[h]; w != nil {
		w.well = false
	}
}

// partitions says which MIG devices a GPU has now.
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

// blind reports whether a change of h's MIG devices would go unannounced.
func (e *events) blind(h nvml.Device) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	w := e.gpus[h]
	return w == nil || !w.registered || w.types&nvml.EventMigConfigChange == 0
}

// commit wakes the goroutine for the GPUs that a round has found, all at once.
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

// calls returns the failed calls since it was last called.
func (e *events) calls() []collector.CallError {
	e.mu.Lock()
	defer e.mu.Unlock()
	c := e.counts
	e.counts = nil
	return c
}

func (e *events) stop() { close(e.quit) }

func (e *events) stopped(done <-chan struct{}) bool {
	select {
	case <-e.done:
		return true
	case <-done:
		return false
	}
}

// deliver emits what the driver has announced.
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
}

// partitionOf finds the one MIG device that an event can be blamed on.
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

//go:build linux && cgo

package nvidia

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"github.com/accel-exporter/accel-exporter/collector"
)

var callHandle = define(call{name: "nvmlDeviceGetHandleByIndex_v2", versions: []string{"nvmlDeviceGetHandleByIndex"}, vital: true})

// gpu is the physical GPU at one index of the driver's enumeration, with its
// MIG devices. Its fields belong to the goroutine that reads it.
type gpu struct {
	asker
	index  int
	lib    *library
	events *events
	slow   time.Duration

	handle   nvml.Device
	identity identity
	// known is the identity of the GPU and its MIG devices as last read. It is
	// replaced, never modified.
	known []collector.Device

	nextHandle, nextMIG, nextSlow, nextIdentity, nextInforom, nextSuspends, nextRecords time.Time

	inforomKnown, inforomValid bool
	// kept are the last slow readings. They are repeated in each round until they are
	// read again; rare are the readings among them that only one of rarely slow rounds
	// reads.
	kept, rare []collector.Reading
	slowRounds int
	rejects    []collector.Reject
	// widest is the most lanes that the link has had.
	widest float64
	// size is the number of readings in the previous round.
	size int

	fast, seldom *batch
	paced        []pace
	values       []nvml.FieldValue // scratch space of readBatches
	thermalAsked bool
	// offsets are the distances of T.Limit between the margin's zero and a measure
	// (fields 196, 194, 193, 195; degrees, mostly negative).
	offsets map[int]float64
	links   links
	c2c     c2c
	gpm     gpm
	// gpmAsked: whether the GPU has performance counters has been determined.
	gpmAsked, gpmThere bool
	mig                mig
	clients            clients
	// reshape is set by the event that reports a change of MIG devices, moved when the
	// driver lists another number of GPUs.
	reshape, moved atomic.Bool
	// ill is set while the GPU does not answer. It is identified again in the
	// round after its return: it may have been reset or replaced.
	ill, back bool
	// claims are shared by all GPUs. taken: in this round another goroutine has
	// claimed the handle.
	claims *claims
	taken  bool
	sleep  sleep
	// suspends: the driver can suspend the GPU. It decides that when it is loaded.
	suspends bool
	// left is set when the index is not read any more.
	left atomic.Bool
}

// gpuAnswer is one round of a GPU.
type gpuAnswer struct {
	devices []collector.Device
	known   []collector.Device
	down    string
	calls   []collector.CallError
	// stale is why the driver may have been replaced, where the GPU does not
	// answer.
	stale nvml.Return
	err   error
	// mig: the GPU is in MIG mode. direct: an NVLink of it is down, and they lead
	// to other GPUs as far as known.
	mig, direct bool
}

// read is one round.
func (g *gpu) read(now time.Time) (a gpuAnswer) {
	defer func() {
		if g.claims.release(g) {
			g.gpm.free(&g.asker)
			g.dropMIG()
		}
	}()
	if rests, asleep := g.asleep(now); asleep {
		return rests
	}
	if len(g.known) > 0 && g.due(&g.nextRecords, g.slow, now) {
		g.events.readRecords(g.known[0].ID)
	}
	g.taken, g.now = false, now
	switch {
	case g.open(now):
		a.devices, a.down = g.readDevices(now)
		a.mig, a.direct = g.mig.enabled, g.links.direct
	case g.failed == callHandle.name && g.failedRet == nvml.ERROR_INVALID_ARGUMENT:
		// The driver lists fewer GPUs than a moment ago: none has this index.
		g.handle, g.known = nil, nil
	case g.failed == callHandle.name && g.failedRet == nvml.ERROR_NO_PERMISSION:
		// The GPU is not assigned to this container. The call is counted; no
		// device is at fault.
		g.handle, g.known, g.failed = nil, nil, ""
	case g.taken:
		a.down = collector.ReasonStuck
	default:
		a.down = verdict(g.fatal, collector.ReasonUnavailable)
	}
	if a.down != "" {
		g.illness()
	} else if g.ill {
		g.ill, g.back = false, true
	}
	a.known = g.known
	if a.down != "" {
		a.stale = g.stale
	}
	a.calls, a.err = g.take()
	if g.taken {
		a.err = errNotReturned
	}
	g.answered(a, now)
	return a
}

var errNotReturned = fmt.Errorf("a call has not returned: %w", context.DeadlineExceeded)

// verdict returns the reason for which a device is down.
func verdict(ret nvml.Return, other string) string {
	switch ret {
	case nvml.ERROR_GPU_IS_LOST:
		return collector.ReasonLost
	case nvml.ERROR_RESET_REQUIRED:
		return collector.ReasonResetRequired
	}
	return other
}

// illness prepares for the return of the GPU, which may have been reset.
func (g *gpu) illness() {
	g.ill = true
	g.retry()
	g.gpm.drop()
	g.mig.dropSamples()
	if g.handle != nil {
		g.events.lose(g.handle)
	}
	if len(g.known) == 0 || g.known[0].ID == "" {
		// A temporary name is better than an unreported GPU.
		g.known = []collector.Device{place(g.index)}
	}
}

// open checks that the handle is that of the GPU at this index now, from time to time
// while the GPU answers.
func (g *gpu) open(now time.Time) bool {
	h, ok := g.handle, true
	if moved := g.moved.Swap(false); h == nil || g.ill || g.back || moved || !now.Before(g.nextHandle) {
		g.nextHandle = now.Add(steadyInterval)
		h, ok = ask(&g.asker, callHandle, func() (nvml.Device, nvml.Return) { return g.lib.api.DeviceGetHandleByIndex(g.index) })
	}
	if !ok {
		return false
	}
	if known, ok := g.claims.take(h, g); !ok {
		g.handle, g.known, g.taken = nil, known, true
		return false
	}
	if h == g.handle && !g.back {
		return true
	}
	g.back = false
	if !g.learn(h, now) {
		g.handle = nil
		return false
	}
	return true
}

// learn identifies the GPU behind h and forgets the previous one.
func (g *gpu) learn(h nvml.Device, now time.Time) bool {
	g.handle = h
	g.forgetAnswers()
	g.dropMIG()
	g.kept, g.rejects = nil, nil
	g.nextMIG, g.nextSlow, g.nextIdentity, g.nextInforom, g.nextSuspends = time.Time{}, time.Time{}, time.Time{}, time.Time{}, time.Time{}
	g.inforomKnown = false
	if !g.readIdentity() {
		return false
	}
	g.nextIdentity = now.Add(identityInterval)
	g.events.watch(g)
	return true
}

// readDevices reads the GPU and its MIG devices.
func (g *gpu) readDevices(now time.Time) ([]collector.Device, string) {
	if !now.Before(g.nextIdentity) {
		g.nextIdentity = now.Add(identityInterval)
		if !g.renewIdentity() {
			return nil, verdict(g.fatal, collector.ReasonError)
		}
	}
	d := g.identity.device
	d.Readings = append(make([]collector.Reading, 0, g.size+8), d.Readings...)
	slow := g.due(&g.nextSlow, g.slow, now)
	g.followMIG(&d, now, slow)
	alive := g.readFast(&d, now)
	if slow {
		g.readSlow(now)
		d.Rejects = append(d.Rejects, g.rejects...)
	}
	g.readMargins(&d)
	d.Readings = append(d.Readings, g.kept...)
	read := g.clients.read(&d, &g.asker, g.handle, now, g.lib.foreign)
	if !g.mig.enabled {
		// With MIG, each instance reports its own processes.
		if read {
			g.clients.readUtilization(&g.asker, g.handle, now)
		}
		d.Clients = g.clients.clients(now)
	}
	g.readGPM(&d, now)
	migs := g.readMIGs(now, slow)
	switch {
	case g.fatal != nvml.SUCCESS:
		return nil, verdict(g.fatal, collector.ReasonError)
	case !alive && g.failed != "":
		// That the driver has none of the values, as on a Jetson, is an answer.
		return nil, collector.ReasonError
	}
	g.readRefusals(&d)
	g.size = len(d.Readings)
	d.Sampled = now
	return append([]collector.Device{d}, migs...), ""
}

// due reports whether it is next, or will be before the next round, and moves
// next by the interval. The first round reads everything; the second read is
// earlier by up to half an interval, by the index, which spreads the GPUs.
func (g *gpu) due(next *time.Time, interval time.Duration, now time.Time) bool {
	if now.Add(interval / 10).Before(*next) {
		return false
	}
	if next.IsZero() {
		interval = interval * time.Duration(g.index%16+16) / 32
	}
	*next = now.Add(interval)
	return true
}

// rarely is how many slow rounds have one read of what an operator or the board sets, or
// what no judge uses.
const rarely = 6

// readSlow refreshes the slow readings.
func (g *gpu) readSlow(now time.Time) {
	d := collector.Device{Readings: make([]collector.Reading, 0, len(g.kept)+8)}
	if g.slowRounds%rarely == 0 {
		rare := collector.Device{}
		g.readRare(&rare)
		g.rare, d.Rejects = rare.Readings, rare.Rejects
	}
	if g.failed == "" {
		g.slowRounds++
	}
	g.seldom.read(g, &d, nil)
	g.readNumbers(&d, g.seldom, powerLimits)
	d.Readings = append(d.Readings, g.rare...)
	g.readRepairs(&d)
	g.readNumbers(&d, nil, engines)
	g.readNumbers(&d, nil, pcieLink)
	g.readSlot(&d)
	g.readECC(&d, &eccFamilies[volatile])
	g.readSRAM(&d)
	g.readRemaps(&d)
	g.readRetired(&d)
	g.readBoard(&d, now)
	g.readFabric(&d)
	g.links.read(g, &d)
	g.c2c.read(g, &d)
	g.kept, g.rejects = d.Readings, d.Rejects
}

// readRare reads what only one of rarely slow rounds reads.
func (g *gpu) readRare(d *collector.Device) {
	for _, list := range [][]number{maxima, temperatureLimits, pcieMaxima} {
		g.readNumbers(d, nil, list)
	}
	g.readModes(d)
	g.readLicenses(d)
	g.readECC(d, &eccFamilies[aggregate])
	g.readBanks(d)
}

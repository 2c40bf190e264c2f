//go:build linux && cgo

package dcgm

import (
	"maps"
	"slices"
	"time"

	"github.com/NVIDIA/go-dcgm/pkg/dcgm"

	"github.com/accel-exporter/accel-exporter/collector"
)

// Why profiling counters are missing: values of the label reason of
// accel_dcgm_profiling_up.
const (
	profilingHeld       = "in_use"
	profilingUnable     = "not_supported"
	profilingPermission = "no_permission"
	profilingPaused     = "paused"
	profilingRefused    = "refused"
)

// Back-off between two attempts to start profiling.
const (
	rearmFirst = 10 * time.Second
	rearmMost  = 10 * time.Minute
)

// profiler watches the profiling counters of devices whose counters NVML does
// not have. Another tool may occupy or pause them at any time; the profiler
// then retries with back-off.
type profiler struct {
	watches []*watch
	// reason is why an entity has no counters, empty where it has them.
	reason map[entity]string
	// arrived is when the last new value of an entity arrived. stamps are the
	// timestamps of those values; they stop when the watch stops.
	arrived map[entity]time.Time
	stamps  map[entity]int64
	began   time.Time
	retry   time.Time
	backoff time.Duration
}

// profilingReason returns the reason for a return code.
func profilingReason(c code) string {
	switch {
	case c == ok:
		return ""
	case c == inUse, c == maxLimit:
		return profilingHeld
	case c == requiresRoot, c == noPermission:
		return profilingPermission
	case c == paused:
		return profilingPaused
	case c.lacking(), c == moduleNotLoaded:
		return profilingUnable
	}
	return profilingRefused
}

// profiled are the entities to profile: GPUs and their MIG instances.
func (e *engine) profiled() []entity {
	if e.options.Profiling == ProfilingOff {
		return nil
	}
	var list []entity
	for _, g := range e.there.gpus {
		d := e.devices[g]
		if d == nil {
			continue
		}
		old := d.capability > 0 && d.capability < withGPM
		if old || e.options.Profiling == ProfilingOn || e.options.Alone {
			list = append(list, g)
		}
	}
	return list
}

// start watches the counters of all entities to profile.
func (p *profiler) start(e *engine, now time.Time) code {
	*p = profiler{backoff: p.backoff, began: now, reason: map[entity]string{}, arrived: map[entity]time.Time{}, stamps: map[entity]int64{}}
	sets := map[string][]entity{}
	fields := map[string][]uint16{}
	for _, g := range e.profiled() {
		can, c := e.metricsOf(g)
		if c.gone() {
			return c
		}
		whole := append([]entity{g}, e.instancesOf(g)...)
		if c == ok && len(can) == 0 {
			c = profilingNot
		}
		for _, x := range whole {
			p.reason[x] = profilingReason(c)
		}
		if c != ok {
			continue
		}
		for _, x := range whole {
			key := string(rune(x.group)) + keyOf(can)
			sets[key], fields[key] = append(sets[key], x), can
		}
	}
	for _, key := range slices.Sorted(maps.Keys(sets)) {
		w, c := e.arm(sets[key], fields[key], e.options.WatchInterval)
		if c.gone() {
			return c
		}
		for _, x := range sets[key] {
			p.reason[x] = profilingReason(c)
		}
		if c == ok {
			p.watches = append(p.watches, w)
		}
	}
	p.plan(now)
	return ok
}

// metricsOf returns the profiling fields that a GPU supports and the exporter
// reads.
func (e *engine) metricsOf(g entity) ([]uint16, code) {
	if !has("dcgmProfGetSupportedMetricGroups") {
		return nil, functionNotFound
	}
	groups, err := dcgm.GetSupportedMetricGroups(uint(g.id))
	c := e.lib.code(err)
	e.calls.count("dcgmProfGetSupportedMetricGroups", c)
	var list []uint16
	for _, m := range groups {
		for _, f := range m.FieldIds {
			if f <= 0xffff && rowOf(profilingRows, uint16(f)) != nil && !slices.Contains(list, uint16(f)) {
				list = append(list, uint16(f))
			}
		}
	}
	slices.Sort(list)
	return list, c
}

// instancesOf returns the MIG instances of a GPU.
func (e *engine) instancesOf(g entity) []entity {
	var list []entity
	for _, s := range e.there.slices {
		if s.gpu == g {
			list = append(list, s.instance)
		}
	}
	return list
}

// plan sets the time of the next attempt. It sets none for an unsupported GPU.
func (p *profiler) plan(now time.Time) {
	for _, why := range p.reason {
		if why != "" && why != profilingUnable {
			p.backoff = min(max(2*p.backoff, rearmFirst), rearmMost)
			p.retry = now.Add(p.backoff)
			return
		}
	}
	p.retry = time.Time{}
}

// stop ends the watches.
func (p *profiler) stop(e *engine) {
	for _, w := range p.watches {
		e.disarm(w)
	}
	p.watches = nil
}

// read adds the counters to the round, and restarts stopped counters.
func (p *profiler) read(e *engine, now time.Time) code {
	if !p.retry.IsZero() && !now.Before(p.retry) {
		p.stop(e)
		if c := p.start(e, now); c != ok {
			return c
		}
	}
	for _, w := range p.watches {
		if c := e.read(w, func(r *record) { p.take(e, r, now) }); c.gone() {
			return c
		}
	}
	p.judge(now, e.options.WatchInterval)
	for x, why := range p.reason {
		if d := e.devices[x]; d != nil && (why != "" || p.fresh(x, now, e.options.WatchInterval)) {
			d.now.SetBool(collector.DCGMProfiling, why == "", why)
		}
	}
	return ok
}

// take adds one value. The host engine repeats the last value when no new one
// arrives, so its timestamp decides.
func (p *profiler) take(e *engine, r *record, now time.Time) {
	x := r.entity()
	d, row := e.devices[x], rowOf(profilingRows, r.field)
	if d == nil || row == nil {
		return
	}
	v, why := r.number()
	if why != isValue {
		e.miss(d, r, row.metric, why)
		return
	}
	delete(d.missing, place{x, r.field})
	if r.ts != p.stamps[x] { // an earlier one after the clock was set back
		p.stamps[x], p.arrived[x] = r.ts, now
	}
	if p.fresh(x, now, e.options.WatchInterval) {
		d.set(row, v, row.labels)
	}
}

// fresh reports whether the last value is current. The rounds and the updates
// of the host engine are not synchronized.
func (p *profiler) fresh(x entity, now time.Time, interval time.Duration) bool {
	at, ever := p.arrived[x]
	return ever && now.Sub(at) <= 3*max(interval, time.Second)
}

// judge sets the reason of each entity, and plans the next attempt.
func (p *profiler) judge(now time.Time, interval time.Duration) {
	stopped := false
	for _, w := range p.watches {
		for _, x := range w.entities {
			last := p.began
			if at, ever := p.arrived[x]; ever {
				last = at
			}
			switch {
			case p.fresh(x, now, interval):
				p.reason[x] = ""
			case now.Sub(last) > max(rearmFirst, 5*interval):
				p.reason[x] = profilingPaused
				stopped = true
			}
		}
	}
	if stopped && p.retry.IsZero() {
		p.plan(now)
	}
	if now.Sub(p.began) > rearmMost {
		p.backoff = 0
	}
}

//go:build linux && cgo

package dcgm

import (
	"time"

	"github.com/NVIDIA/go-dcgm/pkg/dcgm"

	"github.com/accel-exporter/accel-exporter/collector"
)

// healthWatches are DCGM's systems, by bit: the values of the label watch.
var healthWatches = []struct {
	bit  dcgm.HealthSystem
	name string
	of   group
}{
	{dcgm.DCGM_HEALTH_WATCH_PCIE, "pcie", gpus},
	{dcgm.DCGM_HEALTH_WATCH_NVLINK, "nvlink", gpus},
	{dcgm.DCGM_HEALTH_WATCH_PMU, "pmu", gpus},
	{dcgm.DCGM_HEALTH_WATCH_MCU, "mcu", gpus},
	{dcgm.DCGM_HEALTH_WATCH_MEM, "memory", gpus},
	{dcgm.DCGM_HEALTH_WATCH_SM, "sm", gpus},
	{dcgm.DCGM_HEALTH_WATCH_INFOROM, "inforom", gpus},
	{dcgm.DCGM_HEALTH_WATCH_THERMAL, "thermal", gpus},
	{dcgm.DCGM_HEALTH_WATCH_POWER, "power", gpus},
	{dcgm.DCGM_HEALTH_WATCH_DRIVER, "driver", gpus},
	{dcgm.DCGM_HEALTH_WATCH_NVSWITCH_NONFATAL, "nvswitch_non_fatal", switches},
	{dcgm.DCGM_HEALTH_WATCH_NVSWITCH_FATAL, "nvswitch_fatal", switches},
}

// allWatches is the worst of all systems and of incidents that DCGM assigns to
// no system, such as some Xids.
const allWatches = "all"

// healthStates are the values of the label state with DCGM's numbers, the worst
// last.
var healthStates = []struct {
	result dcgm.HealthResult
	name   string
}{{0, "pass"}, {10, "warn"}, {20, "fail"}}

// health makes the passive checks. A result is valid until the next check.
type health struct {
	groups []healthGroup
	next   time.Time
	// primed: the first check, which only starts the observation, has been
	// made.
	primed bool
	// found is the worst state by entity and watch; nil before the first
	// result.
	found map[entity]map[string]dcgm.HealthResult
	// held are the states that are better in the latest check, and for how many more
	// checks they are shown.
	held map[watchOf]hold
}

type watchOf struct {
	entity entity
	watch  string
}

type hold struct {
	result dcgm.HealthResult
	checks int
}

// holdChecks is the number of checks for which a state is shown. A check has what
// happened since the last one: without this an Xid would fail for one check.
const holdChecks = 10

type healthGroup struct {
	group    dcgm.GroupHandle
	entities []entity
}

// start sets the watches.
func (h *health) start(e *engine) code {
	h.close(e)
	if !has("dcgmHealthSet") || !has("dcgmHealthCheck") {
		e.calls.count("dcgmHealthSet", functionNotFound)
		return ok
	}
	for _, list := range [][]entity{e.there.gpus, e.there.switches} {
		if len(list) == 0 {
			continue
		}
		g, taken, c := e.makeGroup(list)
		if c != ok {
			if c.gone() {
				return c
			}
			continue
		}
		systems := dcgm.HealthSystem(0)
		for _, w := range healthWatches {
			if w.of == list[0].group {
				systems |= w.bit
			}
		}
		if c := e.lib.code(dcgm.HealthSet(g, systems)); !e.calls.count("dcgmHealthSet", c) {
			e.destroyGroup(g)
			if c.gone() {
				return c
			}
			continue
		}
		h.groups = append(h.groups, healthGroup{g, taken})
	}
	return ok
}

// close ends the watches.
func (h *health) close(e *engine) {
	for _, g := range h.groups {
		e.calls.count("dcgmHealthSet", e.lib.code(dcgm.HealthSet(g.group, 0)))
		e.destroyGroup(g.group)
	}
	*h = health{}
}

// read makes the check when it is due, and adds the last result.
func (h *health) read(e *engine, now time.Time) code {
	if len(h.groups) > 0 && !now.Before(h.next) {
		h.next = now.Add(e.options.HealthInterval)
		if c := h.check(e); c.gone() {
			return c
		}
	}
	for x, watches := range h.found {
		d := e.devices[x]
		if d == nil {
			continue
		}
		for _, w := range healthWatches {
			if w.of == x.group {
				setHealth(d, w.name, watches[w.name])
			}
		}
		setHealth(d, allWatches, watches[allWatches])
	}
	return ok
}

func setHealth(d *device, watch string, is dcgm.HealthResult) {
	for _, s := range healthStates {
		d.now.SetBool(collector.DCGMHealth, is == s.result, watch, s.name)
	}
}

// check reads the incidents since the last check. The answer takes 1 MB in
// go-dcgm, so the interval is long.
func (h *health) check(e *engine) code {
	found := map[entity]map[string]dcgm.HealthResult{}
	for _, g := range h.groups {
		answer, err := dcgm.HealthCheck(g.group)
		if c := e.lib.code(err); !e.calls.count("dcgmHealthCheck", c) {
			if c.gone() {
				return c
			}
			continue
		}
		for _, x := range g.entities {
			found[x] = map[string]dcgm.HealthResult{}
		}
		for _, i := range answer.Incidents {
			if i.Error.Code == dcgm.DCGM_FR_IMEX_UNHEALTHY {
				continue // about the node, and reported on healthy nodes without an IMEX domain
			}
			x := entity{group(i.EntityInfo.EntityGroupId), uint32(i.EntityInfo.EntityId)}
			watches := found[x]
			if watches == nil {
				continue
			}
			watches[allWatches] = max(watches[allWatches], worst(i.Health))
			for _, w := range healthWatches {
				if w.bit == i.System {
					watches[w.name] = max(watches[w.name], worst(i.Health))
				}
			}
		}
	}
	if h.primed {
		h.hold(found)
		h.found = found
	}
	h.primed = true
	return ok
}

// hold replaces the results of a check by worse ones of the checks before.
func (h *health) hold(found map[entity]map[string]dcgm.HealthResult) {
	next := map[watchOf]hold{}
	for x, watches := range found {
		for w, result := range watches {
			next[watchOf{x, w}] = hold{result, holdChecks}
		}
	}
	for at, was := range h.held {
		watches := found[at.entity]
		if was.checks--; watches == nil || was.checks == 0 || was.result <= watches[at.watch] {
			continue
		}
		watches[at.watch] = was.result
		next[at] = was
	}
	h.held = next
}

// worst maps a result without a name to the worst named one below it.
func worst(r dcgm.HealthResult) dcgm.HealthResult {
	known := healthStates[0].result
	for _, s := range healthStates {
		if r >= s.result {
			known = s.result
		}
	}
	return known
}

package fpga

import (
	"strings"
	"time"

	"github.com/accel-exporter/accel-exporter/collector"
)

// outcomes are the values of the label outcome of
// accel_fpga_reconfigurations_total.
var outcomes = [...]string{"ok", "failed"}

const (
	succeeded = iota
	failed
)

// region detects reconfigurations of one region of a card. A driver shows them
// in one or more of three ways: the state of an FPGA manager leaves its
// terminal states, the region reports that it is busy, its identity changes.
// Signs of the same reconfiguration are counted once.
type region struct {
	*memory
	name   string
	counts [len(outcomes)]uint64

	state    string // of the manager, empty before the first read
	id       string // last identity
	hasID    bool
	busy     bool
	loading  bool      // a reconfiguration has begun and not ended
	rested   time.Time // when the manager last came to rest
	stated   bool      // shown by the manager's state
	finished []reconfiguration
	// credited: the next change of identity belongs to a reconfiguration that
	// has been counted by its state.
	credited bool
}

// reconfiguration has ended and is not counted yet.
type reconfiguration struct {
	ended   time.Time
	outcome int
	// stated: shown by the manager's state. Otherwise it counts only if the
	// identity has changed.
	stated bool
}

// terminal reports whether an FPGA manager in this state is idle. An unknown
// state is terminal.
func terminal(state string) bool {
	switch state {
	case "reset", "firmware request", "parse header", "write init", "write", "write complete":
		return false
	}
	return true
}

func failure(state string) bool { return strings.HasSuffix(state, " error") }

// setState sets the state of the region's manager, read at now.
func (g *region) setState(now time.Time, state string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	before := g.state
	g.state = state
	switch {
	case state == before:
	case !terminal(state):
		g.begin()
		g.stated = true
	case before != "" && !terminal(before):
		g.rested = now
		g.end(now)
	case before != "" && (failure(state) || state == "operating"):
		// From one terminal state to another: too fast to be observed.
		g.finished = append(g.finished, reconfiguration{now, outcomeOf(state), true})
	}
}

// setBusy sets whether the region was busy at now.
func (g *region) setBusy(now time.Time, busy bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	was := g.busy
	g.busy = busy
	if busy && !was && !failure(g.state) { // a failed load leaves it busy
		g.begin()
	} else if was && !busy {
		g.end(now)
	}
}

func (g *region) begin() {
	if !g.loading {
		g.loading, g.stated = true, false
	}
}

// end ends the current reconfiguration when no sign of it remains.
func (g *region) end(now time.Time) {
	if !g.loading || !terminal(g.state) || g.busy && !(g.stated && failure(g.state)) {
		return // a region stays busy after a failed load
	}
	if g.stated {
		now = g.rested // the manager is polled more often than the region
	}
	g.finished = append(g.finished, reconfiguration{now, outcomeOf(g.state), g.stated})
	g.loading = false
}

func outcomeOf(state string) int {
	if failure(state) {
		return failed
	}
	return succeeded
}

// total is how many reconfigurations there were.
func (g *region) total() uint64 {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.counts[succeeded] + g.counts[failed]
}

// settle takes the region's identity, read from asked to now, counts the
// reconfigurations that have ended and emits their events. A region without an
// identity settles with none.
func (g *region) settle(asked, now time.Time, id string, known bool) {
	events := g.account(asked, now, id, known)
	for _, e := range events {
		g.emit(e)
	}
}

func (g *region) account(asked, now time.Time, id string, known bool) []collector.Event {
	g.mu.Lock()
	defer g.mu.Unlock()
	changed := known && g.hasID && id != g.id
	var events []collector.Event
	rest := g.finished[:0]
	for _, c := range g.finished {
		if len(g.finished) < maxFinished && g.waits(c, asked, now, known) {
			rest = append(rest, c)
			continue
		}
		if !c.stated && !changed {
			continue // for example a reset of the port
		}
		events = append(events, g.count(c, id, known))
		g.credited = true
	}
	g.finished = rest
	if changed && !g.credited && len(g.finished) == 0 && !g.loading {
		events = append(events, g.count(reconfiguration{ended: now, outcome: succeeded}, id, known))
	}
	if known && len(g.finished) == 0 && !g.loading {
		g.id, g.hasID = id, true
		g.credited = false
	}
	return events
}

// waits reports whether a reconfiguration is counted later: the identity may
// have been read before it, or is not known yet.
func (g *region) waits(c reconfiguration, asked, now time.Time, known bool) bool {
	if known {
		return asked.Before(c.ended)
	}
	return g.hasID && c.outcome == succeeded && now.Sub(c.ended) < identityGrace
}

const (
	// identityGrace is how long a reconfiguration waits for the new identity
	// before it is counted without.
	identityGrace = time.Minute
	// maxFinished bounds the reconfigurations that wait to be counted.
	maxFinished = 32
)

func (g *region) count(c reconfiguration, id string, known bool) collector.Event {
	g.counts[c.outcome]++
	detail := g.name + ": " + outcomes[c.outcome]
	if known && id != "" && c.outcome == succeeded {
		detail += ", loaded " + id
	}
	return collector.Event{
		Time: c.ended, Source: Name, Device: g.device, Kind: collector.EventReconfiguration,
		Code: uint64(c.outcome), Sub: outcomes[c.outcome], Detail: detail,
	}
}

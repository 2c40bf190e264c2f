package fpga

import (
	"sync"
	"time"

	"github.com/accel-exporter/accel-exporter/collector"
)

// memory has the counters of a card, by its id. It outlives the card's absence,
// so that a card that leaves the bus while it is configured keeps its counters.
type memory struct {
	device string
	emit   func(collector.Event)
	used   time.Time // of the Source's goroutine

	mu      sync.Mutex
	regions []*region
	latches latches
}

func newMemory(device string, emit func(collector.Event)) *memory {
	return &memory{device: device, emit: emit, latches: latches{seen: map[latch]bool{}, units: map[string]*errorRegister{}}}
}

// readings adds the counters to d, whether the card answers or not.
func (m *memory) readings(d *collector.Device) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, g := range m.regions {
		for i := range outcomes {
			d.Set(collector.FPGAReconfigurations, float64(g.counts[i]), g.labels[i]...)
		}
	}
	for _, name := range m.latches.order {
		u := m.latches.units[name]
		d.Set(collector.FPGAErrors, float64(u.count), u.labels...)
	}
}

// distributions appends copies of the card's histograms.
func (m *memory) distributions(out []collector.Distribution) []collector.Distribution {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, g := range m.regions {
		out = append(out, g.durations.Clone())
	}
	return out
}

// region returns the tracker of a region, creating it at the first call. A card
// has few regions, named by its driver; those beyond maxRegions share the last
// tracker.
func (m *memory) region(name string) *region {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, g := range m.regions {
		if g.name == name {
			return g
		}
	}
	if len(m.regions) >= maxRegions {
		return m.regions[maxRegions-1]
	}
	g := &region{memory: m, name: name, durations: collector.NewDistribution(collector.FPGAReconfigurationSeconds, m.device, name)}
	for i, o := range outcomes {
		g.labels[i] = []string{name, o}
	}
	m.regions = append(m.regions, g)
	return g
}

// maxRegions bounds the regions, slots and ports of a card.
const maxRegions = 32

// latch is an error bit that stays set until it is cleared.
type latch struct{ unit, name string }

// latches counts errors of error registers. A register is no counter: an error
// is counted when its bit is set after it was clear.
type latches struct {
	// seen are the bits that have been set once, and whether they are set now.
	seen  map[latch]bool
	units map[string]*errorRegister
	order []string
}

// errorRegister is one error register of a card.
type errorRegister struct {
	labels []string
	count  uint64
	// shown are the bits that have been set since the card was first read, in
	// order of appearance.
	shown []shownLatch
}

type shownLatch struct {
	name   string
	labels []string
}

// maxLatches bounds the bits of one register.
const maxLatches = 64

// latched takes the names of the errors that are set in a register, and yields
// every one that has been set so far with its labels and whether it is set.
// Names beyond maxLatches are dropped.
func (m *memory) latched(register string, set []string, yield func(labels []string, on bool)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	l := &m.latches
	u := l.units[register]
	first := u == nil
	if first {
		u = &errorRegister{labels: []string{register}}
		l.units[register] = u
		l.order = append(l.order, register)
	}
	now := make(map[string]bool, len(set))
	for _, name := range set {
		now[name] = true
		k := latch{register, name}
		on, known := l.seen[k]
		if !known {
			if len(u.shown) >= maxLatches {
				continue
			}
			u.shown = append(u.shown, shownLatch{name, []string{register, name}})
		}
		// A bit that is set in the first read may have been set at any time
		// before.
		if !on && !first {
			u.count++
		}
		l.seen[k] = true
	}
	for _, s := range u.shown {
		l.seen[latch{register, s.name}] = now[s.name]
		yield(s.labels, now[s.name])
	}
}

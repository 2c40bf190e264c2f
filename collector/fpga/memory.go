package fpga

import (
	"slices"
	"sync"

	"github.com/accel-exporter/accel-exporter/collector"
)

// memory has the counters of a card, by its id. It outlives the card's absence,
// so that a card that leaves the bus while it is configured keeps its counters.
type memory struct {
	device string
	emit   func(collector.Event)

	mu        sync.Mutex
	regions   []*region
	registers []*errorRegister
}

func newMemory(device string, emit func(collector.Event)) *memory {
	return &memory{device: device, emit: emit}
}

// readings adds the counters to d, whether the card answers or not.
func (m *memory) readings(d *collector.Device) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, g := range m.regions {
		for i, o := range outcomes {
			d.Set(collector.FPGAReconfigurations, float64(g.counts[i]), g.name, o)
		}
	}
	for _, e := range m.registers {
		d.Set(collector.FPGAErrors, float64(e.count), e.name)
	}
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
	g := &region{memory: m, name: name}
	m.regions = append(m.regions, g)
	return g
}

// maxRegions bounds the regions, slots and ports of a card.
const maxRegions = 32

// errorRegister counts the errors of one error register of a card. A register is
// no counter: an error is counted when its bit is set after it was clear.
type errorRegister struct {
	name  string
	count uint64
	// bits have been set since the card was first read, in order of appearance.
	bits []*errorBit
}

// errorBit is an error of a register, and whether it is set. It stays set until
// software clears it.
type errorBit struct {
	name string
	on   bool
}

// latch reports the errors that are set in a register now, and errors that were
// set in an earlier read.
func (m *memory) latch(r *reading, register string, set []string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	r.Set(collector.FPGAErrorsLatched, float64(len(set)), register)
	i := slices.IndexFunc(m.registers, func(e *errorRegister) bool { return e.name == register })
	first := i < 0
	if first {
		i = len(m.registers)
		m.registers = append(m.registers, &errorRegister{name: register})
	}
	e := m.registers[i]
	for _, name := range set {
		if !slices.ContainsFunc(e.bits, func(b *errorBit) bool { return b.name == name }) {
			e.bits = append(e.bits, &errorBit{name: name})
		}
	}
	for _, b := range e.bits {
		on := slices.Contains(set, b.name)
		// A bit that is set in the first read may have been set at any time
		// before.
		if on && !b.on && !first {
			e.count++
		}
		b.on = on
		r.SetBool(collector.FPGAErrorLatched, on, register, b.name)
	}
}

package fpga

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

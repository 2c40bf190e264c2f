package fpga

// latch is one error bit that stays set until somebody clears it.
type latch struct{ unit, name string }

// latches counts what is seen of error registers. A register is no counter:
// an error is counted when its bit is seen set after it was seen clear.
type latches struct {
	// seen are the bits that have been set once, and whether they are now.
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

// maxLatches bounds the bits of one register: it has no more.
const maxLatches = 64

// latched takes the names of the errors that a register holds now and returns
// every one that it has held so far, with its labels and whether it is set.
// Names beyond maxLatches are left out.
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
		// What is set at the first look has been so for who knows how long.
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

package sim

import (
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Options of Compile.
type Options struct {
	// Frozen stops the clock at this many seconds after Epoch; nil lets it run.
	Frozen *float64
	// Epoch is second 0 of the scenario. The zero time is now, or a fixed date
	// where the clock is stopped.
	Epoch time.Time
}

// frozenEpoch makes timestamps identical in every run with a stopped clock.
var frozenEpoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// Compile makes the state of a scenario, with the boards of the fixtures
// folder. The error has the scenario, or the line in it, that is impossible.
func (sc *Scenario) Compile(fixtures fs.FS, o Options) (*State, error) {
	s := NewState()
	s.Set("scenario", sc.Name)
	if o.Epoch.IsZero() {
		o.Epoch = time.Now()
		if o.Frozen != nil {
			o.Epoch = frozenEpoch
		}
	}
	s.Set("epoch", strconv.FormatInt(o.Epoch.UnixNano(), 10))
	s.Set("clock", "running")
	if o.Frozen != nil {
		s.Set("clock", "frozen "+strconv.FormatFloat(*o.Frozen, 'f', -1, 64))
	}
	for key, fallback := range map[string]string{"version": "580.105.08", "branch": "r580_92", "nvml": "13.580.105.08", "cuda": "13000", "state": "loaded"} {
		if v, ok := sc.driver[key]; ok {
			fallback = v
		}
		s.Set("driver."+key, fallback)
	}
	if v := sc.driver["quirks"]; v != "" {
		s.Set("driver.quirks", v)
	}
	s.Set("driver.generation", "1")
	s.Set("driver.loaded_at", "0")
	for key, v := range sc.cc {
		s.Set("cc."+key, strconv.Itoa(v))
	}
	if missing := slices.Concat(sc.Missing, sc.MissingDCGM); len(missing) > 0 {
		s.Set("missing_symbols", strings.Join(missing, " "))
	}
	s.Set("seq", "0")
	if err := sc.compileGPUs(s, fixtures); err != nil {
		return nil, err
	}
	for _, kind := range slices.Sorted(maps.Keys(sc.parts)) {
		sc.compileParts(s, kind, sc.parts[kind])
	}
	if err := sc.compileMachine(s, fixtures); err != nil {
		return nil, err
	}
	for _, l := range sc.inject {
		if err := s.Inject(strings.Fields(l.value)); err != nil {
			return nil, fmt.Errorf("%s: %w", l.key, err)
		}
	}
	return s, nil
}

func (sc *Scenario) compileGPUs(s *State, fixtures fs.FS) error {
	total := 0
	for _, g := range sc.gpus {
		total += g.count
	}
	if total > 64 {
		return fmt.Errorf("scenario %s: %d GPUs; the libraries hold 64", sc.Name, total)
	}
	s.Set("gpus", strconv.Itoa(total))
	boards, index, n := map[string]*board{}, map[string]int{}, 0
	for _, g := range sc.gpus {
		b, ok := boards[g.board]
		if !ok {
			var err error
			if b, err = loadBoard(fixtures, g.board); err != nil {
				return g.at.errorf("%w", err)
			}
			boards[g.board], index[g.board] = b, len(boards)
			b.compile(s, index[g.board])
		}
		for i := range g.count {
			if err := sc.compileGPU(s, g, b, index[g.board], n, i); err != nil {
				return g.at.errorf("%w", err)
			}
			n++
		}
	}
	return nil
}

func (sc *Scenario) compileGPU(s *State, g gpuEntry, b *board, boardIndex, n, copyNumber int) error {
	prefix := fmt.Sprintf("gpu.%d.", n)
	s.Set(prefix+"board", strconv.Itoa(boardIndex))
	s.Set(prefix+"minor_number", strconv.Itoa(n))
	s.Set(prefix+"uuid", madeUUID("GPU", sc.Name, strconv.Itoa(n)))
	s.Set(prefix+"serial", strconv.Itoa(1650000000001+n))
	s.Set(prefix+"pci.bus_id", b.address(n))
	if len(g.mig) > 0 {
		s.Set(prefix+"mig.mode", "1")
		s.Set(prefix+"mig.pending", "1")
		if err := s.setMIG(n, g.mig); err != nil {
			return err
		}
		for _, v := range g.migValues {
			s.Set(prefix+"mig."+v.key+".load", v.value)
		}
	}
	for _, v := range g.values {
		s.Set(prefix+v.key, v.value)
	}
	for i, p := range g.processes {
		gi, ci := "-1", "-1"
		if p.mig >= 0 {
			rec := s.Get(fmt.Sprintf("%smig.%d", prefix, p.mig))
			if rec == "" {
				return fmt.Errorf("process %d names MIG device %d, which the layout does not have", p.pid, p.mig)
			}
			gi, ci = attr(rec, "gi"), attr(rec, "ci")
		}
		name := strings.ReplaceAll(p.name, " ", "_")
		s.Set(fmt.Sprintf("%sprocess.%d", prefix, i), fmt.Sprintf("pid=%d type=%s memory=%d gi=%s ci=%s share=%d name=%s",
			p.pid+copyNumber*10, p.kind, p.mib<<20, gi, ci, p.share, name))
	}
	return nil
}

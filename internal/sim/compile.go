package sim

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/accel-exporter/accel-exporter/internal/sim/faketree"
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
	d := &sc.Driver
	for key, v := range map[string]string{
		"version": cmp.Or(d.Version, "580.105.08"), "branch": cmp.Or(d.Branch, "r580_92"), "nvml": cmp.Or(d.NVML, "13.580.105.08"),
		"cuda": cmp.Or(d.CUDA, "13000"), "state": cmp.Or(d.State, "loaded"),
	} {
		s.Set("driver."+key, v)
	}
	if len(sc.GPUs) == 0 && len(sc.Trees) > 0 && d.State == "" {
		s.Set("driver.absent", "1") // nor is its library: the node has other vendors' devices
	}
	if len(d.Quirks) > 0 {
		s.Set("driver.quirks", strings.Join(d.Quirks, " "))
	}
	s.Set("driver.generation", "1")
	s.Set("driver.loaded_at", "0")
	if len(sc.MissingSymbols) > 0 {
		s.Set("missing_symbols", strings.Join(sc.MissingSymbols, " "))
	}
	s.Set("seq", "0")
	if err := sc.compileGPUs(s, fixtures); err != nil {
		return nil, err
	}
	sc.compile(s, sc.root, sc.Name)
	if err := sc.compileMachine(s, fixtures); err != nil {
		return nil, err
	}
	for i, words := range sc.Inject {
		if err := s.Inject(strings.Fields(words)); err != nil {
			return nil, sc.root.at("inject", i).errorf("%w", err)
		}
	}
	return s, nil
}

func (sc *Scenario) compileGPUs(s *State, fixtures fs.FS) error {
	boards, index, n := map[string]*board{}, map[string]int{}, 0
	for i, g := range sc.GPUs {
		b, ok := boards[g.Board]
		if !ok {
			var err error
			if b, err = loadBoard(fixtures, g.Board); err != nil {
				return sc.root.at("gpus", i).errorf("%w", err)
			}
			boards[g.Board], index[g.Board] = b, len(boards)
			b.compile(s, index[g.Board])
		}
		for k := range or(g.Count, 1) {
			if err := sc.compileGPU(s, g, b, index[g.Board], n, k); err != nil {
				return sc.root.at("gpus", i).errorf("%w", err)
			}
			n++
		}
	}
	s.Set("gpus", strconv.Itoa(n))
	return nil
}

func (sc *Scenario) compileGPU(s *State, g gpuEntry, b *board, boardIndex, n, copyNumber int) error {
	prefix := fmt.Sprintf("gpu.%d.", n)
	s.Set(prefix+"board", strconv.Itoa(boardIndex))
	s.Set(prefix+"minor_number", strconv.Itoa(n))
	s.Set(prefix+"uuid", madeUUID("GPU", sc.Name, strconv.Itoa(n)))
	s.Set(prefix+"serial", strconv.Itoa(1650000000001+n))
	s.Set(prefix+"pci.bus_id", b.address(n))
	if len(g.MIG) > 0 {
		s.Set(prefix+"mig.mode", "1")
		s.Set(prefix+"mig.pending", "1")
		if err := s.setMIG(n, g.MIG); err != nil {
			return err
		}
		for i, load := range g.MIGLoad {
			s.Set(fmt.Sprintf("%smig.%d.load", prefix, i), load)
		}
	}
	for _, v := range g.values {
		s.Set(prefix+v.key, v.value)
	}
	for i, p := range g.Processes {
		gi, ci := "-1", "-1"
		if p.MIG != nil {
			rec := s.Get(fmt.Sprintf("%smig.%d", prefix, *p.MIG))
			if rec == "" {
				return fmt.Errorf("process %d names MIG device %d, which the layout does not have", p.PID, *p.MIG)
			}
			gi, ci = attr(rec, "gi"), attr(rec, "ci")
		}
		name := strings.Join(strings.Fields(p.Name), "_")
		s.Set(fmt.Sprintf("%sprocess.%d", prefix, i), fmt.Sprintf("pid=%d type=%s memory=%d gi=%s ci=%s share=%d name=%s",
			p.PID+copyNumber*10, cmp.Or(p.Type, "compute"), p.MemoryMiB<<20, gi, ci, or(p.Share, 100), name))
	}
	return nil
}

// compileMachine makes the /sys and /proc of a scenario: its GPUs, then the
// cards of its trees, renumbered where they conflict.
func (sc *Scenario) compileMachine(s *State, fixtures fs.FS) error {
	tree := faketree.New()
	s.tree = tree
	for _, dir := range []string{"/sys/bus/pci/devices", "/sys/class", "/proc"} {
		tree.Mkdir(dir)
	}
	if err := s.plugGPUs(tree); err != nil {
		return fmt.Errorf("scenario %s: %w", sc.Name, err)
	}
	copies, trees := map[string]int{}, map[string]string{}
	for i, name := range sc.Trees {
		more, err := faketree.LoadFS(fixtures, "trees/"+name+".txt")
		if errors.Is(err, fs.ErrNotExist) {
			err = fmt.Errorf("no tree %q; want one of %s, or variants/NAME", name, strings.Join(fixtureNames(fixtures, "trees/*.txt"), ", "))
		}
		if err == nil {
			renameCopy(more, copies[name])
			copies[name]++
			err = tree.Merge(more)
		}
		if err != nil {
			return sc.root.at("trees", i).errorf("%w", err)
		}
		for at := range cardsOf(tree) {
			if trees[at] == "" {
				trees[at] = name
			}
		}
	}
	// By address, as the exporter counts AMD GPUs.
	cards := cardsOf(tree)
	for n, at := range slices.Sorted(maps.Keys(cards)) {
		s.Set(fmt.Sprintf("card.%d", n), fmt.Sprintf("tree=%s kind=%s at=%s", trees[at], cards[at].kind, at))
	}
	if err := sc.compilePods(s); err != nil {
		return err
	}
	s.tellProcesses(tree)
	s.begun = tree.Clone()
	return nil
}

// renameCopy gives the nth copy of a tree its own serial numbers: their last two
// digits are the number of the copy.
func renameCopy(t *faketree.Tree, n int) {
	for _, file := range t.Paths() {
		if base := path.Base(file); base == "unique_id" || base == "serial_number" {
			text, _ := t.Get(file)
			if text = strings.TrimSpace(text); len(text) > 2 {
				t.Set(file, fmt.Sprintf("%s%02x\n", text[:len(text)-2], n))
			}
		}
	}
}

// compilePods adds the node's processes and pods to the state.
func (sc *Scenario) compilePods(s *State) error {
	for i := range s.gpus() {
		for _, key := range s.keys(fmt.Sprintf("gpu.%d.process.", i)) {
			rec := s.Get(key)
			s.addProcess(attr(rec, "pid"), 1000, attr(rec, "name"), "", "")
		}
	}
	if sc.Pods == nil && sc.Allocatable == nil {
		return nil // outside Kubernetes
	}
	s.Set("kubelet", "up")
	s.Set("kubelet.starts", "1")
	if err := s.eachDevice(sc.root.at("allocatable"), sc.Allocatable, s.offer); err != nil {
		return err
	}
	for i, p := range sc.Pods {
		if err := p.compile(s, sc.root.at("pods", i)); err != nil {
			return err
		}
	}
	return nil
}

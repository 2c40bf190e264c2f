package fpga

import (
	"errors"
	"path/filepath"
	"slices"
	"syscall"
	"testing"

	"github.com/accel-exporter/accel-exporter/collector"
	"github.com/accel-exporter/accel-exporter/collector/sysfs"
	"github.com/accel-exporter/accel-exporter/internal/sim/faketree"
)

// fakePerf has counters that go up by a step each time they are read.
type fakePerf struct {
	buggy  bool // as every driver so far: a read adds all since the start
	refuse error
	opened map[uint64]*fakeCounter
	unit   uint32
	cpu    int
	closed int
}

type fakeCounter struct {
	*fakePerf
	step, is, shown uint64
}

func (p *fakePerf) open(unit uint32, config uint64, cpu int) (perfCounter, error) {
	if p.refuse != nil {
		return nil, p.refuse
	}
	p.unit, p.cpu = unit, cpu
	c := &fakeCounter{fakePerf: p, step: 10}
	if config == 0xff0000 { // the clock
		c.is, c.step = 1_000_000, 50
	}
	p.opened[config] = c
	return c, nil
}

func (c *fakeCounter) read() (uint64, error) {
	c.is += c.step
	if c.buggy {
		c.shown += c.is
		return c.shown, nil
	}
	return c.is, nil
}

func (c *fakeCounter) close() { c.closed++ }

// withPMU returns a Source of a PAC A10 with transactions counted by p.
func withPMU(t *testing.T, p perf) *Source {
	t.Helper()
	tree, err := faketree.Load("../../fixtures/trees/intel-pac-a10-dfl.txt")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := tree.Write(dir); err != nil {
		t.Fatal(err)
	}
	return New(sysfs.New(filepath.Join(dir, "sys")), Options{PollInterval: -1, Transactions: true, perf: p})
}

func counted(r collector.Round) []float64 {
	var out []float64
	for _, d := range r.Devices {
		for _, v := range d.Readings {
			if v.Metric == collector.FPGATransactions {
				out = append(out, v.Value)
			}
		}
	}
	return out
}

// TestTrap17CountersThatCountTwice: reading a counter of the driver adds its
// previous count; the true count is exported, for a corrected driver too.
func TestTrap17CountersThatCountTwice(t *testing.T) {
	for _, buggy := range []bool{true, false} {
		p := &fakePerf{buggy: buggy, opened: map[uint64]*fakeCounter{}}
		s := withPMU(t, p)
		var got [][]float64
		for range 4 {
			r, err := s.Sample(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, counted(r))
		}
		if len(got[0]) != 0 {
			t.Errorf("buggy %v: %v before it is known how the driver counts", buggy, got[0])
		}
		for n := 1; n < 4; n++ {
			v := float64(10 * n)
			if want := []float64{v, v, v, v}; !slices.Equal(got[n], want) {
				t.Errorf("buggy %v: round %d: %v, want %v", buggy, n, got[n], want)
			}
		}
		if p.unit != 24 || p.cpu != 0 || len(p.opened) != 5 || p.opened[0xff2000] == nil || p.opened[0xff2007] == nil {
			t.Errorf("unit %d, cpu %d, %d counters", p.unit, p.cpu, len(p.opened))
		}
		if err := s.Close(); err != nil || p.closed != 5 {
			t.Errorf("close: %v, %d counters closed", err, p.closed)
		}
	}
}

// TestTransactionsRefused: without the permission only the counts are absent,
// and the Source returns the error.
func TestTransactionsRefused(t *testing.T) {
	s := withPMU(t, &fakePerf{refuse: syscall.EACCES})
	defer s.Close()
	for range 2 {
		r, err := s.Sample(t.Context())
		if !errors.Is(err, syscall.EACCES) || len(r.Devices) != 1 || r.Devices[0].Down != "" || len(counted(r)) != 0 {
			t.Errorf("%d devices, %v", len(r.Devices), err)
		}
	}
}

// TestSystemPerf: the kernel's error is returned: this machine has no such
// unit.
func TestSystemPerf(t *testing.T) {
	if c, err := (systemPerf{}).open(1<<31, 0, 0); err == nil {
		c.close()
		t.Error("opened a unit that cannot be")
	}
}

// FuzzEvents: a configuration is made only of parts that fit into their
// fields.
func FuzzEvents(f *testing.F) {
	f.Add("event=0x06,evtype=0x02,portid=0xff", "config:0-11")
	f.Add("event=0x06,evtype=0x02,portid=?", "config:12")
	f.Add("event=18446744073709551615", "config:0-63")
	f.Add("", "config:63-0")
	f.Fuzz(func(t *testing.T, event, format string) {
		field, ok := parseBitField(format)
		if ok && (field.low < 0 || field.high > 63 || field.low > field.high) {
			t.Errorf("%q: %v", format, field)
		}
		if !ok {
			return
		}
		fields := map[string]bitField{"event": field}
		config, ok := parseEvent(event, fields)
		width := field.high - field.low + 1
		if ok && width < 64 && config&^((1<<width-1)<<field.low) != 0 {
			t.Errorf("%q in %q: %x", event, format, config)
		}
	})
}

package fpga

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/accel-exporter/accel-exporter/collector"
)

// perf opens counters of a performance monitoring unit as perf_event_open(2):
// on one CPU, for all processes, by the unit's type.
type perf interface {
	open(unit uint32, config uint64, cpu int) (perfCounter, error)
}

// perfCounter is one open counter.
type perfCounter interface {
	read() (uint64, error)
	close()
}

// pmuFiles are the files of the unit of an FME. Source:
// Documentation/ABI/testing/sysfs-bus-event_source-devices-dfl_fme.
var pmuFiles = append(
	[]string{"dfl_fme*/type", "dfl_fme*/cpumask", "dfl_fme*/format/*"},
	below("dfl_fme*/events", "clock", "fab_pcie0_read", "fab_pcie0_write", "fab_mmio_read", "fab_mmio_write")...,
)

// transactions are the counters to open. They count the whole fabric and
// exclude those of one port: perf cannot open the latter meanwhile, so counting
// is the operator's choice.
var transactions = []struct{ event, kind, direction string }{
	{"fab_pcie0_read", "memory", "read"},
	{"fab_pcie0_write", "memory", "write"},
	{"fab_mmio_read", "mmio", "read"},
	{"fab_mmio_write", "mmio", "write"},
}

// pmu counts the transactions of one card's fabric: their number, not their
// size; the driver has no bytes.
type pmu struct {
	clock    *pmuCounter
	counters []*pmuCounter
	// judged: it is known whether the driver counts twice.
	judged, twice bool
}

// pmuCounter is one counter and its last value.
type pmuCounter struct {
	perfCounter
	labels []string
	last   uint64
}

// openPMU opens the counters of the unit at dir. The errno reports a missing
// permission.
func openPMU(r *reading, p perf, dir string) (*pmu, error) {
	unit, ok := r.textEvery(never, dir+"/type")
	kind, err := strconv.ParseUint(unit, 10, 32)
	mask, ok2 := r.textEvery(never, dir+"/cpumask")
	cpu, err2 := strconv.Atoi(firstOf(mask))
	if !ok || !ok2 || err != nil || err2 != nil {
		return nil, fmt.Errorf("%s: type %q, cpumask %q", dir, unit, mask)
	}
	fields := map[string]bitField{}
	for _, name := range []string{"event", "evtype", "portid"} {
		text, _ := r.textEvery(never, dir+"/format/"+name)
		f, ok := parseBitField(text)
		if !ok {
			return nil, fmt.Errorf("%s/format/%s: %q", dir, name, text)
		}
		fields[name] = f
	}
	out := &pmu{}
	open := func(event string) (*pmuCounter, error) {
		text, _ := r.textEvery(never, dir+"/events/"+event)
		config, ok := parseEvent(text, fields)
		if !ok {
			return nil, fmt.Errorf("%s/events/%s: %q", dir, event, text)
		}
		c, err := p.open(uint32(kind), config, cpu)
		if err != nil {
			return nil, fmt.Errorf("perf_event_open %s: %w", event, err)
		}
		return &pmuCounter{perfCounter: c}, nil
	}
	if out.clock, err = open("clock"); err != nil {
		return nil, err
	}
	for _, t := range transactions {
		c, err := open(t.event)
		if err != nil {
			out.close()
			return nil, err
		}
		c.labels = []string{t.kind, t.direction}
		out.counters = append(out.counters, c)
	}
	return out, nil
}

// firstOf returns the first CPU of a mask such as 0 or 2-5,7.
func firstOf(mask string) string {
	first, _, _ := strings.Cut(mask, ",")
	first, _, _ = strings.Cut(first, "-")
	return first
}

// bitField is the position of a part of an event in the configuration.
type bitField struct{ low, high int }

// parseBitField parses a file of format: config:0-11.
func parseBitField(text string) (bitField, bool) {
	text, ok := strings.CutPrefix(text, "config:")
	low, high, ranged := strings.Cut(text, "-")
	if !ranged {
		high = low
	}
	l, err1 := strconv.Atoi(low)
	h, err2 := strconv.Atoi(high)
	return bitField{l, h}, ok && err1 == nil && err2 == nil && l >= 0 && l <= h && h < 64
}

// parseEvent parses a file of events: event=0x06,evtype=0x02,portid=0xff. An
// event with a variable port is not one of the whole fabric.
func parseEvent(text string, fields map[string]bitField) (config uint64, ok bool) {
	if text == "" {
		return 0, false
	}
	for part := range strings.SplitSeq(text, ",") {
		name, value, _ := strings.Cut(part, "=")
		f, known := fields[name]
		v, err := strconv.ParseUint(value, 0, 64)
		if width := f.high - f.low + 1; !known || err != nil || width < 64 && v>>width != 0 {
			return 0, false
		}
		config |= v << f.low
	}
	return config, true
}

// read sets the transactions since the counters were opened.
//
// In every version of the driver so far, each read of a counter adds the whole
// count since it was opened once more: after k reads it is c1 + … + ck, where
// ci is the true count at read i. The true count is the difference of two
// reads. The free-running clock shows whether the driver does so: of two
// consecutive reads the second is then at least twice the first.
func (p *pmu) read(r *reading) {
	if !p.judged {
		p.judge(r)
		return
	}
	for _, c := range p.counters {
		v, err := c.perfCounter.read()
		if err != nil {
			r.fail(fmt.Errorf("read %s: transactions: %w", r.ID, err))
			continue
		}
		count := v
		if p.twice && v >= c.last {
			count -= c.last
		}
		c.last = v
		r.Set(collector.FPGATransactions, float64(count), c.labels...)
	}
}

func (p *pmu) judge(r *reading) {
	first, err1 := p.clock.perfCounter.read()
	second, err2 := p.clock.perfCounter.read()
	if err := errors.Join(err1, err2); err != nil {
		r.fail(fmt.Errorf("read %s: fabric clock: %w", r.ID, err))
		return
	}
	if first == 0 {
		return // it has just been opened
	}
	p.judged, p.twice = true, second >= 2*first
}

func (p *pmu) close() {
	if p.clock != nil {
		p.clock.close()
	}
	for _, c := range p.counters {
		c.close()
	}
}

// systemPerf is the kernel's perf. It requires CAP_PERFMON, or a
// perf_event_paranoid of 0.
type systemPerf struct{}

func (systemPerf) open(unit uint32, config uint64, cpu int) (perfCounter, error) {
	attr := unix.PerfEventAttr{Type: unit, Config: config, Size: uint32(unsafe.Sizeof(unix.PerfEventAttr{}))}
	fd, err := unix.PerfEventOpen(&attr, -1, cpu, -1, unix.PERF_FLAG_FD_CLOEXEC)
	if err != nil {
		return nil, err
	}
	return perfFile(fd), nil
}

// perfFile is the descriptor of a counter.
type perfFile int

func (f perfFile) read() (uint64, error) {
	var b [8]byte
	for {
		n, err := unix.Read(int(f), b[:])
		switch {
		case err == unix.EINTR:
		case err != nil:
			return 0, err
		case n != len(b):
			return 0, fmt.Errorf("%d bytes: %w", n, io.ErrUnexpectedEOF)
		default:
			return binary.NativeEndian.Uint64(b[:]), nil
		}
	}
}

func (f perfFile) close() { unix.Close(int(f)) }

package kernellog

import (
	"bytes"
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/accel-exporter/accel-exporter/collector"
	"github.com/accel-exporter/accel-exporter/collector/sysfs"
)

// maxLine bounds a line in bytes; a longer one is skipped. A record of the
// kernel has at most 8 KiB.
const maxLine = 64 << 10

// reader splits a log into lines and converts them to events.
type reader struct {
	source *Source
	parser *Parser
	fs     sysfs.FS
	log    follower
	stream bool // the log returns each record once
	boot   time.Time
	dated  time.Time // the last timestamp of a line of the past

	carry    []byte // beginning of an unfinished line
	skipping bool   // up to the next end of a line
	last     uint64 // sequence number read last from a stream
	numbered bool   // last is valid
}

func newReader(s *Source) *reader {
	fs := sysfs.New(s.opts.Sysfs)
	return &reader{source: s, fs: fs, parser: NewParser(acceleratorsOf(fs))}
}

// attach makes l the current log. A stream that is opened again repeats its
// records; the known ones are skipped and newer ones are new events.
func (r *reader) attach(l follower) {
	r.log, r.boot, r.dated = l, r.source.opts.Boot(), time.Time{}
	r.drop()
	var st *stream
	if st, r.stream = l.(*stream); r.stream && r.numbered {
		st.past = false
	}
	if f, ok := l.(*fileLog); ok {
		r.dated = f.opened.ModTime()
	}
}

// drop discards the unfinished line.
func (r *reader) drop() { r.carry, r.skipping = r.carry[:0], false }

// feed adds the next bytes of the log.
func (r *reader) feed(b []byte) {
	for offset := 0; len(b) > 0; {
		end := bytes.IndexByte(b, '\n')
		if end < 0 {
			if r.skipping || len(r.carry)+len(b) > maxLine {
				r.carry, r.skipping = r.carry[:0], true
				return
			}
			r.carry = append(r.carry, b...)
			return
		}
		line := b[:end]
		if len(r.carry) > 0 {
			r.carry = append(r.carry, line...)
			line = r.carry
		}
		if r.skipping {
			r.skipping = false
		} else {
			r.line(line, offset)
		}
		offset += len(line) + 1
		r.carry, b = r.carry[:0], b[end+1:]
	}
}

// line handles one line of any form.
func (r *reader) line(line []byte, offset int) {
	rec, ok := parseRecord(line)
	if !ok {
		r.plain(bytes.TrimSuffix(line, []byte{'\r'}), offset)
		return
	}
	if r.stream && !r.count(rec.seq) {
		return
	}
	written := func() time.Time {
		if r.boot.IsZero() {
			return time.Time{}
		}
		return r.boot.Add(time.Duration(rec.usec) * time.Microsecond)
	}
	r.begins(written)
	if !rec.kernel {
		return
	}
	text := rec.text
	if bytes.IndexByte(text, '\\') >= 0 {
		text = unescape(text)
	}
	for {
		// Several lines that the driver prints at once are one record.
		line, rest, more := bytes.Cut(text, []byte{'\n'})
		r.report(line, offset, true, written)
		if !more {
			return
		}
		text = rest
	}
}

// count counts a record of a stream. It is false for a record that has been
// read before.
func (r *reader) count(seq uint64) bool {
	if r.numbered && seq <= r.last {
		return false
	}
	if r.numbered {
		r.source.counts.lost.Add(seq - r.last - 1)
	}
	r.last, r.numbered = seq, true
	return true
}

// begins takes the time of the first record that has one.
func (r *reader) begins(written func() time.Time) {
	begin := &r.source.counts.begin
	if begin.Load() == 0 {
		if t := written(); !t.IsZero() {
			begin.Store(t.Unix())
		}
	}
}

// plain handles a line as printed by dmesg, syslog or the journal.
func (r *reader) plain(line []byte, offset int) {
	if property.Match(line) {
		return
	}
	r.begins(func() time.Time {
		_, stamp := stripPrefix(line)
		return stamp.time(r.boot, r.source.opts.Now())
	})
	if !r.parser.concerns(line) {
		return
	}
	text, stamp := stripPrefix(line)
	r.report(text, offset, false, func() time.Time {
		return stamp.time(r.boot, r.source.opts.Now())
	})
}

// report emits the event of a message, if it is one. A live event gets the
// current time: the log's clock drifts by minutes in a month. A record is of this
// boot; a line may be of an earlier one.
func (r *reader) report(text []byte, offset int, record bool, written func() time.Time) {
	if r.parser.concerns(text) {
		at := r.source.opts.Now()
		if r.log.isPast(offset) {
			at = written()
		}
		r.source.keep(at, text)
	}
	e, outcome := r.parser.Parse(text)
	switch outcome {
	case MalformedXid:
		r.source.counts.xids.Add(1)
	case MalformedSXid:
		r.source.counts.sxids.Add(1)
	case Reported:
		now := r.source.opts.Now()
		if e.Source, e.Time = Name, now; r.log.isPast(offset) {
			e.Past = true
			if t := written(); !t.IsZero() {
				r.dated = t
			}
			if !r.dated.IsZero() && r.dated.Before(now) {
				e.Time = r.dated
			}
			if !record && e.Time.Before(r.boot) {
				return // of an earlier boot: the file outlives it, the fault does not
			}
		}
		if e.PCI == "" && e.Kind != collector.EventDriverLoaded {
			e.PCI, e.Device = r.place(cmp.Or(e.Device, driverOf(&e)))
		}
		r.emit(e)
	}
}

// driverOf returns the driver that printed a line without an address.
func driverOf(e *collector.Event) string {
	if strings.HasPrefix(e.Detail, "NVRM: ") {
		return "nvidia"
	}
	return "amdgpu"
}

// place returns the PCI address of the device that the kernel calls name, or its name
// where it is no PCI device. name may be that of a driver, whose only device it is: a line
// without an address may be about any of several.
func (r *reader) place(name string) (pci, device string) {
	if names, _ := r.fs.Names("bus/pci/drivers/" + name); len(names) > 0 {
		names = slices.DeleteFunc(names, func(n string) bool { return !sysfs.PCIAddress(n) })
		if len(names) == 1 {
			return names[0], ""
		}
		return "", ""
	}
	for _, class := range []string{"class/fpga_manager/", "bus/platform/devices/"} {
		dir, err := r.fs.Resolve(class + name)
		if err != nil {
			continue
		}
		parts := strings.Split(dir, "/")
		for _, part := range slices.Backward(parts) {
			if sysfs.PCIAddress(part) {
				return part, ""
			}
		}
		if i := slices.Index(parts, "fpga_manager"); i > 0 {
			return "", parts[i-1]
		}
	}
	return "", ""
}

func (r *reader) emit(e collector.Event) {
	select {
	case <-r.source.stop:
	default:
		r.source.opts.Emit(e)
	}
}

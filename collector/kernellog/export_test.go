package kernellog

import (
	"bytes"
	"os"
	"testing"
	"time"

	"github.com/accel-exporter/accel-exporter/collector"
)

// Tests need the events.
func init() { lookEvery = time.Hour }

// Retry sets the time between two attempts to open a log.
func Retry(t *testing.T, every time.Duration) {
	was := retryEvery
	retryEvery = every
	t.Cleanup(func() { retryEvery = was })
}

// Fed is a log that a test feeds by hand.
type Fed struct {
	Events []collector.Event
	r      *reader
}

// NewFed returns a log whose lines are new, or past.
func NewFed(past bool) *Fed {
	f := &Fed{}
	now := time.Unix(1_700_000_000, 0)
	s := New(Options{
		Sysfs: os.DevNull,
		Emit:  func(e collector.Event) { f.Events = append(f.Events, e) },
		Now:   func() time.Time { return now },
		Boot:  func() time.Time { return now.Add(-time.Hour) },
	})
	f.r = newReader(s)
	f.r.attach(still(past))
	return f
}

// Feed gives the log its next bytes.
func (f *Fed) Feed(b []byte) { f.r.feed(b) }

// Reopen has the log be a device that is opened, perhaps again.
func (f *Fed) Reopen() { f.r.attach(&stream{past: true}) }

// Malformed returns how many lines were refused.
func (f *Fed) Malformed() uint64 {
	return f.r.source.counts.xids.Load() + f.r.source.counts.sxids.Load()
}

type still bool

func (still) follow(<-chan struct{}, *reader, func()) error { return nil }
func (s still) isPast(int) bool                             { return bool(s) }
func (still) handle() *os.File                              { return nil }

// Line parses one line of any log. For a record of several lines it returns the
// last related result.
func (p *Parser) Line(line []byte) (e collector.Event, o Outcome) {
	rec, ok := parseRecord(line)
	if !ok {
		text, _ := stripPrefix(line)
		return p.Parse(text)
	}
	for text := range bytes.SplitSeq(unescape(rec.text), []byte{'\n'}) {
		if next, outcome := p.Parse(text); outcome != Unrelated {
			e, o = next, outcome
		}
	}
	return e, o
}

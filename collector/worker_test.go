package collector

import (
	"context"
	"os"
	"testing"
	"time"
)

func pipe(t *testing.T) (r, w *os.File) {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close(); w.Close() })
	return r, w
}

// TestServeLastEvents: the events that are queued when only a new process can help
// arrive before the last round.
func TestServeLastEvents(t *testing.T) {
	events := make(chan Event, 100)
	inRead, inWrite := pipe(t)
	outRead, outWrite := pipe(t)
	src := &fakeSource{name: "w", sample: func(context.Context) (Round, error) {
		for range cap(events) {
			events <- Event{Kind: EventXid, Code: 79}
		}
		return Round{}, ErrRestart
	}}
	go func() {
		Serve(inRead, outWrite, src, events)
		outWrite.Close()
	}()
	if err := newFrameWriter(inWrite).write(&request{1, time.Hour}); err != nil {
		t.Fatal(err)
	}
	n := 0
	for messages := newFrameReader(outRead); ; {
		var m message
		if err := messages.read(&m); err != nil {
			t.Fatalf("%d events and no round: %v", n, err)
		}
		if m.Round != nil {
			break
		}
		if m.Event != nil {
			n++
		}
	}
	if n != cap(events) {
		t.Errorf("%d of %d events", n, cap(events))
	}
}

package collector

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// served is a worker that runs in this process.
type served struct {
	in     io.WriteCloser
	out    io.Reader
	events chan Event
	result chan error

	requests *frameWriter // to in
	messages *frameReader // from out
}

func serve(t *testing.T, sample func(context.Context) (Round, error)) *served {
	t.Helper()
	inRead, inWrite := pipe(t)
	outRead, outWrite := pipe(t)
	s := &served{in: inWrite, out: outRead, events: make(chan Event), result: make(chan error, 1)}
	go func() { s.result <- Serve(inRead, outWrite, &fakeSource{name: "w", sample: sample}, s.events) }()
	s.requests, s.messages = newFrameWriter(inWrite), newFrameReader(outRead)
	if diff := cmp.Diff(greeting(0), s.next(t)); diff != "" {
		t.Fatalf("first message (-want +got):\n%s", diff)
	}
	return s
}

func pipe(t *testing.T) (r, w *os.File) {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close(); w.Close() })
	return r, w
}

func (s *served) next(t *testing.T) *message {
	t.Helper()
	m := new(message)
	if err := s.messages.read(m); err != nil {
		t.Fatal(err)
	}
	return m
}

func (s *served) ask(seq uint64, timeout time.Duration) {
	s.requests.write(&request{seq, timeout})
}

// TestServeEnds: Serve returns when its input ends, also during a call that hangs.
func TestServeEnds(t *testing.T) {
	hang := make(chan struct{})
	for name, c := range map[string]struct {
		sample func(context.Context) (Round, error)
		act    func(t *testing.T, s *served)
		fails  bool
	}{
		"parent gone in a call": {
			sample: func(context.Context) (Round, error) { <-hang; return Round{}, nil },
			act:    func(_ *testing.T, s *served) { s.ask(1, time.Hour); s.in.Close() },
		},
		"driver was reloaded": {
			sample: func(context.Context) (Round, error) { return Round{}, ErrRestart },
			act: func(t *testing.T, s *served) {
				s.ask(1, time.Hour)
				var dec roundDecoder
				if _, why, err := dec.decode(s.next(t).Round); err != nil || !errors.Is(why, ErrRestart) {
					t.Errorf("the last round has the error %v, %v", why, err)
				}
			},
		},
		"garbage": {act: func(_ *testing.T, s *served) { s.in.Write([]byte("GET / HTTP/1.1\r\n")) }, fails: true},
		"round with the output closed": {
			sample: func(context.Context) (Round, error) { return Round{}, nil },
			act:    func(_ *testing.T, s *served) { s.out.(io.Closer).Close(); s.ask(1, time.Hour) },
			fails:  true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := serve(t, c.sample)
			c.act(t, s)
			if err := <-s.result; (err != nil) != c.fails {
				t.Errorf("Serve: %v", err)
			}
			select { // ends the goroutine that forwards events
			case <-s.events:
			default:
				close(s.events)
			}
		})
	}
	close(hang)
	var broken bytes.Buffer
	if err := Serve(&broken, closedWriter{}, &fakeSource{name: "w"}, nil); err != io.ErrClosedPipe {
		t.Errorf("Serve with a closed output: %v", err)
	}
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

type closedWriter struct{}

func (closedWriter) Write([]byte) (int, error) { return 0, io.ErrClosedPipe }

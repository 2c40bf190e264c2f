package traceproc

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/accel-exporter/accel-exporter/collector"
	"github.com/accel-exporter/accel-exporter/internal/peer"
)

// Sender is what Serve has send spans.
type Sender interface {
	// Send sends spans and says what became of all of them. It must return
	// within a minute.
	Send(spans []Span) Outcome
	// Close lets go of the connection.
	Close()
}

// Serve greets the exporter and has what open returns send what that hands
// over. It returns when in ends, which is how the exporter's end shows, or with
// an error when in holds no request or out cannot be written to. log is for a
// slog.JSONHandler; what is written there the exporter logs.
func Serve(in io.Reader, out io.Writer, build string, open func(s Settings, log io.Writer) (Sender, error)) error {
	var mu sync.Mutex // held through a write
	write := func(kind collector.FrameKind, buf []byte) error {
		mu.Lock()
		defer mu.Unlock()
		return collector.WriteFrame(out, kind, buf)
	}
	say := func(kind collector.FrameKind, v any) error {
		buf, err := peer.Frame(v)
		if err != nil {
			return err
		}
		return write(kind, buf)
	}
	if err := say(frameHello, peer.Hello{Build: build}); err != nil {
		return err
	}
	var settings Settings
	payload, err := expect(in, frameSettings, nil, &settings)
	if err != nil {
		return ended(err)
	}
	sender, err := open(settings, peer.LogWriter(func(buf []byte) error { return write(frameLog, buf) }))
	if err != nil {
		return err
	}
	defer sender.Close()
	for {
		var b batch
		if payload, err = expect(in, frameBatch, payload, &b); err != nil {
			return ended(err)
		}
		if err := say(frameAnswer, answer{b.ID, send(sender, b.Spans)}); err != nil {
			return err
		}
	}
}

// send has spans sent. One that cannot be read is as good as refused.
func send(to Sender, encoded []json.RawMessage) Outcome {
	spans := make([]Span, 0, len(encoded))
	unread := 0
	for _, data := range encoded {
		var s Span
		if json.Unmarshal(data, &s) != nil {
			unread++
			continue
		}
		spans = append(spans, s)
	}
	var o Outcome
	if len(spans) > 0 {
		o = to.Send(spans)
	}
	if !o.Retry {
		o.Rejected += unread
	}
	return o
}

// expect reads a frame of that kind into v and returns its buffer.
func expect(in io.Reader, want collector.FrameKind, buf []byte, v any) ([]byte, error) {
	kind, payload, err := collector.ReadFrame(in, buf)
	if err != nil {
		return payload, err
	}
	if kind != want {
		return payload, fmt.Errorf("%w: frame of kind %d", collector.ErrProtocol, kind)
	}
	if err := json.Unmarshal(payload, v); err != nil {
		return payload, fmt.Errorf("%w: frame of kind %d: %w", collector.ErrProtocol, kind, err)
	}
	return payload, nil
}

// ended returns nil for the end of a pipe.
func ended(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return nil
	}
	return err
}

package ruleproc

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/accel-exporter/accel-exporter/collector"
	"github.com/accel-exporter/accel-exporter/internal/peer"
	"github.com/accel-exporter/accel-exporter/internal/strict"
)

// Engine is what Serve puts to work. Its methods are called one at a time, but
// for Trigger.
type Engine interface {
	// Prepare checks a part of s, at first everything. It returns what puts
	// it into force, and how many Alertmanagers are told. The error is of type
	// strict.Mistakes where a file is at fault.
	Prepare(s *Settings, part Part) (apply func(), endpoints int, err error)
	// Report returns the state as JSON.
	Report(ctx context.Context, explain bool) ([]byte, error)
	// Ping returns between two evaluations.
	Ping()
	// Trigger has the rules evaluated at once. It does not block.
	Trigger()
}

// Parent is the exporter as its engine sees it.
type Parent struct {
	mu sync.Mutex // held through a write
	w  io.Writer

	asked uint64 // Page's
	pages chan []byte
}

// Serve greets the exporter and has what open returns do what that asks for.
// It returns when in ends, which is how the exporter's end shows, with the
// engine still at work; or with an error when in holds no request or out
// cannot be written to.
func Serve(in io.Reader, out io.Writer, build string, open func(*Parent) Engine) error {
	p := &Parent{w: out, pages: make(chan []byte, 1)}
	if err := p.send(frameHello, peer.Hello{Build: build}); err != nil {
		return err
	}
	e := open(p)
	requests := make(chan request, 16)
	ended := make(chan error, 2)
	go func() {
		ended <- p.read(in, e, requests)
		close(requests)
	}()
	go func() {
		if err := p.answer(e, requests); err != nil {
			ended <- err
		}
	}()
	return <-ended
}

// read takes what the exporter says. It never waits for an evaluation, since
// that may wait for a page.
func (p *Parent) read(in io.Reader, e Engine, requests chan<- request) error {
	var buf []byte
	for {
		kind, payload, err := collector.ReadFrame(in, buf)
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			return nil
		}
		if err != nil {
			return err
		}
		buf = payload
		switch kind {
		case frameTrigger:
			e.Trigger()
		case framePage:
			select { // one that came too late makes room
			case <-p.pages:
			default:
			}
			p.pages <- payload
			buf = nil
		case frameRequest:
			var r request
			if err := json.Unmarshal(payload, &r); err != nil {
				return fmt.Errorf("%w: request: %w", collector.ErrProtocol, err)
			}
			requests <- r
		default:
			return fmt.Errorf("%w: frame of kind %d", collector.ErrProtocol, kind)
		}
	}
}

// answer does what is asked for, one after the other.
func (p *Parent) answer(e Engine, requests <-chan request) error {
	prepared := map[uint64]func(){}
	for r := range requests {
		a := answer{ID: r.ID}
		var err error
		switch r.Op {
		case opPrepare:
			if r.Settings == nil {
				return fmt.Errorf("%w: nothing to prepare", collector.ErrProtocol)
			}
			var apply func()
			if apply, a.Endpoints, err = e.Prepare(r.Settings, r.Part); err == nil {
				if len(prepared) >= maxPrepared {
					clear(prepared) // nobody came back for them
				}
				prepared[r.ID] = apply
			}
		case opApply:
			if apply := prepared[r.Prepared]; apply != nil {
				apply()
			} else {
				err = errors.New("what was prepared has been given up")
			}
			delete(prepared, r.Prepared)
		case opReport:
			a.Report, err = e.Report(context.Background(), r.Explain)
		case opPing:
			e.Ping()
		default:
			return fmt.Errorf("%w: request for %.20q", collector.ErrProtocol, r.Op)
		}
		a.fail(err)
		if err := p.send(frameAnswer, a); err != nil {
			return err
		}
	}
	return nil
}

// maxPrepared bounds the settings that were checked and never applied.
const maxPrepared = 8

// fail says in the answer what is wrong.
func (a *answer) fail(err error) {
	if m, ok := errors.AsType[strict.Mistakes](err); ok && m.Error() == err.Error() {
		a.Mistakes = m
	} else if err != nil {
		a.Error = err.Error()
	}
}

// send writes a message. What is too large is answered by what is not.
func (p *Parent) send(kind collector.FrameKind, v any) error {
	buf, err := peer.Frame(v)
	if a, is := v.(answer); err != nil && is {
		buf, err = peer.Frame(answer{ID: a.ID, Error: err.Error()})
	}
	if err != nil {
		return err
	}
	return p.write(kind, buf)
}

func (p *Parent) write(kind collector.FrameKind, buf []byte) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return collector.WriteFrame(p.w, kind, buf)
}

// Page asks the exporter for its page, in the text format. The error may come
// with one: it then says what could not be gathered. Page is called by one
// goroutine.
func (p *Parent) Page(ctx context.Context) ([]byte, error) {
	p.asked++
	buf := binary.AppendUvarint(make([]byte, collector.FrameHeader), p.asked)
	if err := p.write(frameGather, buf); err != nil {
		return nil, err
	}
	for {
		select {
		case data := <-p.pages:
			number, n := binary.Uvarint(data)
			if n <= 0 || number != p.asked {
				continue // an earlier one, which came too late
			}
			missing, page, _ := bytes.Cut(data[n:], []byte("\n"))
			if len(missing) > 0 {
				return page, errors.New(string(missing))
			}
			return page, nil
		case <-ctx.Done():
			return nil, fmt.Errorf("the exporter gave no page: %w", ctx.Err())
		}
	}
}

// Tell hands families of the engine's own to the exporter, as delimited
// protobuf.
func (p *Parent) Tell(families []byte) error {
	return p.write(frameMetrics, append(make([]byte, collector.FrameHeader, collector.FrameHeader+len(families)), families...))
}

// Stand hands over what the next engine is to go on from, should this one end:
// up to MaxStanding bytes.
func (p *Parent) Stand(data []byte) error {
	return p.write(frameStanding, append(make([]byte, collector.FrameHeader, collector.FrameHeader+len(data)), data...))
}

// MaxStanding bounds what the exporter keeps for the next engine, in bytes.
const MaxStanding = 4 << 20

// Log is where a slog.JSONHandler writes what the exporter is to log.
func (p *Parent) Log() io.Writer {
	return peer.LogWriter(func(buf []byte) error { return p.write(frameLog, buf) })
}

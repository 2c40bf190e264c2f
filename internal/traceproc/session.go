package traceproc

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/accel-exporter/accel-exporter/collector"
	"github.com/accel-exporter/accel-exporter/internal/peer"
)

// session is one running program.
type session struct {
	*collector.Child
	p       *Process
	greeted chan struct{} // closed when it has said who it is
	answers chan answer   // capacity 1: one batch is under way at a time
	last    uint64        // batch

	mu    sync.Mutex
	stray error // it is another build
}

// Refusal is the error of a program that cannot be the one that is wanted.
type Refusal struct{ error }

// Unwrap returns what is wrong.
func (r *Refusal) Unwrap() error { return r.error }

// errHung: a batch went unanswered.
var errHung = errors.New("it answers nothing")

// open starts a program and hands it its settings.
func (p *Process) open(ctx context.Context) (*session, error) {
	s := &session{p: p, greeted: make(chan struct{}), answers: make(chan answer, 1)}
	c, err := collector.StartChild(p.o.Command(), s.frames)
	if err != nil {
		return nil, &Refusal{fmt.Errorf("traces are sent by the program accel-traces, which belongs beside accel-exporter or is named by --otlp.program: %w", err)}
	}
	s.Child = c
	ctx, cancel := context.WithTimeout(ctx, greetPatience)
	defer cancel()
	select {
	case <-s.greeted:
	case <-s.Done():
		return nil, s.why()
	case <-ctx.Done():
		s.Replace()
		return nil, ctx.Err()
	}
	if err := s.say(frameSettings, p.o.Settings); err != nil {
		s.Dismiss(err, endPatience)
		return nil, s.why()
	}
	return s, nil
}

// say writes a message. One that reads nothing holds it up until it is killed;
// send sees to that.
func (s *session) say(kind collector.FrameKind, v any) error {
	buf, err := peer.Frame(v)
	if err != nil {
		return err
	}
	return collector.WriteFrame(s.Stdin(), kind, buf)
}

// frames takes what the program says until its pipe ends.
func (s *session) frames(r io.Reader) error {
	var buf []byte
	for greeted := false; ; {
		kind, payload, err := collector.ReadFrame(r, buf)
		if err != nil {
			return err
		}
		buf = payload
		switch {
		case kind == frameHello && !greeted:
			if err = s.greet(payload); err == nil {
				greeted = true
				close(s.greeted)
			}
		case kind == frameAnswer && greeted:
			err = s.answered(payload)
		case kind == frameLog && greeted:
			err = peer.Repeat(s.p.o.Log, payload)
		default:
			err = fmt.Errorf("%w: frame of kind %d", collector.ErrProtocol, kind)
		}
		if err != nil {
			return err
		}
	}
}

// greet refuses a program of another build.
func (s *session) greet(payload []byte) error {
	stray, err := peer.Greeted(payload, s.p.o.Build)
	s.mu.Lock()
	s.stray = stray
	s.mu.Unlock()
	return err
}

func (s *session) answered(payload []byte) error {
	var a answer
	if err := json.Unmarshal(payload, &a); err != nil {
		return fmt.Errorf("%w: answer: %w", collector.ErrProtocol, err)
	}
	select {
	case s.answers <- a:
		return nil
	default:
		return fmt.Errorf("%w: answer %d was not asked for", collector.ErrProtocol, a.ID)
	}
}

// send hands over a batch and waits for what becomes of it.
func (s *session) send(ctx context.Context, spans []json.RawMessage) (*Outcome, error) {
	s.last++
	id := s.last
	written := make(chan error, 1)
	go func() { written <- s.say(frameBatch, batch{id, spans}) }()
	limit := time.NewTimer(s.p.o.HungAfter)
	defer limit.Stop()
	for {
		select {
		case <-written: // where that failed it ends, which shows below, or is as good as hung
		case a := <-s.answers:
			if a.ID != id {
				return nil, fmt.Errorf("%w: answer to batch %d, and %d was asked", collector.ErrProtocol, a.ID, id)
			}
			return &a.Outcome, nil
		case <-s.Done():
			return nil, s.why()
		case <-limit.C:
			return nil, errHung
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// why says how the program ended. It is to be called after Done.
func (s *session) why() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stray != nil {
		return &Refusal{s.stray}
	}
	return s.Exit()
}

package ruleproc

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"

	"github.com/accel-exporter/accel-exporter/collector"
	"github.com/accel-exporter/accel-exporter/internal/peer"
)

// session is one running engine.
type session struct {
	*collector.Child
	p       *Process
	out     chan message
	greeted chan struct{} // closed when it has said who it is
	page    bytes.Buffer  // frames'
	spare   chan []byte   // the last page's buffer, once it is written

	mu      sync.Mutex
	last    uint64
	waiting map[uint64]chan answer
	stray   error // it is another build
}

type message struct {
	kind collector.FrameKind
	buf  []byte
}

// maxQueue bounds what waits to be read by an engine. One that reads nothing
// is found by a ping.
const maxQueue = 32

// open starts an engine. It does not wait for its first word.
func (p *Process) open() (*session, error) {
	s := &session{
		p: p, out: make(chan message, maxQueue), greeted: make(chan struct{}),
		spare: make(chan []byte, 1), waiting: map[uint64]chan answer{},
	}
	c, err := collector.StartChild(p.o.Command(), s.frames)
	if err != nil {
		return nil, &Refusal{NoProgram(err)}
	}
	s.Child = c
	go s.write()
	return s, nil
}

// write hands messages to the engine until it is gone.
func (s *session) write() {
	for {
		select {
		case m := <-s.out:
			if collector.WriteFrame(s.Stdin(), m.kind, m.buf) != nil {
				return // it is on its way out
			}
			if m.kind == framePage {
				select {
				case s.spare <- m.buf:
				default:
				}
			}
		case <-s.Done():
			return
		}
	}
}

// send queues a message. It does not block.
func (s *session) send(kind collector.FrameKind, buf []byte) error {
	select {
	case s.out <- message{kind, buf}:
		return nil
	default:
		return errors.New("the rule engine reads nothing")
	}
}

// frames takes what the engine says until its pipe ends.
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
		case !greeted:
			err = fmt.Errorf("%w: frame of kind %d without a greeting", collector.ErrProtocol, kind)
		case kind == frameGather:
			err = s.gather(payload)
		case kind == frameAnswer:
			err = s.answered(payload)
		case kind == frameMetrics:
			err = s.p.told.take(payload)
		case kind == frameStanding && len(payload) <= MaxStanding:
			s.p.stand(payload)
		case kind == frameLog:
			err = peer.Repeat(s.p.o.Log, payload)
		default:
			err = fmt.Errorf("%w: frame of kind %d", collector.ErrProtocol, kind)
		}
		if err != nil {
			return err
		}
	}
}

// greet refuses an engine of another build.
func (s *session) greet(payload []byte) error {
	stray, err := peer.Greeted(payload, s.p.o.Build)
	s.mu.Lock()
	s.stray = stray
	s.mu.Unlock()
	return err
}

// gather answers with the page.
func (s *session) gather(payload []byte) error {
	number, n := binary.Uvarint(payload)
	if n <= 0 {
		return fmt.Errorf("%w: request for a page", collector.ErrProtocol)
	}
	var buf []byte
	select {
	case buf = <-s.spare:
	default:
	}
	s.page.Reset()
	missing := s.p.o.Page(&s.page)
	buf = append(buf[:0], make([]byte, collector.FrameHeader)...)
	buf = binary.AppendUvarint(buf, number)
	if missing != nil {
		buf = append(buf, strings.ReplaceAll(missing.Error(), "\n", "; ")...)
	}
	buf = append(append(buf, '\n'), s.page.Bytes()...)
	// Where it is not taken the engine does without and says so.
	_ = s.send(framePage, buf)
	return nil
}

func (s *session) answered(payload []byte) error {
	var a answer
	if err := json.Unmarshal(payload, &a); err != nil {
		return fmt.Errorf("%w: answer: %w", collector.ErrProtocol, err)
	}
	s.mu.Lock()
	waiting := s.waiting[a.ID]
	delete(s.waiting, a.ID)
	s.mu.Unlock()
	if waiting != nil { // else it came too late
		waiting <- a
	}
	return nil
}

// call asks the engine and waits for its answer. The error is a Refusal where
// the engine answered that something is wrong.
func (s *session) call(ctx context.Context, r request) (answer, uint64, error) {
	answers := make(chan answer, 1)
	s.mu.Lock()
	s.last++
	r.ID = s.last
	s.waiting[r.ID] = answers
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		delete(s.waiting, r.ID)
		s.mu.Unlock()
	}()
	buf, err := peer.Frame(r)
	if err != nil {
		return answer{}, 0, &Refusal{err}
	}
	if err := s.send(frameRequest, buf); err != nil {
		return answer{}, 0, err
	}
	select {
	case a := <-answers:
		return a, r.ID, a.err()
	case <-s.Done():
		return answer{}, 0, s.why()
	case <-ctx.Done():
		return answer{}, 0, fmt.Errorf("the rule engine gave no answer: %w", ctx.Err())
	}
}

// err is what an answer says is wrong.
func (a *answer) err() error {
	switch {
	case len(a.Mistakes) > 0:
		return &Refusal{a.Mistakes}
	case a.Error != "":
		return &Refusal{errors.New(a.Error)}
	}
	return nil
}

// why says how the engine ended. It is to be called after Done.
func (s *session) why() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stray != nil {
		return &Refusal{s.stray}
	}
	return s.Exit()
}

// Refusal is the error of an engine that works and does not take what it is
// given, or of a program that cannot be one.
type Refusal struct{ error }

// Unwrap returns what is wrong.
func (r *Refusal) Unwrap() error { return r.error }

// NoProgram explains err, by which accel-rules cannot be run.
func NoProgram(err error) error {
	return fmt.Errorf("rules are evaluated by the program accel-rules, which belongs beside accel-exporter or is named by --rules.program: %w", err)
}

package collector

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
)

// Serve is the worker's end of the pipe: it samples src for each request on in,
// and writes rounds to out. It returns when in ends, because the parent releases
// the worker or has died, even while a Sample has not returned. It also returns
// after a round with an error that only a new process can resolve (see final).
// The caller must then end the process at once and not Close src: a library that
// hangs must not keep it alive. The error is one of reading in or writing out; it
// is ErrProtocol for an invalid request.
//
// Serve forwards events, which may be nil or be closed before Serve returns.
func Serve(in io.Reader, out io.Writer, src Source, events <-chan Event) error {
	w := newFrameWriter(out)
	if err := w.write(&message{Hello: &hello{src.Name(), fingerprint()}}); err != nil {
		return err
	}

	requests := make(chan request, 1)
	ended := make(chan error, 3)
	last, forwarded := make(chan struct{}), make(chan struct{})
	go func() {
		ended <- readRequests(in, requests)
		close(requests)
	}()
	go func() {
		defer close(forwarded)
		if err := forward(events, last, w); err != nil {
			ended <- err
		}
	}()
	flush := func() {
		close(last)
		<-forwarded
	}
	go func() { ended <- answer(requests, src, w, flush) }()
	return <-ended
}

func readRequests(in io.Reader, requests chan<- request) error {
	frames := newFrameReader(in)
	for {
		var r request
		switch err := frames.read(&r); {
		case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
			return nil
		case err != nil:
			return err
		}
		requests <- r
	}
}

// forward writes events until there are no more. After last is closed, it writes
// the queued events.
func forward(events <-chan Event, last <-chan struct{}, w *frameWriter) error {
	for {
		var e Event
		more := true
		select {
		case e, more = <-events:
		case <-last:
			select {
			case e, more = <-events:
			default:
				return nil
			}
		}
		if !more {
			return nil
		}
		if err := w.write(&message{Event: &e}); err != nil {
			return err
		}
	}
}

// answer samples for each request. Before the last round, which ends the process, it
// calls flush: the events have the reason why the driver has gone.
func answer(requests <-chan request, src Source, w *frameWriter, flush func()) error {
	var enc roundEncoder
	for r := range requests {
		ctx, cancel := context.WithTimeout(context.Background(), r.Timeout)
		round, why := src.Sample(ctx)
		cancel()
		if final(why) {
			flush()
		}
		if err := w.write(&message{Round: enc.encode(r.Seq, &round, why)}); err != nil {
			return err
		}
		if final(why) {
			return nil
		}
	}
	return nil
}

// final reports whether only a new process can resolve err: a loaded library
// stays mapped after its file is replaced.
func final(err error) bool {
	return errors.Is(err, ErrAbsent) || errors.Is(err, ErrRestart) || errors.Is(err, ErrMismatch) || errors.Is(err, ErrDriver) || errors.Is(err, ErrLibrary) || errors.Is(err, ErrEngine)
}

// worker is one running worker of a Process.
type worker struct {
	*child
	requests *frameWriter
	answers  chan roundAnswer // capacity 1: one request is in flight at a time
	waiting  bool             // a request is unanswered; owned by Sample
}

type roundAnswer struct {
	seq   uint64
	round Round
	why   error
}

func startWorker(cmd *exec.Cmd, name string, emit func(Event)) (*worker, error) {
	w := &worker{answers: make(chan roundAnswer, 1)}
	c, err := startChild(cmd, func(r io.Reader) error { return w.receive(r, name, emit) })
	if err != nil {
		return nil, err
	}
	w.child, w.requests = c, newFrameWriter(c.stdin)
	return w, nil
}

// receive takes the worker's messages until its pipe ends.
func (w *worker) receive(r io.Reader, name string, emit func(Event)) error {
	frames := newFrameReader(r)
	var dec roundDecoder
	for greeted := false; ; {
		var m message
		if err := frames.read(&m); err != nil {
			return err
		}
		switch {
		case m.Hello != nil && !greeted:
			if h := m.Hello; h.Source != name || h.Table != fingerprint() {
				return fmt.Errorf("%w: the worker is another build: its source is %.40q, its metric table %x", ErrProtocol, h.Source, h.Table)
			}
			greeted = true
		case m.Round != nil && greeted:
			round, why, err := dec.decode(m.Round)
			if err != nil {
				return fmt.Errorf("%w: round: %w", ErrProtocol, err)
			}
			select {
			case w.answers <- roundAnswer{m.Round.Seq, round, why}:
			default:
				return fmt.Errorf("%w: round %d was not requested", ErrProtocol, m.Round.Seq)
			}
		case m.Event != nil && greeted:
			m.Event.Source = name
			emit(*m.Event)
		default:
			return fmt.Errorf("%w: unexpected message", ErrProtocol)
		}
	}
}

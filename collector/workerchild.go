package collector

import (
	"fmt"
	"io"
	"os/exec"
)

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

package collector

import (
	"fmt"
	"io"
	"os/exec"
)

// worker is one running worker of a Process.
type worker struct {
	*Child
	answers chan roundAnswer // capacity 1: one request is in flight at a time
	waiting bool             // a request is unanswered; owned by Sample
}

type roundAnswer struct {
	seq   uint64
	round Round
	why   error
}

func startWorker(cmd *exec.Cmd, name string, emit func(Event)) (*worker, error) {
	w := &worker{answers: make(chan roundAnswer, 1)}
	c, err := StartChild(cmd, func(r io.Reader) error { return w.frames(r, name, emit) })
	w.Child = c
	return w, err
}

// frames takes the worker's frames until its pipe ends.
func (w *worker) frames(r io.Reader, name string, emit func(Event)) error {
	var dec roundDecoder
	var buf []byte
	greeted := false
	for {
		kind, payload, err := ReadFrame(r, buf)
		if err != nil {
			return err
		}
		buf = payload
		switch {
		case kind == frameHello && !greeted:
			d := decoder{b: payload}
			who, table := d.string(), d.uint64()
			if d.end() != nil || who != name || table != fingerprint() {
				return fmt.Errorf("%w: the worker is another build: it calls itself %.40q, its metric table %x", ErrProtocol, who, table)
			}
			greeted = true
		case kind == frameRound && greeted:
			seq, round, why, err := dec.decode(payload)
			if err != nil {
				return fmt.Errorf("%w: round: %w", ErrProtocol, err)
			}
			select {
			case w.answers <- roundAnswer{seq, round, why}:
			default:
				return fmt.Errorf("%w: round %d was not asked for", ErrProtocol, seq)
			}
		case kind == frameEvent && greeted:
			e, err := decodeEvent(payload)
			if err != nil {
				return fmt.Errorf("%w: event: %w", ErrProtocol, err)
			}
			e.Source = name
			emit(e)
		default:
			return fmt.Errorf("%w: frame of kind %d", ErrProtocol, kind)
		}
	}
}

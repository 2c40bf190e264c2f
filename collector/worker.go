package collector

import (
	"context"
	"errors"
	"io"
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
	go func() {
		ended <- readRequests(in, requests)
		close(requests)
	}()
	go func() {
		if err := forward(events, w); err != nil {
			ended <- err
		}
	}()
	go func() { ended <- answer(requests, src, w) }()
	return <-ended
}

func readRequests(in io.Reader, requests chan<- request) error {
	frames := newFrameReader(in)
	for {
		var r request
		switch err := frames.read(&r); {
		case err == io.EOF, err == io.ErrUnexpectedEOF:
			return nil
		case err != nil:
			return err
		}
		requests <- r
	}
}

func forward(events <-chan Event, w *frameWriter) error {
	for e := range events {
		if err := w.write(&message{Event: &e}); err != nil {
			return err
		}
	}
	return nil
}

func answer(requests <-chan request, src Source, w *frameWriter) error {
	var enc roundEncoder
	for r := range requests {
		ctx, cancel := context.WithTimeout(context.Background(), r.Timeout)
		round, why := src.Sample(ctx)
		cancel()
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
	return errors.Is(err, ErrAbsent) || errors.Is(err, ErrRestart) || errors.Is(err, ErrMismatch) || errors.Is(err, ErrDriver) || errors.Is(err, ErrEngine)
}

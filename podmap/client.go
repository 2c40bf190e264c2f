package podmap

import (
	"context"
	"errors"
	"io/fs"
	"math/rand/v2"
	"net"
	"os"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/accel-exporter/accel-exporter/internal/unary"
)

// client calls the kubelet, one call at a time.
type client struct {
	opts  *Options
	limit int // bytes of an answer, at present

	conn *unary.Conn
	at   os.FileInfo // the socket that conn was made for, nil before the first
	// dials counts connections; it is read after a call to learn by which one
	// the answer came.
	dials atomic.Uint64
}

// prepare makes ready for a call and says why it cannot be made.
func (c *client) prepare() error {
	at, err := os.Stat(c.opts.Socket)
	if err != nil || c.at == nil || !os.SameFile(at, c.at) || !at.ModTime().Equal(c.at.ModTime()) {
		// The kubelet makes a new socket at each start and renames it into
		// place. Whoever held the old one may still answer on it.
		c.close()
	}
	if err != nil || c.conn != nil {
		return err
	}
	c.conn, c.at = unary.New(c.dial), at
	return nil
}

func (c *client) dial(ctx context.Context) (net.Conn, error) {
	conn, err := c.opts.Dial(ctx, c.opts.Socket)
	if err == nil {
		c.dials.Add(1)
	}
	return conn, err
}

// born is when the socket was made, which is when its kubelet started; zero
// where that is not known.
func (c *client) born() time.Time {
	if c.at == nil {
		return time.Time{}
	}
	return c.at.ModTime()
}

func (c *client) close() {
	if c.conn != nil {
		c.conn.Close()
		c.conn = nil
	}
}

// call makes one call, and a second one where the first was refused for a
// reason that passes at once. It hands the answer to take, which says whether
// it can be read.
func (c *client) call(ctx context.Context, method string, take func([]byte) error) (Outcome, error) {
	if err := c.prepare(); err != nil {
		return pathOutcome(err), err
	}
	limited := false
	for {
		outcome, err := c.once(ctx, method, take)
		switch {
		case outcome == OutcomeTooLarge && c.limit < c.opts.MaxMessage:
			c.limit = min(2*c.limit, c.opts.MaxMessage)
		case outcome == OutcomeRateLimited && !limited:
			// A token comes back every 10 ms, for whoever asks first.
			limited = true
			pause := 200*time.Millisecond + rand.N(300*time.Millisecond)
			select {
			case <-ctx.Done():
				return outcome, err
			case <-time.After(pause):
			}
		default:
			return outcome, err
		}
	}
}

func (c *client) once(ctx context.Context, method string, take func([]byte) error) (Outcome, error) {
	ctx, cancel := context.WithTimeout(ctx, c.opts.Timeout)
	defer cancel()
	// The messages of both requests have no fields.
	answer, err := c.conn.Call(ctx, method, nil, c.limit)
	if err == nil {
		err = take(answer)
	}
	outcome := outcomeOf(err)
	switch outcome {
	case OutcomeRefused, OutcomeUnavailable, OutcomeGarbage, OutcomeDenied:
		// Whatever answers next is another process, perhaps.
		c.close()
	}
	return outcome, err
}

// pathOutcome is that of a call that had no socket to go to.
func pathOutcome(err error) Outcome {
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR):
		return OutcomeNoSocket
	case errors.Is(err, fs.ErrPermission):
		return OutcomeDenied
	}
	return OutcomeError
}

func outcomeOf(err error) Outcome {
	var status *unary.Status
	switch {
	case err == nil:
		return OutcomeOK
	case errors.As(err, &status):
		return statusOutcome(status.Code)
	case errors.Is(err, unary.ErrTooLarge):
		return OutcomeTooLarge
	case errors.Is(err, unary.ErrProtocol), errors.Is(err, errWire):
		return OutcomeGarbage
	case errors.Is(err, context.DeadlineExceeded):
		return OutcomeTimeout
	case errors.Is(err, syscall.ECONNREFUSED):
		return OutcomeRefused
	case errors.Is(err, fs.ErrNotExist):
		return OutcomeNoSocket
	case errors.Is(err, fs.ErrPermission):
		return OutcomeDenied
	case errors.Is(err, context.Canceled):
		return OutcomeError
	}
	return OutcomeUnavailable // the connection broke
}

func statusOutcome(code unary.Code) Outcome {
	switch code {
	case unary.DeadlineExceeded:
		return OutcomeTimeout
	case unary.ResourceExhausted:
		return OutcomeRateLimited
	case unary.Unimplemented:
		return OutcomeUnimplemented
	case unary.PermissionDenied, unary.Unauthenticated:
		return OutcomeDenied
	case unary.Unavailable:
		return OutcomeUnavailable
	}
	return OutcomeError
}

// dialUnix is the default of Options.Dial.
func dialUnix(ctx context.Context, socket string) (net.Conn, error) {
	return new(net.Dialer).DialContext(ctx, "unix", socket)
}

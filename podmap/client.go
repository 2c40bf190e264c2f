package podmap

import (
	"context"
	"errors"
	"io/fs"
	"math/rand/v2"
	"net"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	podresources "k8s.io/kubelet/pkg/apis/podresources/v1"
)

// client calls the kubelet, one call at a time.
type client struct {
	opts  *Options
	limit int // bytes of an answer, at present

	conn *grpc.ClientConn
	at   os.FileInfo // the socket that conn was made for, nil before the first
	// dials counts connections; it is read after a call to learn by which one
	// the answer came.
	dials atomic.Uint64

	mu      sync.Mutex
	dialErr error // of the latest dial
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
	// The name is not looked up: dial knows where to go.
	c.conn, err = grpc.NewClient("passthrough:///kubelet",
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(c.dial),
		grpc.WithAuthority("localhost"),
		grpc.WithDisableServiceConfig(),
		grpc.WithDisableRetry(),
		// An idle connection that was closed and made again would look like a
		// restart of the kubelet.
		grpc.WithIdleTimeout(0),
		grpc.WithConnectParams(grpc.ConnectParams{
			Backoff:           backoff.Config{BaseDelay: time.Second, Multiplier: 1.6, Jitter: 0.2, MaxDelay: 2 * time.Second},
			MinConnectTimeout: c.opts.Timeout,
		}),
	)
	c.at = at
	return err
}

func (c *client) dial(ctx context.Context, _ string) (net.Conn, error) {
	conn, err := c.opts.Dial(ctx, c.opts.Socket)
	c.mu.Lock()
	c.dialErr = err
	c.mu.Unlock()
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
// reason that passes at once.
func (c *client) call(ctx context.Context, do func(context.Context, podresources.PodResourcesListerClient, ...grpc.CallOption) error) (Outcome, error) {
	if err := c.prepare(); err != nil {
		return pathOutcome(err), err
	}
	limited := false
	for {
		outcome, err := c.once(ctx, do)
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

func (c *client) once(ctx context.Context, do func(context.Context, podresources.PodResourcesListerClient, ...grpc.CallOption) error) (Outcome, error) {
	ctx, cancel := context.WithTimeout(ctx, c.opts.Timeout)
	defer cancel()
	err := do(ctx, podresources.NewPodResourcesListerClient(c.conn), grpc.MaxCallRecvMsgSize(c.limit))
	c.mu.Lock()
	dialErr := c.dialErr
	c.mu.Unlock()
	outcome := outcomeOf(err, dialErr)
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

func outcomeOf(err, dialErr error) Outcome {
	switch text := status.Convert(err).Message(); status.Code(err) {
	case codes.OK:
		return OutcomeOK
	case codes.DeadlineExceeded:
		return OutcomeTimeout
	case codes.ResourceExhausted:
		// The same code for the kubelet's limit on calls and for gRPC's on
		// their size.
		if strings.Contains(text, "larger than max") {
			return OutcomeTooLarge
		}
		return OutcomeRateLimited
	case codes.Unimplemented:
		return OutcomeUnimplemented
	case codes.PermissionDenied, codes.Unauthenticated:
		return OutcomeDenied
	case codes.Internal:
		return OutcomeGarbage // what gRPC makes of bytes that are no message
	case codes.Unavailable:
		switch {
		case errors.Is(dialErr, syscall.ECONNREFUSED):
			return OutcomeRefused
		case errors.Is(dialErr, fs.ErrNotExist):
			return OutcomeNoSocket
		case errors.Is(dialErr, fs.ErrPermission):
			return OutcomeDenied
		case strings.Contains(text, "server preface"):
			return OutcomeGarbage
		}
		return OutcomeUnavailable
	}
	return OutcomeError
}

// dialUnix is the default of Options.Dial.
func dialUnix(ctx context.Context, socket string) (net.Conn, error) {
	return new(net.Dialer).DialContext(ctx, "unix", socket)
}

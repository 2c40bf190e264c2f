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

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	podresources "k8s.io/kubelet/pkg/apis/podresources/v1"
)

// maxMessage limits an answer, in bytes. A device takes about 70.
const maxMessage = 64 << 20

// client calls the kubelet, one call at a time.
type client struct {
	opts *Options

	conn *grpc.ClientConn // nil while there is none
	at   os.FileInfo      // the socket that conn was made for, nil before the first
	// dials counts connections. Read after a call, it identifies the
	// connection that the answer came from.
	dials atomic.Uint64
	// dialErr is the error of the latest dial, nil after a success. gRPC reports
	// it as text only.
	dialErr atomic.Pointer[error]
}

// maxHeader limits the headers of an answer, in bytes.
const maxHeader = 64 << 10

// prepare returns the service of the kubelet that the socket belongs to.
func (c *client) prepare() (podresources.PodResourcesListerClient, error) {
	at, err := os.Stat(c.opts.Socket)
	if err != nil || c.at == nil || !os.SameFile(at, c.at) || !at.ModTime().Equal(c.at.ModTime()) {
		// The kubelet makes a new socket at each start and renames it into
		// place. A process with the old one open may still answer on it.
		c.close()
	}
	if err != nil {
		return nil, err
	}
	if c.conn == nil {
		if err := c.open(); err != nil {
			return nil, err
		}
		c.at = at
	}
	return podresources.NewPodResourcesListerClient(c.conn), nil
}

// open makes a connection that is dialed at the first call. gRPC neither
// repeats a failed call nor closes an idle connection: the Watcher decides when
// to call again, and a new connection stands for a restart of the kubelet.
func (c *client) open() (err error) {
	c.conn, err = grpc.NewClient("passthrough:///kubelet",
		grpc.WithContextDialer(c.dial),
		grpc.WithAuthority("localhost"),
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDisableServiceConfig(),
		grpc.WithDisableRetry(),
		grpc.WithIdleTimeout(0),
		grpc.WithMaxHeaderListSize(maxHeader),
	)
	return err
}

func (c *client) dial(ctx context.Context, _ string) (net.Conn, error) {
	conn, err := c.opts.Dial(ctx, c.opts.Socket)
	if err != nil {
		c.dialErr.Store(&err)
		return nil, err
	}
	c.dialErr.Store(nil)
	c.dials.Add(1)
	return conn, nil
}

// born returns the time when the socket was made, which is when its kubelet
// started; zero if unknown.
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

// list calls List.
func (c *client) list(ctx context.Context) (a *answer, outcome Outcome, err error) {
	outcome, err = c.call(ctx, func(ctx context.Context, kubelet podresources.PodResourcesListerClient, opts ...grpc.CallOption) error {
		resp, err := kubelet.List(ctx, &podresources.ListPodResourcesRequest{}, opts...)
		if err == nil {
			a = readList(resp)
		}
		return err
	})
	return a, outcome, err
}

// allocatable calls GetAllocatableResources.
func (c *client) allocatable(ctx context.Context) (list []Allocatable, err error) {
	_, err = c.call(ctx, func(ctx context.Context, kubelet podresources.PodResourcesListerClient, opts ...grpc.CallOption) error {
		resp, err := kubelet.GetAllocatableResources(ctx, &podresources.AllocatableResourcesRequest{}, opts...)
		if err == nil {
			list = readAllocatable(resp)
		}
		return err
	})
	return list, err
}

type method func(context.Context, podresources.PodResourcesListerClient, ...grpc.CallOption) error

// call makes one call, and another one if the kubelet's rate limit rejected the
// first.
func (c *client) call(ctx context.Context, do method) (Outcome, error) {
	kubelet, err := c.prepare()
	if err != nil {
		return socketOutcome(err, OutcomeError), err
	}
	outcome, err := c.once(ctx, kubelet, do)
	if outcome != OutcomeRateLimited {
		return outcome, err
	}
	// A token comes back every 10 ms, for all clients of the socket.
	select {
	case <-ctx.Done():
		return outcome, err
	case <-time.After(200*time.Millisecond + rand.N(300*time.Millisecond)):
		return c.once(ctx, kubelet, do)
	}
}

func (c *client) once(ctx context.Context, kubelet podresources.PodResourcesListerClient, do method) (Outcome, error) {
	ctx, cancel := context.WithTimeout(ctx, c.opts.Timeout)
	defer cancel()
	var header metadata.MD
	err := do(ctx, kubelet, grpc.MaxCallRecvMsgSize(maxMessage), grpc.Header(&header))
	outcome := outcomeOf(status.Code(err), header != nil)
	if failed := c.dialErr.Load(); outcome == OutcomeUnavailable && failed != nil {
		err = *failed
		outcome = socketOutcome(err, OutcomeUnavailable)
	}
	switch outcome {
	case OutcomeNoSocket, OutcomeRefused, OutcomeUnavailable, OutcomeGarbage, OutcomeDenied:
		c.close() // the next answer may come from another process
	case OutcomeTimeout:
		if c.conn.GetState() != connectivity.Ready {
			c.close() // the server has not completed the handshake
		}
	}
	return outcome, err
}

// socketOutcome is the outcome of a call without a socket or a connection to it.
func socketOutcome(err error, other Outcome) Outcome {
	switch {
	case errors.Is(err, syscall.ECONNREFUSED):
		return OutcomeRefused
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR):
		return OutcomeNoSocket
	case errors.Is(err, fs.ErrPermission):
		return OutcomeDenied
	}
	return other
}

// outcomeOf returns the outcome of a call with this status. headers reports
// whether the answer began with headers: a server that refuses a call sends
// none, so an error after headers was found on this side.
func outcomeOf(code codes.Code, headers bool) Outcome {
	switch code {
	case codes.OK:
		return OutcomeOK
	case codes.DeadlineExceeded:
		return OutcomeTimeout
	case codes.ResourceExhausted:
		if headers {
			return OutcomeTooLarge
		}
		return OutcomeRateLimited
	case codes.Unimplemented:
		return OutcomeUnimplemented
	case codes.PermissionDenied, codes.Unauthenticated:
		return OutcomeDenied
	case codes.Unavailable:
		return OutcomeUnavailable
	case codes.Internal:
		return OutcomeGarbage // gRPC's status for a message that it cannot decode
	}
	return OutcomeError
}

// dialUnix is the default of Options.Dial.
func dialUnix(ctx context.Context, socket string) (net.Conn, error) {
	return new(net.Dialer).DialContext(ctx, "unix", socket)
}

package podmap

import (
	"cmp"
	"context"
	"net"
	"time"
)

// DefaultSocket is where a kubelet with its default root directory listens.
const DefaultSocket = "/var/lib/kubelet/pod-resources/kubelet.sock"

// Options configure a Watcher. A zero value stands for the default of each
// option, unless noted.
type Options struct {
	// Socket is the path of the kubelet's socket; DefaultSocket.
	Socket string
	// Interval is the time between two lists; 10 s.
	Interval time.Duration
	// Timeout is the time for one call; 5 s. Lists of 500 pods take up to 0.9
	// s.
	Timeout time.Duration
	// Settle is how long a list with missing pods must not have grown before
	// it counts as complete, and how long a kubelet must have run before its
	// first list counts as complete; 60 s.
	Settle time.Duration
	// Self is the pod of this program. If set, a list without it is known to
	// be incomplete. It has no default.
	Self Pod
	// Ready reports whether the kubelet has received its pods from every source since
	// it started; known is false where the kubelet does not report it, and the Watcher
	// infers it then. By default it does not.
	Ready func(ctx context.Context) (ready, known bool)
	// AdminAccess reports whether a claim of DRA, as namespace/name, is known
	// to have administrative access to a device, from a time after since: it
	// uses the device beside its holder. It must not block. By default none is
	// known.
	AdminAccess func(claim, driver, pool, device string, since time.Time) bool
	// Dial connects to Socket; a unix socket by default.
	Dial func(ctx context.Context, socket string) (net.Conn, error)
}

// shortest is the least time between two lists, however often Refresh is
// called.
const shortest = time.Second

// expire is how long an allocation that is not listed is kept.
const expire = time.Hour

func (o Options) withDefaults() Options {
	o.Socket = cmp.Or(o.Socket, DefaultSocket)
	o.Interval = cmp.Or(o.Interval, 10*time.Second)
	o.Timeout = cmp.Or(o.Timeout, 5*time.Second)
	o.Settle = cmp.Or(o.Settle, time.Minute)
	if o.Dial == nil {
		o.Dial = dialUnix
	}
	return o
}

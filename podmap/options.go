package podmap

import (
	"context"
	"net"
	"time"
)

// DefaultSocket is where a kubelet with its default root directory listens.
const DefaultSocket = "/var/lib/kubelet/pod-resources/kubelet.sock"

// Options say how a Watcher watches. The zero value is the default of each,
// unless said otherwise.
type Options struct {
	// Socket is the path of the kubelet's socket; DefaultSocket.
	Socket string
	// Interval is the time between two lists; 10 s.
	Interval time.Duration
	// Timeout is the time that a call has; 5 s. Lists of 500 pods were seen to
	// take 0.9 s.
	Timeout time.Duration
	// Message is the largest answer taken at first, in bytes, and MaxMessage
	// the largest that the limit is raised to when an answer is larger; 16 MiB
	// and 64 MiB. A device takes about 70 bytes.
	Message, MaxMessage int
	// Settle is how long a list that lacks pods must not have grown before it
	// counts as complete, and how long a kubelet must have been up for its
	// first list to do so; 60 s.
	Settle time.Duration
	// Expire is how long what is not listed is kept; 1 h.
	Expire time.Duration
	// Self is the pod that this program runs in. Where it is known, a list
	// without it is known to be incomplete. It has no default.
	Self Pod
	// Dial connects to Socket; a unix socket by default.
	Dial func(ctx context.Context, socket string) (net.Conn, error)
}

// shortest is the least time between two lists, however often Refresh is
// called.
const shortest = time.Second

func (o Options) withDefaults() Options {
	set(&o.Socket, DefaultSocket)
	set(&o.Interval, 10*time.Second)
	set(&o.Timeout, 5*time.Second)
	set(&o.Message, 16<<20)
	set(&o.MaxMessage, 64<<20)
	set(&o.Settle, time.Minute)
	set(&o.Expire, time.Hour)
	o.MaxMessage = max(o.MaxMessage, o.Message)
	if o.Dial == nil {
		o.Dial = dialUnix
	}
	return o
}

func set[T comparable](v *T, def T) {
	if *v == *new(T) {
		*v = def
	}
}

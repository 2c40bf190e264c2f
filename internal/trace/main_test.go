package trace_test

import (
	"cmp"
	"context"
	"log/slog"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/accel-exporter/accel-exporter/collector"
	"github.com/accel-exporter/accel-exporter/internal/judge/allocation"
	"github.com/accel-exporter/accel-exporter/internal/sim/golden"
	"github.com/accel-exporter/accel-exporter/internal/trace"
	"github.com/accel-exporter/accel-exporter/podmap"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience is the maximum time that a test waits for other goroutines.
const patience = 3 * time.Minute

// rigged is a Follower with its sources.
type rigged struct {
	t        *testing.T
	follower *trace.Follower
	log      *golden.Buffer
	stop     func()

	mu       sync.Mutex
	history  *allocation.History
	snap     *collector.Snapshot
	next     chan struct{}
	returned [2]time.Time              // times of the latest results of Latest and History
	taken    time.Time                 // time of the latest state that the follower has read
	identity map[string]trace.Identity // by pod
}

// follow starts a Follower.
func follow(t *testing.T, o trace.Options) *rigged {
	t.Helper()
	g := &rigged{t: t, log: &golden.Buffer{}, next: make(chan struct{}), history: &allocation.History{}, identity: map[string]trace.Identity{}}
	o.Version, o.Host, o.Node, o.Log = "1.2.3", "host-1", "node-1", slog.New(slog.NewTextHandler(g.log, nil))
	o.Delay, o.Retry, o.Drain = time.Millisecond, time.Millisecond, cmp.Or(o.Drain, time.Millisecond)
	sender, err := trace.NewSender(o)
	if err != nil {
		t.Fatal(err)
	}
	g.follower = trace.Follow(sender, trace.Sources{
		Latest: g.latest, Next: g.wait, History: g.current,
		Identify: func(p podmap.Pod, _ time.Time) trace.Identity {
			g.mu.Lock()
			defer g.mu.Unlock()
			return g.identity[p.Name]
		},
		Node: "node-1", Pause: time.Millisecond,
	})
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() { g.follower.Run(ctx); close(ended) }()
	g.stop = func() { cancel(); <-ended }
	t.Cleanup(func() {
		g.stop()
		if t.Failed() {
			t.Logf("log:\n%s", g.log)
		}
	})
	return g
}

func (g *rigged) latest() *collector.Snapshot {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.snap != nil {
		g.returned[0] = g.snap.Time
	}
	return g.snap
}

func (g *rigged) current() *allocation.History {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.returned[1] = g.history.Time
	return g.history
}

// wait is called before each update.
func (g *rigged) wait() <-chan struct{} {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.returned[0].Equal(g.returned[1]) {
		g.taken = g.returned[0]
	}
	return g.next
}

// show sets the state at a time, in seconds after the start, and waits until the
// follower has read it.
func (g *rigged) show(seconds int, events []collector.Event, all ...allocation.Record) {
	g.t.Helper()
	g.set(seconds, events, all)
	g.until("an update", func() bool {
		g.mu.Lock()
		defer g.mu.Unlock()
		close(g.next) // as for a new Snapshot
		g.next = make(chan struct{})
		return g.taken.Equal(at(seconds))
	})
}

func (g *rigged) set(seconds int, events []collector.Event, all []allocation.Record) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.history = &allocation.History{Time: at(seconds), Complete: true, Records: all}
	g.snap = &collector.Snapshot{Time: at(seconds), Events: events}
	close(g.next)
	g.next = make(chan struct{})
}

// until waits for cond.
func (g *rigged) until(what string, cond func() bool) {
	g.t.Helper()
	for end := time.Now().Add(patience); !cond(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			g.t.Fatalf("timed out waiting for %s", what)
		}
	}
}

var start = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func at(seconds int) time.Time { return start.Add(time.Duration(seconds) * time.Second) }

// record returns the allocation of a GPU to a pod since a time.
func record(pod, device string, since int, change ...func(*allocation.Record)) allocation.Record {
	l := allocation.Record{
		Pod: podmap.Pod{Namespace: "ml", Name: pod}, Containers: []string{"main"}, Resources: []string{"nvidia.com/gpu"},
		Device: device, Class: collector.GPU, Vendor: "nvidia", Model: "H100", Index: strings.TrimPrefix(device, "GPU-"), PCI: "0000:1b:00.0",
		Health: "healthy", Action: "none", Since: at(since), After: at(since - 5), IdleKnown: true,
	}
	for _, f := range change {
		f(&l)
	}
	return l
}

func listen(t *testing.T, address string) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// endpoint is the address of a listener.
func endpoint(t *testing.T, scheme string, l net.Listener) trace.Endpoint {
	t.Helper()
	e, err := trace.ParseEndpoint(scheme + "://" + l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	return e
}

package traceapp_test

import (
	"bytes"
	"context"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"go.uber.org/goleak"

	"github.com/accel-exporter/accel-exporter/collector"
	"github.com/accel-exporter/accel-exporter/internal/judge/allocation"
	"github.com/accel-exporter/accel-exporter/internal/peer"
	"github.com/accel-exporter/accel-exporter/internal/traceapp"
	"github.com/accel-exporter/accel-exporter/internal/traceapp/otlptest"
	"github.com/accel-exporter/accel-exporter/internal/traceproc"
	"github.com/accel-exporter/accel-exporter/podmap"
)

// programVariable has the test binary be accel-traces.
const programVariable = "ACCEL_TEST_TRACES"

func TestMain(m *testing.M) {
	if os.Getenv(programVariable) != "" {
		os.Exit(traceapp.Main(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
	}
	goleak.VerifyTestMain(m)
}

// patience bounds the wait for what must come from another process.
const patience = 3 * time.Minute

// stage is a Follower with a program of its own, and what it looks at.
type stage struct {
	t        *testing.T
	follower *traceproc.Follower
	log      *lockedBuffer
	stop     func()

	mu       sync.Mutex
	lives    *allocation.Lives
	snap     *collector.Snapshot
	next     chan struct{}
	asked    [2]time.Time                  // what Latest and Lives last gave out
	looked   time.Time                     // the latest that the follower is done with
	identity map[string]traceproc.Identity // by pod
}

type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

// newStage begins to follow. env is the program's beside that of this process.
func newStage(t *testing.T, s traceproc.Settings, env ...string) *stage {
	t.Helper()
	g := &stage{t: t, log: &lockedBuffer{}, next: make(chan struct{}), lives: &allocation.Lives{}, identity: map[string]traceproc.Identity{}}
	s.Version, s.Host, s.Node = "1.2.3", "host-1", "node-1"
	p := traceproc.New(traceproc.Options{
		Command: func() *exec.Cmd {
			cmd := exec.Command("/proc/self/exe", "serve")
			cmd.Env = append(append(os.Environ(), programVariable+"=1"), env...)
			return cmd
		},
		Build: peer.Build(), Settings: s, Log: slog.New(slog.NewTextHandler(g.log, nil)), Retry: 10 * time.Millisecond,
	})
	g.follower = traceproc.Follow(p, traceproc.Sources{
		Latest: g.latest, Next: g.wait, Lives: g.current,
		Identify: func(p podmap.Pod, _ time.Time) traceproc.Identity {
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

func (g *stage) latest() *collector.Snapshot {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.snap != nil {
		g.asked[0] = g.snap.Time
	}
	return g.snap
}

func (g *stage) current() *allocation.Lives {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.asked[1] = g.lives.Time
	return g.lives
}

// wait is called before each look.
func (g *stage) wait() <-chan struct{} {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.asked[0].Equal(g.asked[1]) {
		g.looked = g.asked[0]
	}
	return g.next
}

// show has the follower look at holds, so many seconds after the start, and
// waits until it has.
func (g *stage) show(seconds int, events []collector.Event, holds ...allocation.Life) {
	g.t.Helper()
	g.set(seconds, events, holds)
	g.until("a look", func() bool {
		g.mu.Lock()
		defer g.mu.Unlock()
		close(g.next) // the next Snapshot, which is the same
		g.next = make(chan struct{})
		return g.looked.Equal(at(seconds))
	})
}

func (g *stage) set(seconds int, events []collector.Event, holds []allocation.Life) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.lives = &allocation.Lives{Time: at(seconds), Complete: true, Holds: holds}
	g.snap = &collector.Snapshot{Time: at(seconds), Events: events}
	close(g.next)
	g.next = make(chan struct{})
}

// until waits for cond.
func (g *stage) until(what string, cond func() bool) {
	g.t.Helper()
	for end := time.Now().Add(patience); !cond(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			g.t.Fatalf("waited in vain for %s", what)
		}
	}
}

// metric returns the value of a family, of a series by the value of its label.
func (g *stage) metric(name, label string) float64 {
	g.t.Helper()
	r := prometheus.NewPedanticRegistry()
	r.MustRegister(g.follower)
	families, err := r.Gather()
	if err != nil {
		g.t.Fatal(err)
	}
	for _, f := range families {
		for _, m := range f.Metric {
			if f.GetName() == name && (len(m.Label) == 0 || m.Label[0].GetValue() == label) {
				return valueOf(m)
			}
		}
	}
	return -1
}

func valueOf(m *dto.Metric) float64 {
	if m.Gauge != nil {
		return m.Gauge.GetValue()
	}
	return m.Counter.GetValue()
}

var start = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func at(seconds int) time.Time { return start.Add(time.Duration(seconds) * time.Second) }

// life is a hold of a pod on a GPU since a time.
func life(pod, device string, since int, change ...func(*allocation.Life)) allocation.Life {
	l := allocation.Life{
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

// endpoint is where a listener is reached.
func endpoint(t *testing.T, scheme string, l net.Listener) traceproc.Endpoint {
	t.Helper()
	e, err := traceproc.ParseEndpoint(scheme + "://" + l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// named returns the spans of a name.
func named(spans []otlptest.Span, name string) []otlptest.Span {
	var out []otlptest.Span
	for _, s := range spans {
		if s.Name == name {
			out = append(out, s)
		}
	}
	return out
}

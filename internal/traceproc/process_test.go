package traceproc

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"
)

// patience bounds the wait for what must come from another process.
const patience = 3 * time.Minute

type rig struct {
	*Process
	t   *testing.T
	mu  sync.Mutex
	log bytes.Buffer
}

func (r *rig) Write(p []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.log.Write(p)
}

func (r *rig) text() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.log.String()
}

// newRig returns a Process whose programs behave as listed, the last one from
// then on.
func newRig(t *testing.T, change func(*Options), behaviours ...string) *rig {
	t.Helper()
	r := &rig{t: t}
	started := 0
	o := Options{
		Command: func() *exec.Cmd {
			started++
			cmd := exec.Command("/proc/self/exe")
			cmd.Env = append(os.Environ(), programVariable+"="+behaviours[min(started, len(behaviours))-1])
			return cmd
		},
		Build: build(), Log: slog.New(slog.NewTextHandler(r, nil)), Retry: time.Millisecond,
	}
	if change != nil {
		change(&o)
	}
	r.Process = New(o)
	return r
}

func (r *rig) run() (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() { r.Run(ctx); close(ended) }()
	return func() { cancel(); <-ended }
}

func (r *rig) until(what string, cond func() bool) {
	r.t.Helper()
	for end := time.Now().Add(patience); !cond(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			r.t.Fatalf("waited in vain for %s\n%s", what, r.text())
		}
	}
}

// TestMisbehaviour: whatever a program does, spans that were queued are sent by
// the next, and each counts once.
func TestMisbehaviour(t *testing.T) {
	for behaviour, says := range map[string]string{
		"crash": "out of ideas", "garbage": "garbage", "liar": "of 3 spans", "silent": "hung",
	} {
		t.Run(behaviour, func(t *testing.T) {
			r := newRig(t, func(o *Options) { o.HungAfter = time.Second }, behaviour, "good")
			defer r.run()()
			r.Add(Span{Name: "a"}, Span{Name: "b"}, Span{Name: "c"})
			r.until("the spans", func() bool { return r.queue.count(resultSent) == 3 })
			if n, bytes := r.queue.length(); n != 0 || bytes != 0 {
				t.Errorf("%d spans of %d bytes wait", n, bytes)
			}
			if !strings.Contains(r.text(), says) {
				t.Errorf("log without %q:\n%s", says, r.text())
			}
		})
	}
}

// TestStranger: a program of another build is refused, and one that is missing
// is named.
func TestStranger(t *testing.T) {
	refused := (*Refusal)(nil)
	r := newRig(t, nil, "stranger")
	if err := r.Start(t.Context()); !errors.As(err, &refused) || !strings.Contains(err.Error(), "another") {
		t.Errorf("%v", err)
	}
	r = newRig(t, func(o *Options) { o.Command = func() *exec.Cmd { return exec.Command("/nonexistent/accel-traces") } }, "good")
	if err := r.Start(t.Context()); !errors.As(err, &refused) || !strings.Contains(err.Error(), "--otlp.program") {
		t.Errorf("%v", err)
	}
	r = newRig(t, nil, "good")
	if err := r.Start(t.Context()); err != nil {
		t.Error(err)
	}
	r.Close()
}

// TestOverflow: what does not fit is counted, and what waits at the end too.
func TestOverflow(t *testing.T) {
	r := newRig(t, func(o *Options) { o.Command = func() *exec.Cmd { return exec.Command("/nonexistent/accel-traces") } }, "good")
	stop := r.run()
	for i := range maxQueued + 7 {
		r.Add(Span{Name: fmt.Sprint(i)})
	}
	if n, _ := r.queue.length(); n != maxQueued || r.queue.count(resultOverflow) != 7 {
		t.Errorf("%d wait, %d were left out", n, r.queue.count(resultOverflow))
	}
	stop()
	if n, _ := r.queue.length(); n != 0 || r.queue.count(resultShutdown) != maxQueued || !strings.Contains(r.text(), "Spans are lost") {
		t.Errorf("%d wait, %d are counted as lost", n, r.queue.count(resultShutdown))
	}

	q := newQueue()
	for range 100 {
		q.add(&Span{Name: strings.Repeat("x", 100_000)})
	}
	if n, bytes := q.length(); bytes > maxBytes || n == 0 || uint64(n)+q.count(resultOverflow) != 100 {
		t.Errorf("%d spans of %d bytes, %d left out", n, bytes, q.count(resultOverflow))
	}
	if n := len(q.batch()); n == 0 || n > 10 {
		t.Errorf("a batch of %d", n)
	}
}

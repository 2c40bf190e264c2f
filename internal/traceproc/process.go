package traceproc

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os/exec"
	"sync"
	"time"

	"github.com/accel-exporter/accel-exporter/collector"
	"github.com/accel-exporter/accel-exporter/internal/peer"
)

// Times of a program.
const (
	hungAfter     = time.Minute
	greetPatience = time.Minute            // from its start to its first word
	drainPatience = 5 * time.Second        // for what waits when the exporter ends
	endPatience   = 500 * time.Millisecond // from the end of its input to SIGKILL
	retryMin      = time.Second
	retryMax      = time.Minute
)

// Options are what a Process works with.
type Options struct {
	// Command yields a fresh, unstarted command of the program. Its Stdin and
	// ExtraFiles are Process's, its Stderr is the caller's.
	Command func() *exec.Cmd
	// Build is what the program must say that it was made from.
	Build    string
	Settings Settings
	// Log takes what the program has to say, and what becomes of it.
	Log *slog.Logger
	// HungAfter is how long a batch may go unanswered; a minute where it is 0.
	HungAfter time.Duration
	// Retry is the pause after a batch that was not taken; it doubles with each
	// one up to a minute. A second where it is 0.
	Retry time.Duration
}

// Process queues spans and has the program send them. It is safe for concurrent
// use and a prometheus.Collector.
type Process struct {
	o     Options
	queue *queue

	mu       sync.Mutex
	first    *session // by Start, for Run
	current  *session // nil while none works
	logged   string   // the error that was logged last, "" while one works
	refused  string   // the same of batches
	restarts uint64
	taken    uint64 // batches
	failed   uint64 // the same
	success  time.Time
}

// New returns a Process that has started nothing yet.
func New(o Options) *Process {
	o.HungAfter = cmp.Or(o.HungAfter, hungAfter)
	o.Retry = cmp.Or(o.Retry, retryMin)
	return &Process{o: o, queue: newQueue()}
}

// Add queues spans, as far as there is room. It does not block.
func (p *Process) Add(spans ...Span) {
	for i := range spans {
		p.queue.add(&spans[i])
	}
}

// Start starts the program. A Refusal means that there can be none: it is
// missing or of another build. After any other error Run tries again.
func (p *Process) Start(ctx context.Context) error {
	s, err := p.open(ctx)
	if err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.first = s
	return nil
}

// Close ends a program that Start has started and Run has not taken over.
func (p *Process) Close() {
	if s := p.takeFirst(); s != nil {
		s.Dismiss(errAsked, endPatience)
	}
}

func (p *Process) takeFirst() *session {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.first
	p.first = nil
	return s
}

// errAsked is why a program ends that was told to.
var errAsked = errors.New("it was told to end")

// Run has queued spans sent until ctx is done, and then for up to five seconds
// those that wait.
func (p *Process) Run(ctx context.Context) {
	peer.Keep(ctx, nil, func() (lived time.Duration, again bool) {
		sending, cancel := outlast(ctx, drainPatience)
		defer cancel()
		s := p.takeFirst()
		var err error
		if s == nil {
			s, err = p.open(sending)
		}
		if err == nil {
			p.enter(s)
			err = p.tend(ctx, sending, s)
			lived = time.Since(s.Started())
		}
		p.down(ctx, err)
		return lived, false
	})
	p.Close()
	if n := p.queue.giveUp(); n > 0 {
		p.o.Log.Warn("Spans are lost: they were not taken before the end", "spans", n)
	}
}

func (p *Process) enter(s *session) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.logged != "" {
		p.o.Log.Info("Traces are sent again", "pid", s.PID())
	}
	p.current, p.logged = s, ""
}

// down notes that no program works. A reason is logged once until one does.
func (p *Process) down(ctx context.Context, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.current = nil
	if ctx.Err() != nil {
		return
	}
	p.restarts++
	if text := err.Error(); text != p.logged {
		p.logged = text
		p.o.Log.Error("The program that sends traces does not work and is started again", "err", err)
	}
}

// tend hands over what is queued until the program is gone or ctx is done, and
// then what waits until sending is. It returns why it ended.
func (p *Process) tend(ctx, sending context.Context, s *session) error {
	pause := p.o.Retry
	for ctx.Err() == nil {
		o, err := p.sendNext(sending, s)
		switch {
		case err != nil:
			return p.end(ctx, s, err)
		case o == nil:
			err = p.await(ctx, s, p.queue.changed, 0)
		case o.Retry:
			err = p.await(ctx, s, nil, max(pause, min(o.After, retryMax)))
			pause = min(2*pause, retryMax)
		default:
			pause = p.o.Retry
		}
		if err != nil {
			return p.end(ctx, s, err)
		}
	}
	for { // what waits, without trying again
		if o, err := p.sendNext(sending, s); err != nil || o == nil || o.Retry {
			return p.end(ctx, s, errAsked)
		}
	}
}

// outlast returns a context that is done so long after ctx is.
func outlast(ctx context.Context, by time.Duration) (context.Context, context.CancelFunc) {
	out, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() { time.AfterFunc(by, cancel) })
	return out, func() { stop(); cancel() }
}

// end ends the program and returns why it did, by itself or because of err.
func (p *Process) end(ctx context.Context, s *session, err error) error {
	gone := false
	if errors.Is(err, errHung) {
		gone = s.Replace()
	} else {
		gone = s.Dismiss(err, endPatience)
	}
	if !gone {
		// It sits in the kernel, where a second one would only sit too.
		p.o.Log.Error("The program that sends traces does not die", "pid", s.PID())
		select {
		case <-s.Done():
		case <-ctx.Done():
			return err
		}
	}
	return s.why()
}

// await waits for something to be there, for some time, for the end of the
// program, which is an error, or of ctx, which is none.
func (p *Process) await(ctx context.Context, s *session, there <-chan struct{}, pause time.Duration) error {
	var after <-chan time.Time
	if there == nil {
		t := time.NewTimer(pause)
		defer t.Stop()
		after = t.C
	}
	select {
	case <-there:
	case <-after:
	case <-ctx.Done():
	case <-s.Done():
		return s.why()
	}
	return nil
}

// sendNext has a batch sent. It returns nil where nothing waits.
func (p *Process) sendNext(ctx context.Context, s *session) (*Outcome, error) {
	spans := p.queue.batch()
	if len(spans) == 0 {
		return nil, nil
	}
	o, err := s.send(ctx, spans)
	if err != nil {
		return nil, err
	}
	if !o.Retry {
		if o.Sent < 0 || o.Rejected < 0 || o.Unsampled < 0 || o.Sent+o.Rejected+o.Unsampled != len(spans) {
			return nil, fmt.Errorf("%w: of %d spans %+v", collector.ErrProtocol, len(spans), *o)
		}
		p.queue.done(len(spans), o)
	}
	p.note(o)
	return o, nil
}

// note counts what became of a batch. What is wrong is logged once until
// something else is, or nothing.
func (p *Process) note(o *Outcome) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if o.Error == "" {
		p.taken++
		p.success = time.Now()
	} else {
		p.failed++
	}
	if o.Error == p.refused {
		return
	}
	p.refused = o.Error
	switch {
	case o.Error == "":
		p.o.Log.Info("Traces are taken again")
	case o.Retry:
		p.o.Log.Warn("Traces are not taken and tried again", "err", o.Error)
	default:
		p.o.Log.Error("Traces are refused", "err", o.Error, "spans", o.Rejected)
	}
}

// PID returns the process id of the program, 0 while none works.
func (p *Process) PID() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.current == nil {
		return 0
	}
	return p.current.PID()
}

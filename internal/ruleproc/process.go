package ruleproc

import (
	"cmp"
	"context"
	"errors"
	"io"
	"log/slog"
	"os/exec"
	"slices"
	"sync"
	"time"

	"github.com/accel-exporter/accel-exporter/collector"
	"github.com/accel-exporter/accel-exporter/internal/peer"
)

// Times of an engine.
const (
	hungAfter     = time.Minute
	startPatience = time.Minute     // from its start to its word on the settings
	drainPatience = 7 * time.Second // from its end being asked for to SIGKILL: it sends what waits, for 5 s
	checkPatience = time.Second     // the same for one that has nothing to send
)

// Options are what a Process works with.
type Options struct {
	// Command yields a fresh, unstarted command of the program. Its Stdin and
	// ExtraFiles are Process's, its Stderr is the caller's.
	Command func() *exec.Cmd
	// Build is what the program must say that it was made from.
	Build string
	// Page writes the page, of which it says what could not be gathered. It
	// must not wait for a device.
	Page func(io.Writer) error
	// Log takes what the engine has to say, and what becomes of it.
	Log *slog.Logger
	// HungAfter is how long an engine may answer nothing; a minute where it
	// is 0.
	HungAfter time.Duration
}

// Process runs the engine. It is safe for concurrent use and a
// prometheus.Collector of the engine's families and its own.
type Process struct {
	o    Options
	told told
	// kick has the next engine start at once.
	kick chan struct{}

	mu       sync.Mutex
	settings Settings // in force
	changes  int      // of settings
	current  *session // nil while none works
	first    *started // by Start, for Run
	why      error    // why none works
	logged   string   // the error that was logged last, "" while one works
	restarts uint64
}

// started is an engine that has its settings and waits for Run.
type started struct {
	*session
	prepared uint64
	changes  int // Process.changes as they were
}

// New returns a Process that has started nothing yet.
func New(o Options, s Settings) *Process {
	o.HungAfter = cmp.Or(o.HungAfter, hungAfter)
	return &Process{o: o, settings: s, kick: make(chan struct{}, 1), why: errors.New("it has not been started yet")}
}

// Start starts the engine and has it check the settings. It returns how many
// Alertmanagers they name. A Refusal means that there can be no engine: of
// the settings, or because the program is missing or of another build. After
// any other error Run tries again.
func (p *Process) Start(ctx context.Context) (endpoints int, err error) {
	s, endpoints, err := p.begin(ctx)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.first = s
	if err != nil {
		p.why = err
	}
	return endpoints, err
}

// Check has a fresh engine check settings, which come to nothing further. It
// returns how many Alertmanagers they name. The error is a Refusal where the
// settings are at fault.
func Check(ctx context.Context, o Options, s Settings) (endpoints int, err error) {
	p := New(o, s)
	endpoints, err = p.Start(ctx)
	p.Close()
	return endpoints, err
}

// Close ends an engine that Start has started and Run has not taken over.
func (p *Process) Close() {
	p.mu.Lock()
	s := p.first
	p.first = nil
	p.mu.Unlock()
	if s != nil {
		s.Dismiss(errAsked, checkPatience)
	}
}

// begin starts an engine and has it check the settings in force.
func (p *Process) begin(ctx context.Context) (*started, int, error) {
	p.mu.Lock()
	settings, changes := p.settings, p.changes
	p.mu.Unlock()
	s, err := p.open()
	if err != nil {
		return nil, 0, err
	}
	ctx, cancel := context.WithTimeout(ctx, startPatience)
	defer cancel()
	select {
	case <-s.greeted:
	case <-s.Done():
		return nil, 0, s.why()
	case <-ctx.Done():
		s.Replace()
		return nil, 0, ctx.Err()
	}
	a, id, err := s.call(ctx, request{Op: opPrepare, Part: Everything, Settings: &settings})
	if err != nil {
		s.Dismiss(errAsked, checkPatience)
		return nil, 0, err
	}
	return &started{s, id, changes}, a.Endpoints, nil
}

// errAsked is why an engine ends that was told to.
var errAsked = errors.New("it was told to end")

// Run keeps an engine at work until ctx is done. What that has to send then is
// still sent.
func (p *Process) Run(ctx context.Context) {
	peer.Keep(ctx, p.kick, func() (lived time.Duration, again bool) {
		s, err := p.work(ctx)
		if err == nil {
			err = p.tend(ctx, s)
			lived = time.Since(s.Started())
		}
		if ctx.Err() == nil {
			p.down(err)
		}
		return lived, errors.Is(err, errAsked)
	})
	p.Close()
}

// work puts an engine to work.
func (p *Process) work(ctx context.Context) (*session, error) {
	p.mu.Lock()
	s := p.first
	p.first = nil
	p.mu.Unlock()
	if s == nil {
		var err error
		if s, _, err = p.begin(ctx); err != nil {
			return nil, err
		}
	}
	limit, cancel := context.WithTimeout(ctx, startPatience)
	defer cancel()
	if _, _, err := s.call(limit, request{Op: opApply, Prepared: s.prepared}); err != nil {
		s.Replace()
		return nil, err
	}
	if !p.enter(s) {
		s.Dismiss(errAsked, checkPatience)
		return nil, errAsked
	}
	return s.session, nil
}

// enter makes s the engine that works, unless the settings have changed since
// it got them.
func (p *Process) enter(s *started) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.changes != s.changes {
		return false
	}
	if p.logged != "" {
		p.o.Log.Info("Rule engine works again", "pid", s.PID())
	}
	p.current, p.why, p.logged = s.session, nil, ""
	return true
}

// tend returns why an engine is gone, once it is.
func (p *Process) tend(ctx context.Context, s *session) error {
	tick := time.NewTicker(p.o.HungAfter / 4)
	defer tick.Stop()
	heard := time.Now()
	for {
		select {
		case <-ctx.Done():
			s.Dismiss(errAsked, drainPatience)
			return ctx.Err()
		case <-s.Done():
			return s.why()
		case <-tick.C:
			if p.ping(ctx, s) {
				heard = time.Now()
			}
			if ctx.Err() != nil || time.Since(heard) < p.o.HungAfter {
				continue
			}
			if !s.Replace() {
				// It sits in the kernel, where a second one would only sit too.
				p.o.Log.Error("Rule engine does not die", "pid", s.PID())
				select {
				case <-s.Done():
				case <-ctx.Done():
				}
			}
		}
	}
}

// ping reports whether the engine answers.
func (p *Process) ping(ctx context.Context, s *session) bool {
	ctx, cancel := context.WithTimeout(ctx, p.o.HungAfter)
	defer cancel()
	_, _, err := s.call(ctx, request{Op: opPing})
	return err == nil
}

// stand keeps what the next engine is to go on from.
func (p *Process) stand(data []byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	// Not in place: a request may hold what was there.
	p.settings.Standing = slices.Clone(data)
}

// down notes that no engine works. A reason is logged once until one does.
func (p *Process) down(err error) {
	p.told.gone()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.current, p.why = nil, err
	if errors.Is(err, errAsked) {
		return
	}
	p.restarts++
	if text := err.Error(); text != p.logged {
		p.logged = text
		p.o.Log.Error("Rule engine does not work and is started again", "err", err)
	}
}

// Prepare has the engine check what change makes of a part of the settings,
// and returns what puts that into force. Where no engine answers, one is
// started for the check. The error is a Refusal where the settings are at
// fault.
func (p *Process) Prepare(ctx context.Context, part Part, change func(*Settings)) (apply func(), err error) {
	p.mu.Lock()
	next, s := p.settings, p.current
	p.mu.Unlock()
	change(&next)
	var id uint64
	refused := (*Refusal)(nil)
	if s != nil {
		limit, cancel := context.WithTimeout(ctx, p.o.HungAfter)
		_, id, err = s.call(limit, request{Op: opPrepare, Part: part, Settings: &next})
		cancel()
		if errors.As(err, &refused) {
			return nil, err
		}
	}
	if s == nil || err != nil {
		s = nil
		if _, err := Check(ctx, p.o, next); err != nil {
			return nil, err
		}
	}
	return func() { p.apply(s, id, change) }, nil
}

// apply puts into force what s has prepared. Another engine than that, if one
// works by now, is replaced.
func (p *Process) apply(s *session, id uint64, change func(*Settings)) {
	p.mu.Lock()
	change(&p.settings)
	p.changes++
	now := p.current
	p.mu.Unlock()
	if now != nil && now == s {
		ctx, cancel := context.WithTimeout(context.Background(), p.o.HungAfter)
		defer cancel()
		if _, _, err := s.call(ctx, request{Op: opApply, Prepared: id}); err == nil {
			return
		}
	}
	if now != nil {
		now.Dismiss(errAsked, checkPatience)
	}
	select {
	case p.kick <- struct{}{}:
	default:
	}
}

// Trigger has the rules evaluated at once. It does not block.
func (p *Process) Trigger() {
	p.mu.Lock()
	s := p.current
	p.mu.Unlock()
	if s != nil {
		// One that reads nothing has enough to do, or is about to be replaced.
		_ = s.send(frameTrigger, make([]byte, collector.FrameHeader))
	}
}

// Report returns the state of the engine as JSON. The error says why there is
// none.
func (p *Process) Report(ctx context.Context, explain bool) ([]byte, error) {
	p.mu.Lock()
	s, why := p.current, p.why
	p.mu.Unlock()
	if s == nil {
		return nil, why
	}
	a, _, err := s.call(ctx, request{Op: opReport, Explain: explain})
	return a.Report, err
}

// PID returns the process id of the engine, 0 while none works.
func (p *Process) PID() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.current == nil {
		return 0
	}
	return p.current.PID()
}

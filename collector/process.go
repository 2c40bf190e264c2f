package collector

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"time"
)

// Back-off and retry times of a worker.
const (
	backoffMin    = 500 * time.Millisecond
	backoffMax    = time.Minute
	retryAbsent   = 30 * time.Second // a driver installed later is found this soon
	retryDriver   = 5 * time.Second
	retryReload   = time.Second
	steadyAfter   = time.Minute // a worker that lived this long has no history
	hungAfter     = 30 * time.Second
	closePatience = 500 * time.Millisecond // from closing a worker's stdin to SIGKILL
	killPatience  = time.Second            // from SIGKILL to giving up on its death
	pipePatience  = killPatience / 4       // from its death to giving up on the ends of its pipes
)

// WorkerExit says how a worker ended without being asked to.
type WorkerExit struct {
	// How is the value of the label how of accel_source_worker_exits_total:
	// exit_N, signal_NAME, garbage, hung.
	How string
	// Stderr is the end of what the worker wrote to stderr: the dynamic
	// linker names a missing symbol there.
	Stderr string
}

func (e *WorkerExit) Error() string {
	if e.Stderr == "" {
		return "worker ended: " + e.How
	}
	return fmt.Sprintf("worker ended: %s: %s", e.How, e.Stderr)
}

// Is makes a WorkerExit an ErrCrashed, or an ErrProtocol for garbage.
func (e *WorkerExit) Is(target error) bool {
	if e.How == exitGarbage {
		return target == ErrProtocol
	}
	return target == ErrCrashed
}

// Process is a Source whose hardware is read by a worker process. Crashes,
// hangs and garbage of the worker become errors of Sample; the worker is
// started again with back-off. Sample, Release, Attach and Close may be
// called by different goroutines.
type Process struct {
	name    string
	command func() *exec.Cmd
	emit    func(Event)

	mu       sync.Mutex
	child    *worker // nil when none runs
	released bool
	until    time.Time // end of the release, zero: until Attach
	closed   bool
	eager    bool // start the next worker without regard to what became of the last

	hungAfter time.Duration

	// Owned by Sample.
	seq       uint64
	notBefore time.Time
	backoff   time.Duration
	lastErr   error     // why no worker runs
	asked     time.Time // when the request was sent
	failing   time.Time // since when the worker answers nothing but time-outs
}

// NewProcess returns a Source named name. command yields a fresh, unstarted
// command of the worker; its Stdin and ExtraFiles are Process's, its Stderr is
// the caller's. emit receives the worker's events; it must not block.
func NewProcess(name string, command func() *exec.Cmd, emit func(Event)) *Process {
	return &Process{name: name, command: command, emit: emit, hungAfter: hungAfter}
}

// Name implements Source.
func (p *Process) Name() string { return p.name }

// PID returns the process id of the worker, 0 when none runs.
func (p *Process) PID() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.child == nil {
		return 0
	}
	return p.child.pid
}

// Sample implements Source: it asks the worker for one round. ctx's deadline
// is handed to the worker, a little earlier, so that a partial answer arrives
// in time. Its error matches one of the sentinels of a Source or
// context.DeadlineExceeded where they apply; a worker that ended unasked makes
// it a *WorkerExit.
func (p *Process) Sample(ctx context.Context) (Round, error) {
	c, err := p.running()
	if err != nil {
		return Round{}, err
	}
	var late []CallError
	if c.waiting {
		// What an earlier Sample asked for is of the past, whatever it holds;
		// only its counts are still true.
		a, err := p.await(ctx, c)
		if err != nil {
			return Round{}, err
		}
		if final(a.why) {
			return p.answered(c, a)
		}
		if !empty(a) {
			p.failing = time.Time{}
		}
		late = a.round.Calls
	}
	if err := p.ask(ctx, c); err != nil {
		return Round{Calls: late}, p.exited(c, err)
	}
	a, err := p.await(ctx, c)
	if err != nil {
		return Round{Calls: late}, err
	}
	a.round.Calls = append(late, a.round.Calls...)
	return p.answered(c, a)
}

// await waits for the answer to the request that is in flight.
func (p *Process) await(ctx context.Context, c *worker) (roundAnswer, error) {
	var a roundAnswer
	select {
	case a = <-c.answers:
	case <-c.done:
		select { // an answer given just before the end still counts
		case a = <-c.answers:
		default:
			return a, p.exited(c, nil)
		}
	case <-ctx.Done():
		return a, p.overdue(c, ctx.Err())
	}
	c.waiting = false
	if a.seq != p.seq {
		c.condemn(exitGarbage)
		return a, p.exited(c, fmt.Errorf("%w: answer %d to request %d", ErrProtocol, a.seq, p.seq))
	}
	return a, nil
}

func (p *Process) ask(ctx context.Context, c *worker) error {
	timeout := time.Second
	if deadline, ok := ctx.Deadline(); ok {
		timeout = time.Until(deadline)
	}
	timeout -= min(timeout/10, 200*time.Millisecond)
	p.seq++
	if err := c.requests.write(&request{p.seq, max(timeout, time.Millisecond)}); err != nil {
		return err
	}
	c.waiting, p.asked = true, time.Now()
	return nil
}

// running returns the worker, starting it where it is time to.
func (p *Process) running() (*worker, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil, errors.New("source is closed")
	}
	if p.expired() {
		p.released = false
	}
	if p.released {
		return nil, ErrReleased
	}
	if p.child != nil {
		return p.child, nil
	}
	if p.eager {
		p.eager, p.notBefore, p.backoff = false, time.Time{}, 0
	}
	if time.Now().Before(p.notBefore) {
		if errors.Is(p.lastErr, ErrCrashed) || errors.Is(p.lastErr, ErrProtocol) {
			return nil, fmt.Errorf("%w after: %s", ErrBackoff, p.lastErr)
		}
		return nil, p.lastErr
	}
	c, err := startWorker(p.command(), p.name, p.emit)
	if err != nil {
		p.retry(fmt.Errorf("start worker: %w", err))
		return nil, p.lastErr
	}
	p.child = c
	return c, nil
}

// retry sets when the next worker may start, given why the last one ended.
func (p *Process) retry(err error) {
	p.lastErr = err
	p.failing = time.Time{}
	wait := time.Duration(0)
	switch {
	case errors.Is(err, ErrReleased):
	case errors.Is(err, ErrAbsent):
		wait = retryAbsent
	case errors.Is(err, ErrRestart):
		wait = retryReload
	case errors.Is(err, ErrMismatch), errors.Is(err, ErrDriver), errors.Is(err, ErrEngine):
		wait = retryDriver
	default:
		p.backoff = min(max(2*p.backoff, backoffMin), backoffMax)
		wait = p.backoff
	}
	p.notBefore = time.Now().Add(wait)
}

// answered takes a worker's round.
func (p *Process) answered(c *worker, a roundAnswer) (Round, error) {
	if time.Since(c.started) > steadyAfter {
		p.backoff = 0
	}
	if final(a.why) {
		if c.Dismiss(a.why, closePatience) {
			p.forget(c)
		}
		p.retry(a.why)
		return a.round, a.why
	}
	if empty(a) {
		return a.round, p.overdue(c, a.why)
	}
	p.failing = time.Time{}
	return a.round, a.why
}

// empty reports whether the library answered nothing at all in time, not even
// what is there.
func empty(a roundAnswer) bool {
	return errors.Is(a.why, context.DeadlineExceeded) && len(a.round.Devices) == 0
}

// overdue is called when a round yielded nothing within its deadline. A worker
// that does so for hungAfter is replaced.
func (p *Process) overdue(c *worker, err error) error {
	now := time.Now()
	if p.failing.IsZero() {
		p.failing = p.asked
	}
	if now.Sub(p.failing) < p.hungAfter {
		return err
	}
	if !c.Replace() {
		// It sits in the kernel. A second one behind it would only sit there
		// too.
		return fmt.Errorf("%w: worker %d does not die", err, c.pid)
	}
	return p.exited(c, err)
}

// exited turns the end of a worker into the error of a Sample.
func (p *Process) exited(c *worker, cause error) error {
	if !c.end(closePatience) {
		return fmt.Errorf("%w: worker %d does not die", context.DeadlineExceeded, c.pid)
	}
	p.forget(c)
	err := c.Exit()
	if _, unasked := errors.AsType[*WorkerExit](err); !unasked {
		return err
	}
	if cause != nil && errors.Is(cause, ErrProtocol) {
		err = fmt.Errorf("%w (%s)", err, cause)
	}
	if time.Since(c.started) > steadyAfter {
		p.backoff = 0
	}
	p.retry(err)
	return err
}

func (p *Process) forget(c *worker) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.child == c {
		p.child = nil
	}
}

// Release ends the worker, and with it every handle to the hardware, and
// keeps it ended until Attach or, where d is positive, until d has passed. It
// returns once the worker is gone, or with an error where it does not die.
func (p *Process) Release(d time.Duration) error {
	p.mu.Lock()
	p.released, p.until = true, time.Time{}
	if d > 0 {
		p.until = time.Now().Add(d)
	}
	p.eager = true
	p.mu.Unlock()
	return p.dismiss()
}

// Restart ends the worker, which the next Sample replaces, unless a release
// is in force.
func (p *Process) Restart() error {
	p.mu.Lock()
	p.eager = true
	p.mu.Unlock()
	return p.dismiss()
}

// dismiss ends the worker, if one runs, because the caller wants none.
func (p *Process) dismiss() error {
	p.mu.Lock()
	c := p.child
	p.mu.Unlock()
	if c == nil {
		return nil
	}
	if !c.Dismiss(ErrReleased, closePatience) {
		return fmt.Errorf("worker %d does not die: a call of it sits in the kernel", c.pid)
	}
	p.forget(c)
	return nil
}

// expired reports whether the time of a release is over. The caller holds mu.
func (p *Process) expired() bool {
	return p.released && !p.until.IsZero() && !time.Now().Before(p.until)
}

// Attach ends a release. The next Sample starts a worker at once, whatever
// became of the last one.
func (p *Process) Attach() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.released = false
}

// Released reports whether a release is in force and when it ends; the zero
// time stands for no end.
func (p *Process) Released() (bool, time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.released || p.expired() {
		return false, time.Time{}
	}
	return true, p.until
}

// Close ends the worker for good. The error says that it does not die.
func (p *Process) Close() error {
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	return p.dismiss()
}

// WorkerIO returns the pipes over which a worker talks to its parent: standard
// input, and the descriptor 3 that Process gives it. It is for the worker's
// main.
func WorkerIO() (in io.Reader, out io.Writer) {
	return os.Stdin, os.NewFile(3, "rounds")
}

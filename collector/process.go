package collector

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"sync"
	"time"
)

// Back-off and retry times of a worker.
const (
	backoffMin    = 500 * time.Millisecond
	backoffMax    = time.Minute
	retryAbsent   = 30 * time.Second // a driver that is installed later is found then
	retryDriver   = 5 * time.Second
	retryReload   = time.Second
	steadyAfter   = time.Minute // back-off restarts for a worker that lived this long
	hungAfter     = 30 * time.Second
	closePatience = 500 * time.Millisecond // from closing a worker's stdin to SIGKILL
	pipePatience  = time.Second            // from its death to giving up on the ends of its two pipes
)

// killPatience is the time from SIGKILL to giving up on the death of a worker: a busy
// machine takes longer than pipePatience for it.
var killPatience = 3 * time.Second

// WorkerExit is the error of a worker that ended unexpectedly.
type WorkerExit struct {
	// How is the label how of accel_source_worker_exits_total: exit_N,
	// signal_NAME, garbage, hung, memory.
	How string
	// Stderr is the last line of the worker's stderr: the dynamic linker names
	// a missing symbol there.
	Stderr string
}

func (e *WorkerExit) Error() string {
	if e.Stderr == "" {
		return "worker ended: " + e.How
	}
	return fmt.Sprintf("worker ended: %s: %s", e.How, e.Stderr)
}

// Is makes a WorkerExit an ErrCrashed, an ErrProtocol for garbage, or a
// context.DeadlineExceeded for a worker that was replaced because it hung.
func (e *WorkerExit) Is(target error) bool {
	switch e.How {
	case exitGarbage:
		return target == ErrProtocol
	case exitHung:
		return target == context.DeadlineExceeded
	}
	return target == ErrCrashed
}

// backoff is an ErrBackoff with the reason of the end of the worker, which is not
// reported again.
type backoff struct{ end error }

func (e backoff) Error() string { return ErrBackoff.Error() + " after: " + e.end.Error() }

func (e backoff) Is(target error) bool { return target == ErrBackoff || errors.Is(e.end, target) }

// Process is a Source whose hardware is read by a worker process. Crashes, hangs
// and garbage of the worker become errors of Sample; the worker is restarted with
// back-off. Different goroutines may call Sample, Release, Attach and Close.
type Process struct {
	// Budget is the resident memory in bytes above which a worker is replaced,
	// because its library leaks; 0 is no limit. Set it before the first Sample.
	Budget uint64

	name    string
	command func() *exec.Cmd
	emit    func(Event)

	mu       sync.Mutex
	child    *worker // nil when none runs
	released bool
	until    time.Time // end of the release, zero: until Attach
	closed   bool
	eager    bool // start the next worker without back-off

	hungAfter time.Duration

	// Owned by Sample.
	seq       uint64
	notBefore time.Time
	backoff   time.Duration
	lastErr   error     // why no worker runs
	asked     time.Time // when the request was sent
	failing   time.Time // when the worker began to answer time-outs only
	replaced  bool      // a silent worker was replaced, and no device has answered since
}

// NewProcess returns a Source named name. command returns a new, unstarted
// command of the worker; Stdin and ExtraFiles belong to Process, Stderr to the
// caller. emit receives the worker's events; it must not block.
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

// Sample implements Source: it requests one round from the worker. The worker
// gets a slightly earlier deadline than ctx has, so that a partial answer arrives
// in time. The error matches one of the sentinels of a Source or
// context.DeadlineExceeded; it is a *WorkerExit after an unexpected end.
func (p *Process) Sample(ctx context.Context) (Round, error) {
	c, err := p.running()
	if err != nil {
		return Round{}, err
	}
	var late []CallError
	if c.waiting {
		// The answer to an earlier Sample is out of date, except its counts.
		a, err := p.await(ctx, c)
		if err != nil {
			return Round{}, err
		}
		if final(a.why) {
			return p.answered(c, a)
		}
		if !silent(a) {
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

// running returns the worker, and starts one if it is time to.
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
		if _, exited := errors.AsType[*WorkerExit](p.lastErr); exited {
			return nil, backoff{p.lastErr}
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

// retry sets when the next worker may start, by why the last one ended.
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
	case errors.Is(err, ErrMismatch), errors.Is(err, ErrDriver), errors.Is(err, ErrLibrary), errors.Is(err, ErrEngine):
		wait = retryDriver
	default:
		p.backoff = min(max(2*p.backoff, backoffMin), backoffMax)
		wait = p.backoff
	}
	p.notBefore = time.Now().Add(wait)
}

// answered processes a worker's round.
func (p *Process) answered(c *worker, a roundAnswer) (Round, error) {
	if time.Since(c.started) > steadyAfter {
		p.backoff = 0
	}
	if final(a.why) {
		if c.dismiss(a.why, closePatience) {
			p.forget(c)
		}
		p.retry(a.why)
		return a.round, a.why
	}
	if used, known := c.resident(); known && p.Budget > 0 && used > p.Budget {
		c.replace(exitMemory)
		return a.round, p.exited(c, nil)
	}
	switch stuck := len(a.round.Devices) > 0; {
	case !silent(a):
		p.failing, p.replaced = time.Time{}, false
	case !stuck || !p.replaced:
		return a.round, p.overdue(c, a.why)
	}
	return a.round, a.why
}

// silent reports whether the library answered for no device in time. Where every
// device is stuck, it is more likely that the library waits for its own lock
// than that all devices failed at once.
func silent(a roundAnswer) bool {
	if len(a.round.Devices) == 0 {
		return errors.Is(a.why, context.DeadlineExceeded)
	}
	return !slices.ContainsFunc(a.round.Devices, func(d Device) bool { return d.Down != ReasonStuck })
}

// overdue is called when a round is silent at its deadline. After hungAfter of such
// rounds the worker is replaced, once if the next one finds every device stuck too.
func (p *Process) overdue(c *worker, err error) error {
	now := time.Now()
	if p.failing.IsZero() {
		p.failing = p.asked
	}
	if now.Sub(p.failing) < p.hungAfter {
		return err
	}
	p.replaced = true
	if !c.replace(exitHung) {
		// It waits in the kernel. A second worker would wait there too.
		return fmt.Errorf("%w: worker %d does not end", err, c.pid)
	}
	return p.exited(c, err)
}

// exited turns the end of a worker into the error of a Sample.
func (p *Process) exited(c *worker, cause error) error {
	if !c.end(closePatience) {
		return fmt.Errorf("%w: worker %d does not end", context.DeadlineExceeded, c.pid)
	}
	p.forget(c)
	err := c.exit()
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

// Release ends the worker, which closes every handle to the hardware. No worker
// runs until Attach or, if d is positive, until d has passed. Release returns when
// the worker has ended, or an error if it does not end.
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

// Restart ends the worker. The next Sample starts another, except during a
// release.
func (p *Process) Restart() error {
	p.mu.Lock()
	p.eager = true
	p.mu.Unlock()
	return p.dismiss()
}

// dismiss ends the worker, if one runs.
func (p *Process) dismiss() error {
	p.mu.Lock()
	c := p.child
	p.mu.Unlock()
	if c == nil {
		return nil
	}
	if !c.dismiss(ErrReleased, closePatience) {
		return fmt.Errorf("worker %d does not end: a call waits in the kernel", c.pid)
	}
	p.forget(c)
	return nil
}

// expired reports whether a release has ended. The caller has locked mu.
func (p *Process) expired() bool {
	return p.released && !p.until.IsZero() && !time.Now().Before(p.until)
}

// Attach ends a release. The next Sample starts a worker without back-off.
func (p *Process) Attach() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.released = false
}

// Released reports whether the worker is released and until when; the zero time
// means until Attach.
func (p *Process) Released() (bool, time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.released || p.expired() {
		return false, time.Time{}
	}
	return true, p.until
}

// Close ends the worker for good. It returns an error if the worker does not end.
func (p *Process) Close() error {
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	return p.dismiss()
}

// WorkerIO returns the pipes of a worker for Serve: its standard input, and
// descriptor 3, which Process opens.
func WorkerIO() (in io.Reader, out io.Writer) {
	return os.Stdin, os.NewFile(3, "rounds")
}

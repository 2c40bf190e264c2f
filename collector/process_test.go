package collector

import (
	"bufio"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// patience is the maximum time that a test waits for a condition.
const patience = 3 * time.Minute

func init() { killPatience = patience }

// newTestProcess returns a Process. Its nth worker has the nth behaviour; later
// workers have the last one.
func newTestProcess(t *testing.T, behaviours ...string) *Process {
	t.Helper()
	p := NewProcess("w", func() *exec.Cmd {
		b := behaviours[0]
		behaviours = behaviours[min(1, len(behaviours)-1):]
		return testCommand(b)
	}, func(Event) {})
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
	return p
}

func sample(t *testing.T, p *Process) (Round, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	r, err := p.Sample(ctx)
	if ctx.Err() != nil {
		t.Fatalf("Sample took until its deadline: %v", err)
	}
	return r, err
}

// energy samples a good worker and returns the number of its call.
func energy(t *testing.T, p *Process) float64 {
	t.Helper()
	r, err := sample(t, p)
	if err != nil || len(r.Devices) != 1 || len(r.Devices[0].Readings) != 1 {
		t.Fatalf("Sample returned %+v, %v", r, err)
	}
	return r.Devices[0].Readings[0].Value
}

// recovers samples until a Sample succeeds.
func recovers(t *testing.T, p *Process) float64 {
	t.Helper()
	poll(t, "the worker's recovery", func() bool {
		_, err := sample(t, p)
		return err == nil
	})
	return energy(t, p)
}

func poll(t *testing.T, what string, done func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); !done(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("waited %v for %s", patience, what)
		}
	}
}

func gone(pid int) bool {
	return errors.Is(syscall.Kill(pid, 0), syscall.ESRCH)
}

// stop sends SIGSTOP to a process and returns when it is stopped.
func stop(t *testing.T, pid int) {
	t.Helper()
	syscall.Kill(pid, syscall.SIGSTOP)
	poll(t, "the process to stop", func() bool {
		status, _ := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/status")
		return strings.Contains(string(status), "\nState:\tT")
	})
}

func TestProcess(t *testing.T) {
	p := newTestProcess(t, "good")
	if p.PID() != 0 {
		t.Error("a worker before the first Sample")
	}
	if n := energy(t, p); n != 1 {
		t.Errorf("first round is %v", n)
	}
	pid := p.PID()
	if n := energy(t, p); n != 2 || p.PID() != pid {
		t.Errorf("second round is %v, of worker %d, not %d", n, p.PID(), pid)
	}
	worker := p.child
	if err := p.Close(); err != nil || !gone(pid) || p.PID() != 0 {
		t.Errorf("Close: %v, worker gone: %v, PID %d", err, gone(pid), p.PID())
	}
	if !worker.state.Success() {
		t.Errorf("the worker did not end by itself: %v", worker.state)
	}
	if _, err := sample(t, p); err == nil || p.PID() != 0 {
		t.Errorf("Sample after Close: %v, PID %d", err, p.PID())
	}
}

// TestProcessWorkerEnds: the Sample reports how the worker ended. The next Sample
// waits for the back-off before it starts another worker, and recovers.
func TestProcessWorkerEnds(t *testing.T) {
	for behaviour, want := range map[string]struct {
		how  string
		is   error
		text string
	}{
		"linker":      {"exit_127", ErrCrashed, "undefined symbol: nvmlDeviceGetFoo"},
		"exit":        {"exit_3", ErrCrashed, ""},
		"signal:SEGV": {"signal_segv", ErrCrashed, ""},
		"report":      {"signal_segv", ErrCrashed, "SIGSEGV: segmentation violation"},
		"garbage":     {"garbage", ErrProtocol, "no frame begins with"},
		"other-build": {"garbage", ErrProtocol, "another build"},
		"bad-round":   {"garbage", ErrProtocol, "round: 1 values for 0 readings"},
		"unasked":     {"garbage", ErrProtocol, "answer 7 to request 1"},
	} {
		t.Run(behaviour, func(t *testing.T) {
			t.Parallel()
			p := newTestProcess(t, behaviour, "good")
			_, err := sample(t, p)
			var exit *WorkerExit
			if !errors.As(err, &exit) || exit.How != want.how || !errors.Is(err, want.is) || !strings.Contains(err.Error(), want.text) {
				t.Fatalf("Sample: %v; want %s, %v with %q", err, want.how, want.is, want.text)
			}
			if got := map[error]string{ErrCrashed: SourceCrashed, ErrProtocol: SourceGarbage}[want.is]; reason(err) != got {
				t.Errorf("reason is %q, want %q", reason(err), got)
			}
			if p.PID() != 0 {
				t.Errorf("worker %d still counts as running", p.PID())
			}
			p.notBefore = time.Now().Add(time.Hour) // does not pass during the test
			_, err = sample(t, p)
			if !errors.Is(err, ErrBackoff) || errors.As(err, &exit) || !strings.Contains(err.Error(), want.text) {
				t.Errorf("Sample at once after it: %v; want ErrBackoff, no second exit, and %q", err, want.text)
			}
			p.notBefore = time.Now()
			if n := energy(t, p); n != 1 {
				t.Errorf("first round of the new worker is %v", n)
			}
		})
	}
}

// TestProcessFinalAnswers: a worker ends after an error that only a new process
// can resolve. This does not count as a crash.
func TestProcessFinalAnswers(t *testing.T) {
	for arg, want := range sentinels {
		t.Run(arg, func(t *testing.T) {
			t.Parallel()
			p := newTestProcess(t, "error:"+arg, "good")
			_, err := sample(t, p)
			var exit *WorkerExit
			if reason(err) != reason(want) || errors.As(err, &exit) || !strings.HasPrefix(err.Error(), "sample: ") {
				t.Fatalf("Sample: %v", err)
			}
			if !final(want) {
				if p.PID() == 0 {
					t.Error("the worker has ended for an ordinary error")
				}
				return
			}
			if p.PID() != 0 {
				t.Errorf("worker %d is still running", p.PID())
			}
			p.notBefore = time.Now().Add(time.Hour)
			if _, err := sample(t, p); reason(err) != reason(want) || errors.As(err, &exit) {
				t.Errorf("Sample while waiting: %v", err)
			}
			p.notBefore = time.Now()
			if n := energy(t, p); n != 1 || p.backoff != 0 {
				t.Errorf("round %v of the new worker, back-off %v", n, p.backoff)
			}
		})
	}
}

func TestProcessBackoff(t *testing.T) {
	p := newTestProcess(t, "exit")
	var waits []time.Duration
	for range 10 {
		began := time.Now()
		if _, err := sample(t, p); !errors.Is(err, ErrCrashed) {
			t.Fatal(err)
		}
		waits = append(waits, p.backoff)
		if p.notBefore.Before(began.Add(p.backoff)) {
			t.Errorf("the next worker may start %v after this one, before %v", p.notBefore.Sub(began), p.backoff)
		}
		p.notBefore = time.Now()
	}
	if waits[0] != backoffMin || waits[9] != backoffMax || !slices.IsSorted(waits) {
		t.Errorf("back-off is %v", waits)
	}
	// Attach skips the back-off.
	p.notBefore = time.Now().Add(time.Hour)
	if err := p.Release(0); err != nil {
		t.Fatal(err)
	}
	p.Attach()
	if _, err := sample(t, p); !errors.Is(err, ErrCrashed) || errors.Is(err, ErrBackoff) {
		t.Errorf("Sample after Attach: %v", err)
	}
}

// TestProcessHung: each Sample of a hung worker fails at its deadline. The worker
// is replaced after hungAfter of them.
func TestProcessHung(t *testing.T) {
	for _, behaviour := range []string{"silent", "hang", "empty", "stopped"} {
		t.Run(behaviour, func(t *testing.T) {
			t.Parallel()
			p := newTestProcess(t, strings.Replace(behaviour, "stopped", "good", 1), "good")
			if behaviour == "stopped" {
				energy(t, p)
				stop(t, p.PID())
			}
			brief := func() error {
				ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
				defer cancel()
				_, err := p.Sample(ctx)
				return err
			}
			var exit *WorkerExit
			for range 3 {
				if err := brief(); !errors.Is(err, context.DeadlineExceeded) || errors.As(err, &exit) || reason(err) != SourceTimeout {
					t.Fatalf("Sample: %v", err)
				}
			}
			pid := p.PID()
			p.hungAfter = 0
			if err := brief(); !errors.As(err, &exit) || exit.How != exitHung || reason(err) != SourceTimeout || !gone(pid) {
				t.Fatalf("Sample after hungAfter: %v; worker gone: %v", err, gone(pid))
			}
			p.hungAfter = hungAfter
			if n := recovers(t, p); n != 2 {
				t.Errorf("second round of the new worker is %v", n)
			}
		})
	}
}

// TestProcessStuck: a worker that finds every device stuck is replaced after
// hungAfter, and its successor is not. One device that answers is enough to keep it.
func TestProcessStuck(t *testing.T) {
	p := newTestProcess(t, "stuck:stuck", "stuck:stuck")
	if r, err := sample(t, p); len(r.Devices) != 2 || errors.Is(err, ErrCrashed) {
		t.Fatalf("Sample: %+v, %v", r, err)
	}
	pid := p.PID()
	p.hungAfter = 0
	var exit *WorkerExit
	if r, err := sample(t, p); len(r.Devices) != 2 || !errors.As(err, &exit) || exit.How != exitHung || !gone(pid) {
		t.Fatalf("Sample after hungAfter: %+v, %v; worker gone: %v", r, err, gone(pid))
	}
	poll(t, "the next worker", func() bool { r, _ := sample(t, p); return len(r.Devices) == 2 })
	pid = p.PID()
	for range 3 {
		if r, err := sample(t, p); len(r.Devices) != 2 || errors.Is(err, ErrCrashed) || p.PID() != pid {
			t.Fatalf("Sample of the next worker: %+v, %v", r, err)
		}
	}
	p = newTestProcess(t, "stuck:")
	p.hungAfter = 0
	for range 3 {
		if r, err := sample(t, p); len(r.Devices) != 2 || errors.Is(err, ErrCrashed) {
			t.Fatalf("Sample with one device that answers: %+v, %v", r, err)
		}
	}
}

// TestProcessMemory: a worker above its budget of memory is replaced.
func TestProcessMemory(t *testing.T) {
	p := newTestProcess(t, "good")
	if r, err := sample(t, p); err != nil {
		t.Fatalf("Sample: %+v, %v", r, err)
	}
	pid := p.PID()
	p.Budget = 1
	var exit *WorkerExit
	if r, err := sample(t, p); len(r.Devices) != 1 || !errors.As(err, &exit) || exit.How != exitMemory || !gone(pid) {
		t.Fatalf("Sample above the budget: %+v, %v; worker gone: %v", r, err, gone(pid))
	}
	p.Budget = 0
	recovers(t, p)
}

// TestProcessLate: an answer that arrives after its Sample returned is not used
// for the next Sample. Its call counts are added to the next round.
func TestProcessLate(t *testing.T) {
	out, in, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	defer in.Close()
	p := NewProcess("w", func() *exec.Cmd {
		cmd := testCommand("late")
		cmd.Stdout = in
		return cmd
	}, nil)
	defer p.Close()
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		out.SetReadDeadline(time.Now().Add(patience))
		out.Read(make([]byte, 1)) // the worker is in the call
		cancel()
	}()
	if _, err := p.Sample(ctx); !errors.Is(err, context.Canceled) {
		t.Fatalf("Sample: %v", err)
	}
	syscall.Kill(p.PID(), syscall.SIGUSR2)
	r, err := sample(t, p)
	if err != nil || r.Devices[0].Readings[0].Value != 2 || len(r.Calls) != 2 {
		t.Errorf("Sample: %+v, %v; want the second round and the calls of both", r, err)
	}
}

func TestProcessRelease(t *testing.T) {
	for _, behaviour := range []string{"good", "deaf", "hang", "silent", "stopped"} {
		t.Run(behaviour, func(t *testing.T) {
			t.Parallel()
			p := newTestProcess(t, strings.Replace(behaviour, "stopped", "good", 1), "good")
			ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
			defer cancel()
			if _, err := p.Sample(ctx); err != nil && p.PID() == 0 {
				t.Fatal(err)
			}
			pid := p.PID()
			if behaviour == "stopped" {
				stop(t, pid)
			}
			if err := p.Release(0); err != nil || !gone(pid) || p.PID() != 0 {
				t.Fatalf("Release: %v; worker gone: %v, PID %d", err, gone(pid), p.PID())
			}
			if _, err := sample(t, p); !errors.Is(err, ErrReleased) || p.PID() != 0 {
				t.Errorf("Sample while released: %v", err)
			}
			if released, until := p.Released(); !released || !until.IsZero() {
				t.Errorf("Released is %v, %v", released, until)
			}
			p.Attach()
			if released, _ := p.Released(); released {
				t.Error("released after Attach")
			}
			if n := energy(t, p); n != 1 {
				t.Errorf("first round of the new worker is %v", n)
			}
		})
	}
}

func TestProcessReleaseForATime(t *testing.T) {
	p := newTestProcess(t, "good")
	energy(t, p)
	before := time.Now()
	if err := p.Release(time.Hour); err != nil {
		t.Fatal(err)
	}
	if released, until := p.Released(); !released || until.Before(before.Add(time.Hour)) {
		t.Errorf("Released is %v, %v", released, until)
	}
	if err := p.Release(time.Nanosecond); err != nil {
		t.Fatal(err)
	}
	if released, until := p.Released(); released || !until.IsZero() {
		t.Errorf("Released is %v, %v once the time has passed", released, until)
	}
	if n := energy(t, p); n != 1 {
		t.Errorf("first round of the new worker is %v", n)
	}
}

// TestProcessReleaseDuringSample: a Sample in flight returns when the worker is
// released or closed.
func TestProcessReleaseDuringSample(t *testing.T) {
	for name, end := range map[string]func(*Process) error{
		"release": func(p *Process) error { return p.Release(0) },
		"close":   (*Process).Close,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newTestProcess(t, "hang")
			answer := make(chan error, 1)
			go func() {
				_, err := p.Sample(t.Context())
				answer <- err
			}()
			poll(t, "the worker", func() bool { return p.PID() != 0 })
			if err := end(p); err != nil {
				t.Fatal(err)
			}
			if err := <-answer; !errors.Is(err, ErrReleased) {
				t.Errorf("Sample: %v", err)
			}
		})
	}
}

// TestProcessNoOrphan: a worker ends when its parent is killed.
func TestProcessNoOrphan(t *testing.T) {
	for name, c := range map[string]struct {
		worker string
		stop   bool
	}{
		"idle": {"good", false}, "stopped": {"good", true}, "in a call": {"hang", false}, "stopped in a call": {"hang", true}, "deaf": {"deaf", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			parent := testCommand("parent:" + c.worker)
			out, in, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			defer out.Close()
			parent.Stdout = in
			err = parent.Start()
			in.Close()
			if err != nil {
				t.Fatal(err)
			}
			out.SetReadDeadline(time.Now().Add(patience))
			r := bufio.NewReader(out)
			line, err := r.ReadString('\n') // the worker's PID, from its first call
			pid, _ := strconv.Atoi(strings.TrimSpace(line))
			if err != nil || pid == 0 {
				t.Fatalf("no PID from the worker: %q, %v", line, err)
			}
			if c.stop {
				stop(t, pid)
			}
			parent.Process.Kill()
			parent.Wait()
			// Parent and worker have the pipe open; it ends when both have ended.
			if _, err := r.ReadByte(); err != io.EOF {
				t.Errorf("worker %d is still there: %v", pid, err)
				syscall.Kill(pid, syscall.SIGKILL)
			}
		})
	}
}

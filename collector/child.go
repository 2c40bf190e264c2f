package collector

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"time"
)

const (
	exitGarbage = "garbage"
	exitHung    = "hung"
	exitMemory  = "memory"
)

// child is a process that this one starts. It reads requests from its standard
// input, which ends with the parent, and answers on descriptor 3. Goroutines may
// share it.
type child struct {
	pid     int
	started time.Time
	stdin   io.WriteCloser
	done    chan struct{} // closed when the process has ended and its output is read
	signal  func(os.Signal) error
	stderr  *tail

	mu    sync.Mutex
	how   string // of the end, where the parent decides it
	asked error  // why the parent ends it, nil if it does not
	state *os.ProcessState
}

// startChild starts cmd and does not wait for output. Stdin and ExtraFiles of cmd
// belong to child, Stderr to the caller. read consumes the answers until the end
// of its reader. If it returns another error than the end, the process is killed
// with exitGarbage.
func startChild(cmd *exec.Cmd, read func(io.Reader) error) (*child, error) {
	answers, write, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	cmd.ExtraFiles = []*os.File{write}
	stdin, err := cmd.StdinPipe()
	if err != nil {
		answers.Close()
		write.Close()
		return nil, err
	}
	c := &child{stdin: stdin, done: make(chan struct{}), stderr: &tail{}}
	if cmd.Stderr == nil {
		cmd.Stderr = c.stderr
	} else {
		cmd.Stderr = io.MultiWriter(c.stderr, cmd.Stderr)
	}
	cmd.WaitDelay = pipePatience // a grandchild may keep stderr open
	dieWithParent(cmd)

	begun := make(chan error)
	go func() {
		// The kernel sends the parent-death signal when the thread that
		// started the child ends, so this thread lives as long as the child.
		runtime.LockOSThread()
		err := cmd.Start()
		write.Close()
		if err == nil {
			c.pid, c.started, c.signal = cmd.Process.Pid, time.Now(), cmd.Process.Signal
		}
		begun <- err
		if err != nil {
			answers.Close()
			return
		}
		pipe := make(chan struct{})
		go func() {
			defer close(pipe)
			c.listen(answers, read)
		}()
		cmd.Wait() // the outcome is in ProcessState
		answers.SetReadDeadline(time.Now().Add(pipePatience))
		<-pipe
		answers.Close()
		c.mu.Lock()
		c.state = cmd.ProcessState
		c.mu.Unlock()
		close(c.done)
	}()
	if err := <-begun; err != nil {
		return nil, err
	}
	return c, nil
}

// listen reads the answers of the process and kills it after an invalid one.
func (c *child) listen(r io.Reader, read func(io.Reader) error) {
	err := read(r)
	switch {
	case err == nil, errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, os.ErrDeadlineExceeded):
	default:
		fmt.Fprintf(c.stderr, "%s\n", err)
		c.condemn(exitGarbage)
		c.kill()
	}
}

// condemn sets how the end of the process is reported, unless it is set already.
func (c *child) condemn(how string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.how == "" {
		c.how = how
	}
}

// dismiss ends the process for the reason why, so that its end is not a crash. It
// closes its standard input and, after patience, kills it. It reports whether the
// process has ended.
func (c *child) dismiss(why error, patience time.Duration) bool {
	c.mu.Lock()
	if c.asked == nil {
		c.asked = why
	}
	c.mu.Unlock()
	return c.end(patience)
}

// replace kills a process for the reason how. It reports whether the process has
// ended: a process that waits in the kernel does not.
func (c *child) replace(how string) bool {
	c.condemn(how)
	return c.end(0)
}

// resident returns the resident memory of the process in bytes (proc_pid_statm(5)),
// and false where procfs does not show it.
func (c *child) resident() (uint64, bool) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", c.pid))
	if err != nil {
		return 0, false
	}
	var total, pages uint64
	n, _ := fmt.Sscan(string(text), &total, &pages)
	return pages * uint64(os.Getpagesize()), n == 2
}

// end closes the standard input, then kills the process. It reports whether the
// process has ended. It may be called again and concurrently.
func (c *child) end(patience time.Duration) bool {
	c.stdin.Close()
	c.mu.Lock()
	if c.how != "" {
		patience = 0
	}
	c.mu.Unlock()
	if wait(c.done, patience) {
		return true
	}
	c.condemn(exitHung) // before the signal, which would count as a crash
	c.kill()
	return wait(c.done, killPatience)
}

// kill sends SIGKILL. done shows the result, so an error is of no interest.
func (c *child) kill() { _ = c.signal(syscall.SIGKILL) }

// wait reports whether done answers, or is closed, within d.
func wait[T any](done <-chan T, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-done:
		return true
	case <-t.C:
		return false
	}
}

// exit returns why the process ended: the error given to dismiss, else a
// *WorkerExit. Call it after done is closed.
func (c *child) exit() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.asked != nil {
		return c.asked
	}
	e := &WorkerExit{How: c.how, Stderr: c.stderr.last()}
	if e.How == "" {
		e.How = howEnded(c.state, e.Stderr)
	}
	return e
}

// howEnded returns WorkerExit.How. The Go runtime turns a fault of the library
// into a report and exit status 2; the report's first line names the signal.
func howEnded(s *os.ProcessState, report string) string {
	if s == nil {
		return "unknown" // another goroutine has waited for it
	}
	if name, ok := strings.CutPrefix(report, "SIG"); ok && s.ExitCode() == 2 {
		name, _, _ = strings.Cut(name, ":")
		// The library can write such a line: only a signal name becomes a label.
		if len(name) <= 5 && strings.Trim(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZ") == "" {
			return "signal_" + strings.ToLower(name)
		}
	}
	if ws, ok := s.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
		return "signal_" + signalName(ws.Signal())
	}
	return fmt.Sprintf("exit_%d", s.ExitCode())
}

func signalName(s syscall.Signal) string {
	names := map[syscall.Signal]string{
		syscall.SIGABRT: "abrt", syscall.SIGBUS: "bus", syscall.SIGFPE: "fpe", syscall.SIGILL: "ill",
		syscall.SIGKILL: "kill", syscall.SIGSEGV: "segv", syscall.SIGTERM: "term", syscall.SIGINT: "int",
		syscall.SIGHUP: "hup", syscall.SIGPIPE: "pipe", syscall.SIGQUIT: "quit", syscall.SIGTRAP: "trap",
	}
	if n, ok := names[s]; ok {
		return n
	}
	return fmt.Sprint(int(s))
}

// tail keeps one line of a worker's stderr: the first line of a crash report of
// the Go runtime, else the last line.
type tail struct {
	mu    sync.Mutex
	line  []byte // the line being written
	final string // the last whole line
	fatal string // the first line of a crash report
}

// maxLine is the maximum length of a line in bytes; the rest is dropped.
const maxLine = 1 << 10

// Write implements io.Writer; it never fails.
func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, c := range p {
		switch {
		case c == '\n':
			t.endLine()
		case len(t.line) < maxLine:
			t.line = append(t.line, c)
		}
	}
	return len(p), nil
}

func (t *tail) endLine() {
	if l := clip(string(t.line)); l != "" {
		t.final = l
		if t.fatal == "" && crashReport(l) {
			t.fatal = l
		}
	}
	t.line = t.line[:0]
}

func crashReport(line string) bool {
	return strings.HasPrefix(line, "SIG") || strings.HasPrefix(line, "panic: ") || strings.HasPrefix(line, "fatal error: ")
}

func (t *tail) last() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.endLine()
	if t.fatal != "" {
		return t.fatal
	}
	return t.final
}

func clip(s string) string {
	s = strings.TrimSpace(s)
	if len(s) > 300 {
		s = s[:300]
	}
	return strings.ToValidUTF8(s, "?")
}

// dieWithParent makes the kernel kill the worker when the parent ends. A worker
// also ends when its standard input does, unless it is stopped.
func dieWithParent(cmd *exec.Cmd) {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Pdeathsig = syscall.SIGKILL
}

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
)

// child is one running worker.
type child struct {
	pid     int
	started time.Time
	stdin   io.WriteCloser
	answers chan roundAnswer // capacity 1: one request is in flight at a time
	done    chan struct{}    // closed when the process is gone and its pipe read out
	waiting bool             // a request is unanswered; owned by Sample
	signal  func(os.Signal) error
	stderr  *tail

	mu    sync.Mutex
	how   string // set before the end where the parent decides it
	asked error  // why the parent told it to end; nil: it was to go on
	state *os.ProcessState
}

type roundAnswer struct {
	seq   uint64
	round Round
	why   error
}

// startChild starts a worker. It does not wait for its first word.
func startChild(cmd *exec.Cmd, name string, emit func(Event)) (*child, error) {
	read, write, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	cmd.ExtraFiles = []*os.File{write}
	stdin, err := cmd.StdinPipe()
	if err != nil {
		read.Close()
		write.Close()
		return nil, err
	}
	c := &child{
		stdin:   stdin,
		answers: make(chan roundAnswer, 1),
		done:    make(chan struct{}),
		stderr:  &tail{},
	}
	if cmd.Stderr == nil {
		cmd.Stderr = c.stderr
	} else {
		cmd.Stderr = io.MultiWriter(c.stderr, cmd.Stderr)
	}
	cmd.WaitDelay = pipePatience // a grandchild must not hold stderr open
	dieWithParent(cmd)

	begun := make(chan error)
	go func() {
		// The kernel's parent-death signal follows the thread that started
		// the child, so this thread must live as long as the child.
		runtime.LockOSThread()
		err := cmd.Start()
		write.Close()
		if err == nil {
			c.pid, c.started, c.signal = cmd.Process.Pid, time.Now(), cmd.Process.Signal
		}
		begun <- err
		if err != nil {
			read.Close()
			return
		}
		pipe := make(chan struct{})
		go func() {
			defer close(pipe)
			c.read(read, name, emit)
		}()
		cmd.Wait() // the outcome is in ProcessState
		read.SetReadDeadline(time.Now().Add(pipePatience))
		<-pipe
		read.Close()
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

// read takes the worker's frames until its pipe ends. A frame that makes no
// sense condemns the worker.
func (c *child) read(r io.Reader, name string, emit func(Event)) {
	err := c.frames(r, name, emit)
	switch {
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, os.ErrDeadlineExceeded):
	default:
		fmt.Fprintf(c.stderr, "%s\n", err)
		c.condemn(exitGarbage)
		c.kill()
	}
}

func (c *child) frames(r io.Reader, name string, emit func(Event)) error {
	var dec roundDecoder
	var buf []byte
	greeted := false
	for {
		kind, payload, err := readFrame(r, buf)
		if err != nil {
			return err
		}
		buf = payload
		switch {
		case kind == frameHello && !greeted:
			d := decoder{b: payload}
			who, table := d.string(), d.uint64()
			if d.end() != nil || who != name || table != fingerprint() {
				return fmt.Errorf("%w: the worker is another build: it calls itself %.40q, its metric table %x", ErrProtocol, who, table)
			}
			greeted = true
		case kind == frameRound && greeted:
			seq, round, why, err := dec.decode(payload)
			if err != nil {
				return fmt.Errorf("%w: round: %w", ErrProtocol, err)
			}
			select {
			case c.answers <- roundAnswer{seq, round, why}:
			default:
				return fmt.Errorf("%w: round %d was not asked for", ErrProtocol, seq)
			}
		case kind == frameEvent && greeted:
			e, err := decodeEvent(payload)
			if err != nil {
				return fmt.Errorf("%w: event: %w", ErrProtocol, err)
			}
			e.Source = name
			emit(e)
		default:
			return fmt.Errorf("%w: frame of kind %d", ErrProtocol, kind)
		}
	}
}

// condemn sets what the end of the worker will be called, unless that has
// been set before.
func (c *child) condemn(how string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.how == "" {
		c.how = how
	}
}

// dismiss ends the worker because of why, so that its end is no crash. It
// reports whether the worker is gone.
func (c *child) dismiss(why error) bool {
	c.mu.Lock()
	if c.asked == nil {
		c.asked = why
	}
	c.mu.Unlock()
	return c.end()
}

// end closes the worker's stdin, then kills it. It reports whether the worker
// is gone. It may be called again and at the same time.
func (c *child) end() bool {
	c.stdin.Close()
	patience := closePatience
	c.mu.Lock()
	if c.how != "" {
		patience = 0
	}
	c.mu.Unlock()
	if wait(c.done, patience) {
		return true
	}
	c.condemn(exitHung) // or this very signal would pass for the kernel's
	c.kill()
	return wait(c.done, killPatience)
}

// kill has the kernel end the worker. Whether that ends it shows in done, also
// where the signal found no process any more.
func (c *child) kill() { _ = c.signal(syscall.SIGKILL) }

func wait(done <-chan struct{}, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-done:
		return true
	case <-t.C:
		return false
	}
}

// exit says how the worker ended: what it was asked for, else a WorkerExit. It
// must be called after done.
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

// howEnded names the end of a process. The Go runtime turns a fault of the
// library into a report and exit status 2; the report's first line names the
// signal.
func howEnded(s *os.ProcessState, report string) string {
	if s == nil {
		return "unknown" // someone else has waited for it
	}
	if name, ok := strings.CutPrefix(report, "SIG"); ok && s.ExitCode() == 2 {
		name, _, _ = strings.Cut(name, ":")
		// The line is the library's too: only a signal's name becomes a label.
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

// tail keeps what tells most of a worker's stderr: the line by which the Go
// runtime begins its report of a crash, else the last line.
type tail struct {
	mu    sync.Mutex
	line  []byte // the line being written
	final string // the last whole line
	fatal string // the first line of a crash report
}

// maxLine bounds what is kept of one line; the rest of it is dropped.
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

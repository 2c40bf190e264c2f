// Package stack starts the programs of a monitoring stack on loopback: the
// exporter, Prometheus, Alertmanager, Grafana. It is for plays and demonstrations.
package stack

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"sync"
	"syscall"
	"time"
)

// Patience bounds every wait for a program, which takes longer where the
// machine is busy.
const Patience = 2 * time.Minute

// Process is a running program, in its own process group.
type Process struct {
	cmd   *exec.Cmd
	log   *os.File
	out   *listener
	ended chan struct{}
	err   error // valid once ended is closed
}

// Start runs a program whose output goes to the file log.
func Start(log string, env []string, program string, args ...string) (*Process, error) {
	file, err := os.OpenFile(log, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		return nil, err
	}
	p := &Process{cmd: exec.Command(program, args...), log: file, out: &listener{to: file, found: make(chan struct{})}, ended: make(chan struct{})}
	p.cmd.Env = append(os.Environ(), env...)
	p.cmd.Stdout, p.cmd.Stderr = p.out, p.out
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	p.cmd.WaitDelay = time.Second // a child of it may keep the pipe open
	if err := p.cmd.Start(); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	go func() {
		p.err = p.cmd.Wait()
		close(p.ended)
	}()
	return p, nil
}

// Address waits until the program logs its listen address.
func (p *Process) Address(ctx context.Context) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, Patience)
	defer cancel()
	select {
	case <-p.out.found:
		return p.out.address, nil
	case <-p.ended:
		return "", fmt.Errorf("%s ended (%w): see %s", p.cmd.Path, p.err, p.log.Name())
	case <-ctx.Done():
		return "", fmt.Errorf("%s does not log its listen address (%w): see %s", p.cmd.Path, ctx.Err(), p.log.Name())
	}
}

// Ended is closed when the program has ended.
func (p *Process) Ended() <-chan struct{} { return p.ended }

// Log is the file with the program's output.
func (p *Process) Log() string { return p.log.Name() }

// Stop ends the program and all that it started.
func (p *Process) Stop() error {
	group := -p.cmd.Process.Pid
	syscall.Kill(p.cmd.Process.Pid, syscall.SIGTERM)
	select {
	case <-p.ended:
	case <-time.After(10 * time.Second):
	}
	syscall.Kill(group, syscall.SIGKILL)
	<-p.ended
	return p.log.Close()
}

var listening = regexp.MustCompile(`msg="Listening on" address=(\S+)`)

// listener copies a program's output and looks for where it listens.
type listener struct {
	to      io.Writer
	mu      sync.Mutex
	rest    []byte
	address string // valid once found is closed
	found   chan struct{}
}

// maxLine is how much of an unfinished line is kept.
const maxLine = 64 << 10

func (l *listener) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.address == "" {
		l.rest = append(l.rest, b...)
		if m := listening.FindSubmatch(l.rest); m != nil && bytes.IndexByte(l.rest, '\n') >= 0 {
			l.address, l.rest = string(m[1]), nil
			close(l.found)
		} else if len(l.rest) > maxLine {
			l.rest = l.rest[len(l.rest)-maxLine/2:]
		}
	}
	return l.to.Write(b)
}

package kubelet

import (
	"context"
	"net"
	"os"
	"sync"
	"syscall"

	"google.golang.org/grpc/test/bufconn"
)

// Pipe is a socket in memory, for tests in virtual time: unlike on a real
// socket, reads and writes block durably in the test's bubble.
type Pipe struct {
	// File, if given, stands for the file of the socket.
	File     string
	mu       sync.Mutex
	listener *pipeListener // nil without a listener
}

type pipeListener struct {
	*bufconn.Listener
	pipe *Pipe
}

// Create replaces the file, as each start of a kubelet does.
func (p *Pipe) Create() error {
	if p.File == "" {
		return nil
	}
	if err := os.WriteFile(p.File+".new", nil, 0o600); err != nil {
		return err
	}
	return os.Rename(p.File+".new", p.File)
}

// Listen is an argument for ServeFunc. It replaces the file.
func (p *Pipe) Listen() (net.Listener, error) {
	if err := p.Create(); err != nil {
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.listener = &pipeListener{bufconn.Listen(64 << 10), p}
	return p.listener, nil
}

// Dial connects to the listener, as a dialer of unix sockets does.
func (p *Pipe) Dial(ctx context.Context, socket string) (net.Conn, error) {
	p.mu.Lock()
	l := p.listener
	p.mu.Unlock()
	if l != nil {
		conn, err := l.DialContext(ctx)
		if err == nil || ctx.Err() != nil {
			return conn, err
		}
	}
	return nil, &net.OpError{Op: "dial", Net: "unix", Addr: pipeAddr(socket), Err: syscall.ECONNREFUSED}
}

// Close ends listening. Connections remain.
func (l *pipeListener) Close() error {
	l.pipe.mu.Lock()
	if l.pipe.listener == l {
		l.pipe.listener = nil
	}
	l.pipe.mu.Unlock()
	return l.Listener.Close()
}

type pipeAddr string

func (pipeAddr) Network() string  { return "unix" }
func (a pipeAddr) String() string { return string(a) }

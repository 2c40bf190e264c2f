package kubelet

import (
	"context"
	"net"
	"sync"
	"syscall"
)

// Pipe is a socket in memory, for tests in virtual time: reads and writes on
// it block as a test's bubble needs it, which those on a real socket do not.
type Pipe struct {
	mu       sync.Mutex
	listener *pipeListener // nil where nobody listens
}

type pipeListener struct {
	pipe  *Pipe
	conns chan net.Conn
	done  chan struct{}
	once  sync.Once
}

// Listen is for ServeFunc.
func (p *Pipe) Listen() (net.Listener, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.listener = &pipeListener{pipe: p, conns: make(chan net.Conn), done: make(chan struct{})}
	return p.listener, nil
}

// Dial connects to whoever listens, as a dialer of unix sockets does.
func (p *Pipe) Dial(ctx context.Context, socket string) (net.Conn, error) {
	p.mu.Lock()
	l := p.listener
	p.mu.Unlock()
	refused := &net.OpError{Op: "dial", Net: "unix", Addr: pipeAddr(socket), Err: syscall.ECONNREFUSED}
	if l == nil {
		return nil, refused
	}
	here, there := net.Pipe()
	select {
	case l.conns <- there:
		return here, nil
	case <-l.done:
		return nil, refused
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (l *pipeListener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.done:
		return nil, net.ErrClosed
	}
}

func (l *pipeListener) Close() error {
	l.once.Do(func() {
		close(l.done)
		l.pipe.mu.Lock()
		defer l.pipe.mu.Unlock()
		if l.pipe.listener == l {
			l.pipe.listener = nil
		}
	})
	return nil
}

func (l *pipeListener) Addr() net.Addr { return pipeAddr("pipe") }

type pipeAddr string

func (pipeAddr) Network() string  { return "unix" }
func (a pipeAddr) String() string { return string(a) }

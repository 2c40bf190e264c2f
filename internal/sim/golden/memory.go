package golden

import (
	"bytes"
	"context"
	"net"
	"sync"
	"time"
	"unsafe"
)

// The parts of a server that tests need in memory, so that they can run in a
// synctest bubble: its listener and its log.

var origin = time.Now()

// SetClock returns what time.Now would return instead of t if the clock had been set:
// another time of day, and the same monotonic reading. A synctest bubble's time.Now has
// no monotonic reading, so such a t gets one.
func SetClock(t time.Time, by time.Duration) time.Time {
	if t == t.Round(0) {
		t = origin.Add(t.Sub(origin))
	}
	t = t.Add(by)
	(*struct {
		wall uint64
		mono int64
	})(unsafe.Pointer(&t)).mono -= int64(by)
	return t
}

// Pipes is a listener in memory.
type Pipes struct {
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

// NewPipes returns a listener that Dial connects to.
func NewPipes() *Pipes { return &Pipes{conns: make(chan net.Conn), closed: make(chan struct{})} }

// Accept implements net.Listener.
func (p *Pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener.
func (p *Pipes) Close() error {
	p.once.Do(func() { close(p.closed) })
	return nil
}

// Addr implements net.Listener.
func (p *Pipes) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 6443} }

// Dial connects to the listener, whatever the address.
func (p *Pipes) Dial(ctx context.Context, _, _ string) (net.Conn, error) {
	mine, theirs := net.Pipe()
	select {
	case p.conns <- theirs:
		return mine, nil
	case <-p.closed:
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Buffer is a log that tests read while it is written.
type Buffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *Buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *Buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

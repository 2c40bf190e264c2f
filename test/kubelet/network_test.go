package kubelet_test

import (
	"cmp"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"os/exec"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"
)

// nodeIP is on the loopback device; the kubelet takes no loopback address.
const nodeIP = "10.99.0.3"

// network is a network namespace with a loopback device and nothing else. It
// is there for as long as it is open or has a process in it.
type network struct{ ns *os.File }

// newNetwork makes a network. It changes nothing of this process's.
func newNetwork() (w *network, err error) {
	onThread(func() {
		if err = unix.Unshare(unix.CLONE_NEWNET); err != nil {
			err = fmt.Errorf("a network namespace: %w", err)
			return
		}
		if err = loopback(); err != nil {
			return
		}
		var ns *os.File
		if ns, err = os.Open("/proc/thread-self/ns/net"); err == nil {
			w = &network{ns}
		}
	})
	return w, err
}

func (w *network) Close() error { return w.ns.Close() }

// onThread runs do on a separate thread, which ends with it and so may be
// spoiled.
func onThread(do func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread()
		do()
	}()
	<-done
}

// within runs do on a thread in the network.
func (w *network) within(do func() error) (err error) {
	onThread(func() {
		err = unix.Setns(int(w.ns.Fd()), unix.CLONE_NEWNET)
		if err == nil {
			err = do()
		}
	})
	return err
}

// listen listens on every address of the network.
func (w *network) listen(port int) (l net.Listener, err error) {
	err = w.within(func() error {
		l, err = net.Listen("tcp4", fmt.Sprintf("0.0.0.0:%d", port))
		return err
	})
	return l, err
}

// serve answers HTTP on a port of the network, by TLS where it has a certificate,
// until stop is called.
func (w *network) serve(port int, handler http.Handler, certificates ...tls.Certificate) (stop func(), err error) {
	listener, err := w.listen(port)
	if err != nil {
		return nil, err
	}
	if len(certificates) > 0 {
		listener = tls.NewListener(listener, &tls.Config{Certificates: certificates})
	}
	server := &http.Server{Handler: handler, ErrorLog: log.New(io.Discard, "", 0)}
	served := make(chan struct{})
	go func() { defer close(served); server.Serve(listener) }()
	return func() { server.Close(); <-served }, nil
}

// dial connects to an address of the network, given by number.
func (w *network) dial(ctx context.Context, network, address string) (conn net.Conn, err error) {
	err = w.within(func() error {
		conn, err = new(net.Dialer).DialContext(ctx, network, address)
		return err
	})
	return conn, err
}

// process is one life of a program.
type process struct {
	cmd  *exec.Cmd
	done chan struct{} // closed when it has ended
}

// start starts a command in the network, as the first of a process group. It
// ends when this process does, however that ends.
func (w *network) start(cmd *exec.Cmd) (*process, error) {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = new(syscall.SysProcAttr)
	}
	cmd.SysProcAttr.Pdeathsig, cmd.SysProcAttr.Setpgid = syscall.SIGKILL, true
	p := &process{cmd, make(chan struct{})}
	started := make(chan error, 1)
	go func() {
		defer close(p.done)
		// The death signal comes when the thread that started the process ends,
		// so that thread is kept until then.
		err := w.within(func() error {
			if err := cmd.Start(); err != nil {
				return err
			}
			started <- nil
			cmd.Wait()
			return nil
		})
		if err != nil {
			started <- err
		}
	}()
	if err := <-started; err != nil {
		return nil, err
	}
	return p, nil
}

func (p *process) signal(sig syscall.Signal) { syscall.Kill(-p.cmd.Process.Pid, sig) }

// ended reports whether the process has ended.
func (p *process) ended() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

// kill ends the process as a crash would.
func (p *process) kill() {
	if !p.ended() {
		p.signal(syscall.SIGKILL)
	}
	<-p.done
}

// loopback brings up the loopback device of this thread's network, with a
// second address.
func loopback() error {
	s, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("socket: %w", err)
	}
	defer unix.Close(s)
	for _, c := range []struct {
		dev string
		req uint
		set func(*unix.Ifreq) error
	}{
		{"lo", unix.SIOCSIFFLAGS, func(r *unix.Ifreq) error { r.SetUint16(unix.IFF_UP); return nil }},
		{"lo:1", unix.SIOCSIFADDR, func(r *unix.Ifreq) error { return r.SetInet4Addr(net.ParseIP(nodeIP).To4()) }},
	} {
		r, err := unix.NewIfreq(c.dev)
		if err != nil {
			return err
		}
		if err := cmp.Or(c.set(r), unix.IoctlIfreq(s, c.req, r)); err != nil {
			return fmt.Errorf("set up %s: %w", c.dev, err)
		}
	}
	return nil
}

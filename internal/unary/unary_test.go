package unary

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

const patience = time.Minute

// socket is a place to listen at, and a Conn of whoever does.
func socket(t *testing.T) (net.Listener, *Conn, *atomic.Int32) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "s")
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	dials := new(atomic.Int32)
	c := New(func(ctx context.Context) (net.Conn, error) {
		dials.Add(1)
		return new(net.Dialer).DialContext(ctx, "unix", path)
	})
	t.Cleanup(func() { l.Close(); c.Close() })
	return l, c, dials
}

// serve has gRPC's own server answer every call by do.
func serve(t *testing.T, l net.Listener, do func(grpc.ServerStream, *wrapperspb.BytesValue) error) *grpc.Server {
	t.Helper()
	s := grpc.NewServer(grpc.UnknownServiceHandler(func(_ any, stream grpc.ServerStream) error {
		var in wrapperspb.BytesValue
		if err := stream.RecvMsg(&in); err != nil {
			return err
		}
		return do(stream, &in)
	}))
	done := make(chan struct{})
	go func() { defer close(done); s.Serve(l) }()
	t.Cleanup(func() { s.Stop(); <-done })
	return s
}

func message(t *testing.T, value []byte) []byte {
	t.Helper()
	m, err := proto.Marshal(wrapperspb.Bytes(value))
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func (c *Conn) call(t *testing.T, in []byte) ([]byte, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	return c.Call(ctx, "/test.Service/Method", in, 1<<20)
}

// Against gRPC's own server.
func TestCall(t *testing.T) {
	large := bytes.Repeat([]byte("x"), 200<<10)
	echo := func(s grpc.ServerStream, in *wrapperspb.BytesValue) error { return s.SendMsg(in) }
	fails := func(code codes.Code, text string) func(grpc.ServerStream, *wrapperspb.BytesValue) error {
		return func(grpc.ServerStream, *wrapperspb.BytesValue) error { return status.Error(code, text) }
	}
	for _, c := range []struct {
		name   string
		in     []byte
		do     func(grpc.ServerStream, *wrapperspb.BytesValue) error
		status *Status // nil for none
		err    error
	}{
		{name: "an answer", in: []byte("hello"), do: echo},
		{name: "an empty message"},
		{name: "many frames", in: large, do: echo},
		{name: "refused", do: fails(codes.PermissionDenied, "no"), status: &Status{PermissionDenied, "no"}},
		{name: "text of any kind", do: fails(codes.Internal, "100 % \"ü\"\n"), status: &Status{Internal, "100 % \"ü\"\n"}},
		{name: "a long text", do: fails(codes.Internal, strings.Repeat("y", 10_000)), status: &Status{Internal, strings.Repeat("y", maxMessage)}},
		{name: "a code without a name here", do: fails(codes.DataLoss, ""), status: &Status{15, ""}},
		{name: "a message, then an error", in: []byte("a"), do: func(s grpc.ServerStream, in *wrapperspb.BytesValue) error {
			if err := s.SendMsg(in); err != nil {
				return err
			}
			return status.Error(codes.Unavailable, "gone")
		}, status: &Status{Unavailable, "gone"}},
		{name: "no message", do: func(grpc.ServerStream, *wrapperspb.BytesValue) error { return nil }, err: ErrProtocol},
		{name: "two messages", do: func(s grpc.ServerStream, in *wrapperspb.BytesValue) error {
			return errors.Join(s.SendMsg(in), s.SendMsg(in))
		}, err: ErrProtocol},
		{name: "too large", do: func(s grpc.ServerStream, _ *wrapperspb.BytesValue) error {
			return s.SendMsg(wrapperspb.Bytes(make([]byte, 1<<20)))
		}, err: ErrTooLarge},
	} {
		t.Run(c.name, func(t *testing.T) {
			l, conn, dials := socket(t)
			if c.do == nil {
				c.do = echo
			}
			serve(t, l, c.do)
			for range 3 {
				got, err := conn.call(t, message(t, c.in))
				var s *Status
				switch {
				case c.status != nil:
					if !errors.As(err, &s) || *s != *c.status {
						t.Errorf("%v, want %v", err, c.status)
					}
				case !errors.Is(err, c.err):
					t.Errorf("%v, want %v", err, c.err)
				case err == nil && !bytes.Equal(got, message(t, c.in)):
					t.Errorf("%d bytes, want %d", len(got), len(c.in))
				}
			}
			if n := dials.Load(); n != 1 {
				t.Errorf("%d connections", n)
			}
		})
	}
}

// TestTimeout: the server learns how much time there is, and the connection
// outlives a call that had too little.
func TestTimeout(t *testing.T) {
	l, c, dials := socket(t)
	told := make(chan bool, 2)
	serve(t, l, func(s grpc.ServerStream, in *wrapperspb.BytesValue) error {
		if len(in.GetValue()) > 0 {
			return s.SendMsg(in)
		}
		_, ok := s.Context().Deadline()
		told <- ok
		<-s.Context().Done()
		return status.FromContextError(s.Context().Err()).Err()
	})
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := c.Call(ctx, "/s/m", nil, 100); !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
	select {
	case ok := <-told:
		if !ok {
			t.Error("the server was not told of the deadline")
		}
	case <-time.After(patience):
		t.Fatal("the server was not asked")
	}
	ctx, cancel = context.WithCancel(t.Context())
	go func() { <-told; cancel() }()
	if _, err := c.Call(ctx, "/s/m", nil, 100); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if _, err := c.call(t, message(t, []byte("a"))); err != nil || dials.Load() != 1 {
		t.Error(err, dials.Load())
	}
}

// TestRestart: another server at the same place is found by the next call.
func TestRestart(t *testing.T) {
	l, c, dials := socket(t)
	echo := func(s grpc.ServerStream, in *wrapperspb.BytesValue) error { return s.SendMsg(in) }
	s := serve(t, l, echo)
	if _, err := c.call(t, nil); err != nil {
		t.Fatal(err)
	}
	s.Stop()
	var foreign *Status
	if _, err := c.call(t, nil); err == nil || errors.Is(err, ErrProtocol) || errors.As(err, &foreign) {
		t.Errorf("with nobody there: %v", err)
	}
	again, err := net.Listen("unix", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	s = serve(t, again, echo)
	if _, err := c.call(t, nil); err != nil {
		t.Error(err)
	}
	c.Close()
	before := dials.Load()
	if _, err := c.call(t, nil); err != nil || dials.Load() != before+1 {
		t.Errorf("after Close: %v, %d connections", err, dials.Load()-before)
	}
	s.GracefulStop()
}

// Servers of something else.
func TestForeign(t *testing.T) {
	// An answer of HTTP/2 that is gRPC or not.
	over2 := func(do http.HandlerFunc) func(net.Listener) func() {
		return func(l net.Listener) func() {
			var p http.Protocols
			p.SetUnencryptedHTTP2(true)
			s := &http.Server{Handler: do, Protocols: &p}
			go s.Serve(l)
			return func() { s.Close() }
		}
	}
	// Bytes, after which the connection is closed or stays.
	says := func(text string, stay bool) func(net.Listener) func() {
		return func(l net.Listener) func() {
			var conns []net.Conn
			done := make(chan struct{})
			go func() {
				defer close(done)
				for {
					conn, err := l.Accept()
					if err != nil {
						return
					}
					conns = append(conns, conn)
					go io.Copy(io.Discard, conn)
					io.WriteString(conn, text)
					if !stay {
						conn.Close()
					}
				}
			}()
			return func() {
				l.Close()
				<-done
				for _, c := range conns {
					c.Close()
				}
			}
		}
	}
	grpcWith := func(header http.Header, body string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/grpc+proto")
			for k, v := range header {
				w.Header()[k] = v
			}
			io.WriteString(w, body)
		}
	}
	const ok = "Trailer:Grpc-Status"
	// net/http does not say what ended a connection before the first request.
	var any []error
	for _, c := range []struct {
		name   string
		server func(net.Listener) func()
		code   Code
		err    []error // one of them
	}{
		{name: "a web server of the old kind", server: says("HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n", true), err: any},
		{name: "noise", server: says(strings.Repeat("\xff\x00noise", 100), true), err: any},
		{name: "the end", server: says("", false), err: any},
		{name: "nothing", server: says("", true), err: []error{context.DeadlineExceeded}},
		{name: "no such page", server: over2(http.NotFound), code: Unimplemented},
		{name: "forbidden", server: over2(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(403) }), code: PermissionDenied},
		{name: "a proxy without a server", server: over2(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(502) }), code: Unavailable},
		{name: "a teapot", server: over2(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(418) }), code: Unknown},
		{name: "a page", server: over2(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "<html>") }), err: []error{ErrProtocol}},
		{name: "an error in the head", server: over2(grpcWith(http.Header{"Grpc-Status": {"8"}, "Grpc-Message": {"a%20lot"}}, "")), code: ResourceExhausted},
		{name: "no status", server: over2(grpcWith(nil, "\x00\x00\x00\x00\x00")), err: []error{ErrProtocol}},
		{name: "a status of letters", server: over2(grpcWith(http.Header{ok: {"fine"}}, "\x00\x00\x00\x00\x00")), err: []error{ErrProtocol}},
		{name: "compressed", server: over2(grpcWith(http.Header{ok: {"0"}}, "\x01\x00\x00\x00\x01x")), err: []error{ErrProtocol}},
		{name: "half a head", server: over2(grpcWith(http.Header{ok: {"0"}}, "\x00\x00")), err: []error{ErrProtocol, io.ErrUnexpectedEOF}},
		{name: "half a message", server: over2(grpcWith(http.Header{ok: {"0"}}, "\x00\x00\x00\x00\x09half")), err: []error{ErrProtocol}},
		{name: "more than was said", server: over2(grpcWith(http.Header{ok: {"0"}}, "\x00\x00\x00\x00\x01more")), err: []error{ErrProtocol}},
	} {
		t.Run(c.name, func(t *testing.T) {
			l, conn, _ := socket(t)
			stop := c.server(l)
			defer stop()
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			if slices.Contains(c.err, context.DeadlineExceeded) {
				cancel()
				ctx, cancel = context.WithTimeout(t.Context(), 50*time.Millisecond)
			}
			defer cancel()
			_, err := conn.Call(ctx, "/s/m", nil, 1<<20)
			var s *Status
			if c.code != OK && (!errors.As(err, &s) || s.Code != c.code) {
				t.Errorf("%v, want code %d", err, c.code)
			}
			if err == nil || s != nil && c.code == OK {
				t.Errorf("%v is an answer", err)
			}
			if len(c.err) > 0 && !slices.ContainsFunc(c.err, func(want error) bool { return errors.Is(err, want) }) {
				t.Errorf("%v, want one of %v", err, c.err)
			}
			conn.Close()
		})
	}
}

// FuzzRead: whatever a body holds, what is taken from it is the one message in
// it.
func FuzzRead(f *testing.F) {
	f.Add([]byte("\x00\x00\x00\x00\x01x"))
	f.Add([]byte("\x00\xff\xff\xff\xffx"))
	f.Fuzz(func(t *testing.T, body []byte) {
		got, err := read(bytes.NewReader(body), 100)
		want := append([]byte{0, 0, 0, 0, byte(len(got))}, got...)
		if err == nil && (len(got) > 100 || !bytes.Equal(body, want)) {
			t.Fatalf("%q of %q", got, body)
		}
	})
}

// Package unary makes gRPC calls of one message each way, over the HTTP/2 of
// net/http.
//
// google.golang.org/grpc does far more, and its package cannot be linked in
// part: 1.7 MB of program for one service on a socket of the same machine.
//
// The protocol is PROTOCOL-HTTP2.md of the gRPC project; compression, metadata
// and retries are not used.
package unary

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// Code is the status of a call.
type Code uint32

// The codes that a caller may want to tell apart. Others keep their number.
const (
	OK                Code = 0
	Unknown           Code = 2
	DeadlineExceeded  Code = 4
	PermissionDenied  Code = 7
	ResourceExhausted Code = 8
	Unimplemented     Code = 12
	Internal          Code = 13
	Unavailable       Code = 14
	Unauthenticated   Code = 16
)

// Status is the error of a call that the server answered, with whatever.
type Status struct {
	Code    Code
	Message string
}

// Error implements error.
func (s *Status) Error() string { return fmt.Sprintf("gRPC status %d: %s", s.Code, s.Message) }

// ErrTooLarge is the error of a call whose answer is larger than was allowed.
var ErrTooLarge = errors.New("the answer is too large")

// ErrProtocol is the error of a call that was answered with something else than
// gRPC.
var ErrProtocol = errors.New("the answer is no gRPC")

// host is what a server on a socket of the same machine is called.
const host = "localhost"

// Limits on what comes before and after an answer's message.
const (
	maxHeader  = 64 << 10
	maxMessage = 4 << 10 // of a Status, in bytes
	window     = 1 << 20 // what a server may send before it is read
)

// graceOfServer is how much longer a server has for an answer than it is waited
// for.
const graceOfServer = 100 * time.Millisecond

// Conn makes calls of one server, one at a time, over one connection that is
// made when it is needed.
type Conn struct {
	transport *http.Transport
	conn      *http.ClientConn // nil while there is none
}

// New returns a Conn of the server that dial connects to.
func New(dial func(context.Context) (net.Conn, error)) *Conn {
	var h2c http.Protocols
	h2c.SetUnencryptedHTTP2(true)
	return &Conn{transport: &http.Transport{
		DialContext:            func(ctx context.Context, _, _ string) (net.Conn, error) { return dial(ctx) },
		Protocols:              &h2c,
		HTTP2:                  &http.HTTP2Config{MaxReceiveBufferPerConnection: window, MaxReceiveBufferPerStream: window},
		DisableCompression:     true,
		MaxResponseHeaderBytes: maxHeader,
	}}
}

// Close closes the connection. The next call makes another.
func (c *Conn) Close() {
	if c.conn != nil {
		c.conn.Close()
		c.conn = nil
	}
}

// Call calls a method, as "/package.Service/Method", with a message in
// protobuf's encoding, and returns the one that the server answers, if that is
// not larger than limit bytes. The error is that of the connection, ctx's, a
// *Status, ErrTooLarge or ErrProtocol.
func (c *Conn) Call(ctx context.Context, method string, message []byte, limit int) ([]byte, error) {
	if err := c.connect(ctx); err != nil {
		return nil, causeOf(ctx, err)
	}
	resp, err := c.conn.RoundTrip(request(ctx, method, message))
	if err != nil {
		return nil, causeOf(ctx, err)
	}
	defer resp.Body.Close()
	if err := answered(resp); err != nil {
		return nil, err
	}
	answer, readErr := read(resp.Body, limit)
	if readErr != nil && !errors.Is(readErr, errNone) {
		return nil, causeOf(ctx, readErr)
	}
	// The status comes last, and counts for more than what was before it.
	if err := statusOf(resp); err != nil {
		return nil, err
	}
	return answer, readErr
}

func (c *Conn) connect(ctx context.Context) (err error) {
	if c.conn != nil && c.conn.Err() == nil {
		return nil
	}
	c.Close()
	c.conn, err = c.transport.NewClientConn(ctx, "http", host+":80")
	return err
}

// causeOf is why a call came to nothing: ctx's end rather than what the
// connection made of it, and no gRPC where the other end speaks no HTTP/2. Of
// that net/http has no error that could be named, and none at all where the
// connection ends before the first request.
func causeOf(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if text := err.Error(); strings.Contains(text, "frame too large") || strings.Contains(text, "_ERROR") {
		return fmt.Errorf("%w: %w", ErrProtocol, err)
	}
	return err
}

func request(ctx context.Context, method string, message []byte) *http.Request {
	body := binary.BigEndian.AppendUint32(make([]byte, 1, prefix+len(message)), uint32(len(message)))
	r := &http.Request{
		Method:        http.MethodPost,
		URL:           &url.URL{Scheme: "http", Host: host, Path: method},
		Header:        http.Header{"Content-Type": {"application/grpc"}, "Te": {"trailers"}, "User-Agent": {"accel-exporter"}},
		Body:          io.NopCloser(bytes.NewReader(append(body, message...))),
		ContentLength: int64(prefix + len(message)),
	}
	if deadline, ok := ctx.Deadline(); ok {
		// A little longer, so that it is this end that finds the time to be over.
		left := max(0, time.Until(deadline)) + graceOfServer
		r.Header["Grpc-Timeout"] = []string{strconv.FormatInt(left.Milliseconds(), 10) + "m"}
	}
	return r.WithContext(ctx)
}

// answered returns what speaks against an answer before its message.
func answered(resp *http.Response) error {
	kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	isGRPC := kind == "application/grpc" || strings.HasPrefix(kind, "application/grpc+")
	switch {
	case resp.StatusCode == http.StatusOK && isGRPC:
		return nil
	case resp.Header.Get("Grpc-Status") != "":
		return statusOf(resp)
	case resp.StatusCode == http.StatusOK:
		return fmt.Errorf("%w: its content type is %q", ErrProtocol, short(kind))
	}
	return &Status{codeOf(resp.StatusCode), "HTTP status " + strconv.Itoa(resp.StatusCode)}
}

// codeOf is the code that an HTTP status stands for where a proxy or a server
// of something else answers: http-grpc-status-mapping.md of the gRPC project.
func codeOf(httpStatus int) Code {
	switch httpStatus {
	case http.StatusBadRequest:
		return Internal
	case http.StatusUnauthorized:
		return Unauthenticated
	case http.StatusForbidden:
		return PermissionDenied
	case http.StatusNotFound:
		return Unimplemented
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return Unavailable
	}
	return Unknown
}

// prefix is the length of what stands before a message: whether it is
// compressed, and its length.
const prefix = 5

// errNone: there is no message.
var errNone = fmt.Errorf("%w: success without a message", ErrProtocol)

// read returns the only message of an answer.
func read(body io.Reader, limit int) ([]byte, error) {
	var head [prefix]byte
	switch _, err := io.ReadFull(body, head[:]); {
	case errors.Is(err, io.EOF):
		return nil, errNone
	case err != nil:
		return nil, err
	case head[0] != 0:
		return nil, fmt.Errorf("%w: it is compressed, which nobody asked for", ErrProtocol)
	}
	n := int64(binary.BigEndian.Uint32(head[1:]))
	if n > int64(limit) {
		return nil, fmt.Errorf("%w: %d bytes, where %d are allowed", ErrTooLarge, n, limit)
	}
	// It grows with what comes, not with what was said to come.
	var message bytes.Buffer
	switch _, err := io.CopyN(&message, body, n); {
	case errors.Is(err, io.EOF):
		return nil, fmt.Errorf("%w: %d bytes of a message of %d", ErrProtocol, message.Len(), n)
	case err != nil:
		return nil, err
	}
	switch _, err := io.ReadFull(body, head[:1]); {
	case err == nil:
		return nil, fmt.Errorf("%w: something follows the message", ErrProtocol)
	case !errors.Is(err, io.EOF):
		return nil, err
	}
	return message.Bytes(), nil
}

// statusOf returns the error that an answer ends with. A server that has no
// message says it before the body's place, and else after it.
func statusOf(resp *http.Response) error {
	fields := resp.Trailer
	if fields.Get("Grpc-Status") == "" {
		fields = resp.Header
	}
	code, err := strconv.ParseUint(fields.Get("Grpc-Status"), 10, 32)
	if err != nil {
		return fmt.Errorf("%w: its status is %q", ErrProtocol, short(fields.Get("Grpc-Status")))
	}
	if Code(code) == OK {
		return nil
	}
	text := fields.Get("Grpc-Message")
	if plain, err := url.PathUnescape(text); err == nil {
		text = plain
	}
	return &Status{Code(code), short(text)}
}

func short(s string) string { return s[:min(len(s), maxMessage)] }

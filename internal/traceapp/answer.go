package traceapp

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"strconv"
	"time"

	tracepb "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/accel-exporter/accel-exporter/internal/traceproc"
)

// answer is what the receiver said of a request. The SDK's exporter tells of it
// in words alone.
type answer struct {
	said     bool // the receiver said anything
	final    bool // trying again is of no use
	after    time.Duration
	rejected int
}

// outcome says what became of n spans, of which the SDK says err.
func (a *answer) outcome(n int, err error) traceproc.Outcome {
	out := traceproc.Outcome{}
	if err != nil {
		out.Error = clip(err.Error())
	}
	switch {
	case err == nil, a.said && a.rejected > 0:
		out.Rejected = min(a.rejected, n)
		out.Sent = n - out.Rejected
	case a.said && a.final:
		out.Rejected = n
	default:
		out.Retry, out.After = true, a.after
	}
	return out
}

// watched is a transport that notes what the receiver says, and adds headers.
type watched struct {
	http.RoundTripper
	s *sender
}

// maxReply bounds what is read of a reply, in bytes.
const maxReply = 1 << 20

// RoundTrip implements http.RoundTripper.
func (w *watched) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	for name, value := range w.s.headers.now {
		r.Header.Set(name, value)
	}
	resp, err := w.RoundTripper.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxReply))
	resp.Body.Close()
	if err != nil {
		return nil, err // it broke off, so what it meant is not known
	}
	resp.Body = io.NopCloser(bytes.NewReader(body))
	w.s.answer = answerOf(resp, body)
	return resp, nil
}

// answerOf reads an answer as the specification of OTLP over HTTP has it.
func answerOf(resp *http.Response, body []byte) answer {
	a := answer{said: true}
	switch code := resp.StatusCode; code {
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		if n, err := strconv.Atoi(resp.Header.Get("Retry-After")); err == nil && n > 0 && n < 1<<20 {
			a.after = time.Duration(n) * time.Second
		}
	default:
		a.final = code < 200 || code > 299
		var reply tracepb.ExportTraceServiceResponse
		if !a.final && proto.Unmarshal(body, &reply) == nil {
			a.rejected = rejected(&reply)
		}
	}
	return a
}

// rejected is how many spans the receiver did not take.
func rejected(reply *tracepb.ExportTraceServiceResponse) int {
	return int(min(max(reply.GetPartialSuccess().GetRejectedSpans(), 0), 1<<20))
}

// watchCall notes what the receiver says over gRPC, and adds headers.
func (s *sender) watchCall(ctx context.Context, method string, req, reply any, conn *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
	for name, value := range s.headers.now {
		ctx = metadata.AppendToOutgoingContext(ctx, name, value)
	}
	err := invoke(ctx, method, req, reply, conn, opts...)
	s.answer = answerOfCall(err)
	if r, ok := reply.(*tracepb.ExportTraceServiceResponse); ok && err == nil {
		s.answer.rejected = rejected(r)
	}
	return err
}

// answerOfCall reads a status as the specification of OTLP over gRPC has it.
func answerOfCall(err error) answer {
	a := answer{said: true}
	st := status.Convert(err)
	for _, d := range st.Details() {
		if info, ok := d.(*errdetails.RetryInfo); ok {
			a.after = info.GetRetryDelay().AsDuration()
		}
	}
	switch st.Code() {
	case codes.Canceled, codes.DeadlineExceeded, codes.Aborted, codes.OutOfRange, codes.Unavailable, codes.DataLoss:
	case codes.ResourceExhausted:
		a.final = a.after <= 0
	default:
		a.final = true
	}
	if errors.Is(err, context.Canceled) {
		a.final = false
	}
	return a
}

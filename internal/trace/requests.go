package trace

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"

	tracepb "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/proto"
)

// requests adds the headers of the file to each request of the SDK's exporters, and
// counts its outcome. The exporters send one request at a time. They report neither
// retries nor the number of rejected spans.
type requests struct {
	log       *slog.Logger
	counts    *counts
	headers   headers
	stale     bool            // the file of headers could not be read again
	transport *http.Transport // of HTTP
	rejected  int             // spans of the latest request
}

// maxReply bounds the part of a reply that is read, in bytes.
const maxReply = 1 << 20

// temporary is an error that the SDK's HTTP exporter retries. Without it, the exporter
// drops the batch if the receiver cannot be reached.
type temporary struct{ error }

// Temporary implements the interface that url.Error looks for.
func (temporary) Temporary() bool { return true }

// RoundTrip implements http.RoundTripper.
func (r *requests) RoundTrip(q *http.Request) (*http.Response, error) {
	q = q.Clone(q.Context())
	for name, value := range r.current() {
		q.Header.Set(name, value)
	}
	reply, err := r.transport.RoundTrip(q)
	if err != nil {
		r.counts.request(err)
		return nil, temporary{err}
	}
	body, err := io.ReadAll(io.LimitReader(reply.Body, maxReply))
	reply.Body.Close()
	if err != nil { // the reply is truncated, so the result is unknown
		r.counts.request(err)
		return nil, temporary{err}
	}
	reply.Body = io.NopCloser(bytes.NewReader(body))
	r.counts.request(r.problem(reply, body))
	return reply, nil
}

// problem returns the error in the reply of a receiver, or nil if it accepted all spans.
func (r *requests) problem(reply *http.Response, body []byte) error {
	if reply.StatusCode < 200 || reply.StatusCode > 299 {
		return fmt.Errorf("%s: %s", reply.Status, body)
	}
	var message tracepb.ExportTraceServiceResponse
	if reply.Header.Get("Content-Type") == "application/x-protobuf" {
		if err := proto.Unmarshal(body, &message); err != nil {
			return err
		}
	}
	return r.partial(&message)
}

// partial returns an error if the receiver rejected some of the spans.
func (r *requests) partial(message *tracepb.ExportTraceServiceResponse) error {
	p := message.GetPartialSuccess()
	if p.GetRejectedSpans() <= 0 {
		return nil
	}
	r.rejected = int(min(p.GetRejectedSpans(), maxQueued))
	return fmt.Errorf("the receiver rejects %d spans: %s", p.GetRejectedSpans(), p.GetErrorMessage())
}

// call is the grpc.UnaryClientInterceptor.
func (r *requests) call(ctx context.Context, method string, q, reply any, conn *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
	ctx, cancel := context.WithTimeout(ctx, sendTimeout)
	defer cancel()
	for name, value := range r.current() {
		ctx = metadata.AppendToOutgoingContext(ctx, name, value)
	}
	err := invoke(ctx, method, q, reply, conn, opts...)
	problem := err
	if message, ok := reply.(*tracepb.ExportTraceServiceResponse); ok && err == nil {
		problem = r.partial(message)
	}
	r.counts.request(problem)
	return err
}

// current returns the headers of the file. It logs the first of several errors of
// reading it.
func (r *requests) current() map[string]string {
	err := r.headers.read()
	if err != nil && !r.stale {
		r.log.Error("The file of headers cannot be read again; the previous headers stay in use", "err", err)
	}
	r.stale = err != nil
	return r.headers.now
}

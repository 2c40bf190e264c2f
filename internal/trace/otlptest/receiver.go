// Package otlptest is a receiver of OTLP traces for tests.
// It decodes requests with OpenTelemetry's messages, and tests set its answers.
package otlptest

import (
	"crypto/tls"
	"encoding/hex"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	collectorpb "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"
)

// Span is a span that arrived.
type Span struct {
	Trace, ID, Parent string
	Name              string
	Start, End        time.Time
	Status            tracepb.Status_StatusCode
	Message           string
	// Resource and Attrs have values as text. Lists are joined by commas.
	Resource, Attrs map[string]string
}

// Receiver collects spans. It is safe for concurrent use.
type Receiver struct {
	mu      sync.Mutex
	spans   []Span
	headers []map[string]string

	// HTTP returns true if it has written the response to a request. Without it, or if
	// it returns false, the receiver accepts the spans.
	HTTP func(http.ResponseWriter) bool
}

// Spans returns the spans that arrived.
func (r *Receiver) Spans() []Span {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]Span(nil), r.spans...)
}

// Headers returns the headers of each request, with names in lower case.
func (r *Receiver) Headers() []map[string]string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]map[string]string(nil), r.headers...)
}

// Serve serves a listener until stop is called. A nil config means no TLS.
func (r *Receiver) Serve(l net.Listener, config *tls.Config) (stop func()) {
	server := &http.Server{Handler: r, ReadHeaderTimeout: time.Minute}
	if config != nil {
		l = tls.NewListener(l, config)
	}
	var loop sync.WaitGroup
	loop.Go(func() { _ = server.Serve(l) }) // it ends by Close
	return func() {
		server.Close()
		loop.Wait()
	}
}

// ServeHTTP implements http.Handler.
func (r *Receiver) ServeHTTP(w http.ResponseWriter, q *http.Request) {
	if r.HTTP != nil && r.HTTP(w) {
		return
	}
	if q.Method != http.MethodPost || q.URL.Path != "/v1/traces" || q.Header.Get("Content-Type") != "application/x-protobuf" {
		http.Error(w, "not found", http.StatusNotFound)
		return
	}
	body, err := io.ReadAll(q.Body)
	var request collectorpb.ExportTraceServiceRequest
	if err != nil || proto.Unmarshal(body, &request) != nil {
		http.Error(w, "not OTLP", http.StatusBadRequest)
		return
	}
	headers := map[string]string{}
	for name, values := range q.Header {
		headers[strings.ToLower(name)] = strings.Join(values, ",")
	}
	r.take(&request, headers)
	w.Header().Set("Content-Type", "application/x-protobuf")
}

func (r *Receiver) take(request *collectorpb.ExportTraceServiceRequest, headers map[string]string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.headers = append(r.headers, headers)
	for _, of := range request.ResourceSpans {
		resource := values(of.GetResource().GetAttributes())
		for _, scope := range of.ScopeSpans {
			for _, s := range scope.Spans {
				r.spans = append(r.spans, spanOf(s, resource))
			}
		}
	}
}

func spanOf(s *tracepb.Span, resource map[string]string) Span {
	return Span{
		Trace: hex.EncodeToString(s.TraceId), ID: hex.EncodeToString(s.SpanId), Parent: hex.EncodeToString(s.ParentSpanId),
		Name: s.Name, Start: at(s.StartTimeUnixNano), End: at(s.EndTimeUnixNano),
		Status: s.GetStatus().GetCode(), Message: s.GetStatus().GetMessage(), Resource: resource, Attrs: values(s.Attributes),
	}
}

func at(nanos uint64) time.Time { return time.Unix(0, int64(nanos)).UTC() }

func values(list []*commonpb.KeyValue) map[string]string {
	out := make(map[string]string, len(list))
	for _, kv := range list {
		out[kv.Key] = text(kv.Value)
	}
	return out
}

func text(v *commonpb.AnyValue) string {
	switch x := v.GetValue().(type) {
	case *commonpb.AnyValue_StringValue:
		return x.StringValue
	case *commonpb.AnyValue_ArrayValue:
		var all []string
		for _, e := range x.ArrayValue.Values {
			all = append(all, text(e))
		}
		return strings.Join(all, ",")
	}
	// Numbers and booleans, as the message prints them.
	_, value, _ := strings.Cut(v.String(), ":")
	return value
}

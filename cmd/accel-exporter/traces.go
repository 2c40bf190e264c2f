package main

import (
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/alecthomas/kingpin/v2"
	"github.com/prometheus/common/version"

	"github.com/accel-exporter/accel-exporter/collector"
	"github.com/accel-exporter/accel-exporter/internal/trace"
	"github.com/accel-exporter/accel-exporter/podmap"
	"github.com/accel-exporter/accel-exporter/podmap/kube"
	"github.com/accel-exporter/accel-exporter/podmap/proc"
)

// traceFlags is the command line of the traces of allocations.
type traceFlags struct {
	endpoint    string
	headersFile string
	caFile      string

	receiver trace.Endpoint
}

func (f *traceFlags) add(app *kingpin.Application) {
	app.Flag("otlp.endpoint", "OTLP endpoint that receives traces of allocations: http://HOST:4318 or https://…. By default no traces are sent.").PlaceHolder("URL").StringVar(&f.endpoint)
	app.Flag("otlp.headers-file", "File with headers for the requests to --otlp.endpoint, such as credentials (YAML, name: value).").PlaceHolder("FILE").StringVar(&f.headersFile)
	app.Flag("otlp.ca-file", "File with the certificates (PEM) of the authorities that sign the endpoint's certificate. By default those of the system.").PlaceHolder("FILE").StringVar(&f.caFile)
}

func (f *traceFlags) check() (err error) {
	if f.endpoint == "" {
		if f.headersFile != "" || f.caFile != "" {
			return errors.New("--otlp.headers-file and --otlp.ca-file need --otlp.endpoint")
		}
		return nil
	}
	if f.receiver, err = trace.ParseEndpoint(f.endpoint); err != nil {
		return fmt.Errorf("--otlp.endpoint %w", err)
	}
	if f.caFile != "" && !f.receiver.TLS {
		return errors.New("--otlp.ca-file needs an --otlp.endpoint that begins with https")
	}
	return nil
}

// checkHeaders and checkCAs check a file as the start does.
func checkHeaders(path string) error { _, err := trace.ReadHeaders(path); return err }
func checkCAs(path string) error     { _, err := trace.ReadCAs(path); return err }

// contexts returns the annotations of pods that can have the trace context that their
// allocations join; the first that a pod has applies. They need --kubernetes.pods.
func (f *traceFlags) contexts() []string {
	if f.endpoint == "" {
		return nil
	}
	return []string{"traceparent", "tracing.k8s.io/traceparent", "tekton.dev/taskrunSpanContext"}
}

// openTraces prepares the sending of traces. It returns nil where no endpoint is
// set.
func openTraces(t *traceFlags, f *podFlags, log *slog.Logger) (*trace.Sender, error) {
	if t.endpoint == "" {
		return nil, nil
	}
	return trace.NewSender(trace.Options{
		Endpoint: t.receiver, HeadersFile: t.headersFile, CAFile: t.caFile, Version: version.Version,
		Host: f.nodeOrHost(), Node: f.node, Log: log,
	})
}

// followTraces returns the Follower that sends the traces of all allocations.
func followTraces(sender *trace.Sender, f *podFlags, allocs *pods, s *collector.Sampler) *trace.Follower {
	who := &identifier{api: allocs.api, dirs: allocs.dirs}
	return trace.Follow(sender, trace.Sources{
		Latest: s.Latest, Next: s.Next, History: allocs.judge.History,
		Identify: who.identify, Node: f.nodeOrHost(),
	})
}

// identifier returns the UIDs of pods: from the kubelet or the API server, else from the
// names of the kubelet's directories.
type identifier struct {
	api  *kube.Watcher // nil if neither the kubelet's pods nor the API server are watched
	dirs *proc.PodDirs
}

func (w *identifier) identify(p podmap.Pod, found time.Time) trace.Identity {
	if w.api != nil {
		if known, ok := w.api.Latest().Pod(p.Namespace, p.Name); ok && known.Deleted.IsZero() {
			return trace.Identity{UID: known.UID, Context: known.Context, Final: true}
		}
	}
	if names := w.dirs.Latest(); names != nil && names.At.After(found) {
		if uid := names.UID[proc.PodName(p)]; uid != "" {
			return trace.Identity{UID: uid, Final: w.api == nil || w.api.Latest().State == kube.StateNone}
		}
	}
	w.dirs.Refresh(time.Now())
	return trace.Identity{}
}

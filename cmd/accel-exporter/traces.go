package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os/exec"
	"sync/atomic"
	"time"

	"github.com/alecthomas/kingpin/v2"
	"github.com/prometheus/common/version"

	"github.com/accel-exporter/accel-exporter/collector"
	"github.com/accel-exporter/accel-exporter/internal/peer"
	"github.com/accel-exporter/accel-exporter/internal/traceproc"
	"github.com/accel-exporter/accel-exporter/podmap"
	"github.com/accel-exporter/accel-exporter/podmap/kube"
	"github.com/accel-exporter/accel-exporter/podmap/proc"
)

// traceFlags is the command line of the traces of allocations.
type traceFlags struct {
	endpoint    string
	headersFile string
	caFile      string
	program     string
	annotations []string

	receiver traceproc.Endpoint
}

func (f *traceFlags) add(app *kingpin.Application) {
	app.Flag("otlp.endpoint", "Where traces of allocations are sent by OTLP: http://HOST:4318, https://…, grpc://HOST:4317 or grpcs://…. By default there are none.").PlaceHolder("URL").StringVar(&f.endpoint)
	app.Flag("otlp.headers-file", "Headers to send with them, as to log in (YAML: name: value). Read again when it changes.").PlaceHolder("FILE").StringVar(&f.headersFile)
	app.Flag("otlp.ca-file", "Certificates that may sign the receiver's. By default those of the system.").PlaceHolder("FILE").StringVar(&f.caFile)
	app.Flag("otlp.program", "The program that sends them, accel-traces. By default the one beside this executable.").PlaceHolder("PATH").StringVar(&f.program)
	app.Flag("otlp.pod-annotation", "Annotation of pods that may hold the trace context which an allocation belongs to; repeatable, the first that a pod has counts. Needs --kubernetes.pods.").
		Default("traceparent", "tracing.k8s.io/traceparent", "tekton.dev/taskrunSpanContext").PlaceHolder("KEY").StringsVar(&f.annotations)
}

func (f *traceFlags) check() (err error) {
	if f.endpoint == "" {
		if f.headersFile != "" || f.caFile != "" {
			return errors.New("--otlp.headers-file and --otlp.ca-file need --otlp.endpoint")
		}
		return nil
	}
	if f.receiver, err = traceproc.ParseEndpoint(f.endpoint); err != nil {
		return fmt.Errorf("--otlp.endpoint %w", err)
	}
	if f.caFile != "" && !f.receiver.TLS {
		return errors.New("--otlp.ca-file needs an --otlp.endpoint that begins with https or grpcs")
	}
	if err := kube.CheckContexts(f.annotations); err != nil {
		return fmt.Errorf("--otlp.pod-annotation: %w", err)
	}
	return nil
}

// checkHeaders and checkCAs read a file as accel-traces will.
func checkHeaders(path string) error { _, err := traceproc.ReadHeaders(path); return err }
func checkCAs(path string) error     { _, err := traceproc.ReadCAs(path); return err }

// contexts are the annotations that are of use.
func (f *traceFlags) contexts() []string {
	if f.endpoint == "" {
		return nil
	}
	return f.annotations
}

// openTraces starts the program that sends traces. It returns nil where there
// are to be none.
func openTraces(ctx context.Context, f *flags, log *slog.Logger) (*traceproc.Process, error) {
	t := &f.traces
	if t.endpoint == "" {
		return nil, nil
	}
	if t.headersFile != "" {
		if err := checkHeaders(t.headersFile); err != nil {
			return nil, fmt.Errorf("--otlp.headers-file: %w", err)
		}
	}
	if t.caFile != "" {
		if err := checkCAs(t.caFile); err != nil {
			return nil, fmt.Errorf("--otlp.ca-file: %w", err)
		}
	}
	program := besides(t.program, "accel-traces")
	p := traceproc.New(traceproc.Options{
		Command: func() *exec.Cmd {
			cmd := exec.Command(program, "serve")
			cmd.Stderr = &lineLogger{log: log.With("process", "accel-traces")}
			return cmd
		},
		Build: peer.Build(), Log: log,
		Settings: traceproc.Settings{
			Endpoint: t.receiver, HeadersFile: t.headersFile, CAFile: t.caFile, Version: version.Version,
			Host: f.pods.nodeOrHost(), Node: f.pods.node,
		},
	})
	err := p.Start(ctx)
	if refused := (*traceproc.Refusal)(nil); errors.As(err, &refused) {
		return nil, err
	}
	if err != nil {
		log.Error("The program that sends traces does not start and is tried again", "err", err)
	}
	return p, nil
}

// followTraces has p told of all allocations.
func followTraces(p *traceproc.Process, f *flags, held *pods, s *collector.Sampler) *traceproc.Follower {
	who := &identifier{api: held.api, list: podDirs(f.pods.logs)}
	return traceproc.Follow(p, traceproc.Sources{
		Latest: s.Latest, Next: s.Next, Lives: held.judge.Lives,
		Identify: who.identify, Node: f.pods.nodeOrHost(),
	})
}

// identifier finds what is known of pods: from the API server, where it is
// asked, else their UIDs from the names of the kubelet's directories.
type identifier struct {
	api     *kube.Watcher // nil where it is not asked
	list    func() ([]string, error)
	names   atomic.Pointer[uids]
	listing atomic.Bool
	asked   time.Time
}

// uids are those of pods, "" where there are several of a name.
type uids struct {
	at    time.Time // when they began to be listed
	byPod map[podmap.Pod]string
}

// listPause is the least time between two lists of directories.
const listPause = 2 * time.Second

func (w *identifier) identify(p podmap.Pod, found time.Time) traceproc.Identity {
	if w.api != nil {
		if known, ok := w.api.Latest().Pod(p.Namespace, p.Name); ok && known.Deleted.IsZero() {
			return traceproc.Identity{UID: known.UID, Context: known.Context, Sure: true}
		}
	}
	if names := w.names.Load(); names != nil && names.at.After(found) && names.byPod[p] != "" {
		return traceproc.Identity{UID: names.byPod[p], Sure: w.api == nil}
	}
	if now := time.Now(); now.Sub(w.asked) >= listPause && w.listing.CompareAndSwap(false, true) {
		w.asked = now
		go w.look(now) // a disk that hangs must not hold up the others
	}
	return traceproc.Identity{}
}

// look lists the directories.
func (w *identifier) look(now time.Time) {
	defer w.listing.Store(false)
	dirs, err := w.list()
	if err != nil && len(dirs) == 0 {
		return
	}
	names := make(map[podmap.Pod]string, len(dirs))
	for _, dir := range dirs {
		name, uid, ok := proc.ParsePodDir(dir)
		if !ok {
			continue
		}
		p := podmap.Pod{Namespace: name.Namespace, Name: name.Name}
		if _, again := names[p]; again {
			uid = "" // one of them has ended, and nothing says which
		}
		names[p] = uid
	}
	w.names.Store(&uids{now, names})
}

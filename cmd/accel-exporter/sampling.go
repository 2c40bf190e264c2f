package main

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"os/exec"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/alecthomas/kingpin/v2"

	"github.com/accel-exporter/accel-exporter/collector"
	"github.com/accel-exporter/accel-exporter/collector/dcgm"
	"github.com/accel-exporter/accel-exporter/collector/kernellog"
	"github.com/accel-exporter/accel-exporter/internal/compat/counters"
	"github.com/accel-exporter/accel-exporter/internal/config"
	"github.com/accel-exporter/accel-exporter/internal/judge/allocation"
	"github.com/accel-exporter/accel-exporter/internal/status/history"
	"github.com/accel-exporter/accel-exporter/podmap"
	"github.com/accel-exporter/accel-exporter/podmap/kube"
)

// sampleFlags is the command line of what is sampled.
type sampleFlags struct {
	interval   time.Duration
	releaseDir string
	sources    sourceFlags
	pods       podFlags
}

func (f *sampleFlags) add(app *kingpin.Application) {
	app.Flag("collect.interval", "Time between two samples of a device.").Default("1s").SetValue((*duration)(&f.interval))
	app.Flag("release.directory", "A file in this directory, named after a source, releases that source while it exists, or for the duration in it (\"10m\").").PlaceHolder("DIR").StringVar(&f.releaseDir)
	f.sources.add(app)
	f.pods.add(app)
}

func (f *sampleFlags) check() error {
	return errors.Join(within("collect.interval", f.interval, 100*time.Millisecond, 10*time.Minute), f.sources.check(), f.pods.check(), directory("release.directory", f.releaseDir))
}

// sampling samples the node: its sources, some of them in workers, and its pods.
type sampling struct {
	flags   *sampleFlags
	log     *slog.Logger
	lines   limitedLog // log
	sampler *collector.Sampler
	history history.Ring
	// kernelLog is nil where it is not read.
	kernelLog *kernellog.Source
	pods      *pods
	workers   map[string]*collector.Process
	config    atomic.Pointer[config.Config]
}

func newSampling(f *sampleFlags, cfg *config.Config, allocs *pods, log *slog.Logger) *sampling {
	p := &sampling{flags: f, log: log, lines: limitedLog{log: log}, pods: allocs, workers: map[string]*collector.Process{}}
	p.config.Store(cfg)
	p.sampler = collector.NewSampler(settings(f, cfg))
	return p
}

// settings returns the settings of the Sampler, from the configuration file or
// else from flags.
func settings(f *sampleFlags, cfg *config.Config) collector.Settings {
	s := collector.DefaultSettings()
	s.Interval = f.interval
	if cfg.Collect.Interval > 0 {
		s.Interval = cfg.Collect.Interval
	}
	s.ForgetAfter = cfg.Devices.ForgetAfter
	s.Timeout = map[string]time.Duration{}
	for _, spec := range specs {
		s.Timeout[spec.name] = cmp.Or(spec.timeout(cfg), spec.patience, defaultPatience)
	}
	return s
}

// apply applies a new configuration. Workers whose arguments change are
// restarted.
func (p *sampling) apply(cfg *config.Config) {
	before := p.config.Swap(cfg)
	p.pods.judge.Apply(cfg.Allocation)
	p.sampler.Apply(settings(p.flags, cfg))
	for _, spec := range specs {
		w := p.workers[spec.name]
		if w == nil || slices.Equal(spec.args(&p.flags.sources, before), spec.args(&p.flags.sources, cfg)) {
			continue
		}
		p.restart(spec.name)
	}
}

// restart restarts a worker whose arguments have changed.
func (p *sampling) restart(name string) {
	if err := p.workers[name].Restart(); err != nil {
		p.log.Error("Worker keeps its previous settings: it could not be restarted", "collector", name, "err", err)
	}
	p.sampler.Wake(name)
}

// addSources adds every enabled source to the Sampler. The first registered
// source of a device wins, per family.
func (p *sampling) addSources() {
	for _, spec := range specs {
		if p.flags.sources.on(spec) {
			p.sampler.Add(p.open(spec), spec.covers...)
		}
	}
}

// open returns the source of a spec. It does not start it.
func (p *sampling) open(spec sourceSpec) collector.Source {
	emit := func(e collector.Event) {
		p.sampler.Emit(e)
		p.lines.event(e)
	}
	if spec.open != nil {
		src := spec.open(&p.flags.sources, emit)
		if log, ok := src.(*kernellog.Source); ok {
			p.kernelLog = log
		}
		return src
	}
	w := collector.NewProcess(spec.name, func() *exec.Cmd {
		args := append([]string{"worker", spec.name}, spec.args(&p.flags.sources, p.config.Load())...)
		cmd := exec.Command(self, args...)
		cmd.Args[0] = "accel-exporter"
		cmd.Stderr = &workerLog{limitedLog: &p.lines, worker: spec.name}
		return cmd
	}, emit)
	w.Budget = spec.budget
	p.workers[spec.name] = w
	return w
}

// kernelLines are the latest lines of drivers in the kernel log, if it is read.
func (p *sampling) kernelLines() (lines []string, known bool) {
	if p.kernelLog == nil {
		return nil, false
	}
	return p.kernelLog.Lines()
}

// self is the running executable, even after its file has been replaced: parent
// and worker must be the same build.
const self = "/proc/self/exe"

// run samples until ctx is done.
func (p *sampling) run(ctx context.Context) {
	var loops sync.WaitGroup
	defer loops.Wait()
	loops.Go(func() {
		if err := p.sampler.Run(ctx); err != nil {
			p.log.Error("Sampler ended with an error", "err", err)
		}
	})
	loops.Go(func() { p.pods.run(ctx, func() { p.sampler.Wake("") }) })
	loops.Go(func() { follow(ctx, p.sampler, (&changes{log: &p.lines}).logSnapshot) })
	if p.flags.releaseDir != "" {
		loops.Go(func() { p.watchReleases(ctx) })
	}
}

// onceInterval is the interval of the rounds of once.
const onceInterval = 250 * time.Millisecond

// once samples until the Snapshot is settled, for a command that serves nothing.
func (p *sampling) once(ctx context.Context) (*collector.Snapshot, error) {
	p.addSources()
	running, stop := context.WithCancel(context.WithoutCancel(ctx))
	var loops sync.WaitGroup
	defer loops.Wait()
	defer stop()
	loops.Go(func() { p.run(running) })
	return settled(ctx, p.sampler, p.pods)
}

// settledRounds is the number of Snapshots after the first outcome of every source
// in which slowly changing values have been read.
const settledRounds = 6

// settled returns the Snapshot once every source has an outcome, and sources that
// are up have also read their slowly changing values.
func settled(ctx context.Context, s *collector.Sampler, allocs *pods) (*collector.Snapshot, error) {
	for seen := 0; ; {
		next := s.Next()
		snap := s.Latest()
		waiting := waitingFor(snap)
		if waiting == "" {
			waiting = allocs.waitingFor()
		}
		if waiting == "" {
			if seen++; seen > settledRounds {
				return snap, nil
			}
		}
		select {
		case <-next:
		case <-ctx.Done():
			return nil, errors.New("not all sources answered: " + waiting)
		}
	}
}

// waitingFor names the first source without an outcome, or "".
func waitingFor(snap *collector.Snapshot) string {
	if snap == nil {
		return "nothing was sampled"
	}
	for _, s := range snap.Sources {
		if s.Reason == collector.SourceStarting {
			return s.Source
		}
	}
	return ""
}

// stateJSON is the response of /debug/state. It is for diagnosis and can change
// with any version.
type stateJSON struct {
	Seq     uint64              `json:"seq"`
	Time    time.Time           `json:"time"`
	Sources []sourceJSON        `json:"sources"`
	Devices []collector.Device  `json:"devices"`
	Node    []collector.Reading `json:"node"`
	Events  []collector.Event   `json:"events"`
	// Allocation has the pods of each device. Kubelet and APIServer are the
	// states of its sources, nil for a source that is not configured.
	Allocation *allocation.Report `json:"allocation"`
	Kubelet    *podmap.Status     `json:"kubelet,omitempty"`
	APIServer  *kube.Status       `json:"api_server,omitempty"`
}

type sourceJSON struct {
	collector.Status
	WorkerPID     int        `json:"worker_pid,omitempty"`
	ReleasedUntil *time.Time `json:"released_until,omitempty"`
}

func (p *sampling) stateJSON() stateJSON {
	snap := p.sampler.Latest()
	out := stateJSON{Sources: p.sourcesJSON(snap), Devices: []collector.Device{}, Node: []collector.Reading{}, Events: []collector.Event{}}
	if snap != nil {
		out.Seq, out.Time = snap.Seq, snap.Time
		out.Devices = append(out.Devices, snap.Devices...)
		for i := range out.Devices {
			out.Devices[i].Readings = append([]collector.Reading{}, out.Devices[i].Readings...) // not null
		}
		out.Node = append(out.Node, snap.Node...)
		out.Events = append(out.Events, snap.Events...)
	}
	out.Allocation, out.Kubelet, out.APIServer = p.pods.state()
	return out
}

// sourcesJSON returns the sources of a Snapshot, which may be nil.
func (p *sampling) sourcesJSON(snap *collector.Snapshot) []sourceJSON {
	out := []sourceJSON{} // not null
	if snap == nil {
		return out
	}
	for _, s := range snap.Sources {
		j := sourceJSON{Status: s}
		if w := p.workers[s.Source]; w != nil {
			j.WorkerPID = w.PID()
			if released, until := w.Released(); released && !until.IsZero() {
				j.ReleasedUntil = &until
			}
		}
		out = append(out, j)
	}
	return out
}

// applyFields applies a counters file; nil means none. Rows that dcgm-exporter
// computes have no DCGM field. The worker is restarted if its fields change.
func (p *sampling) applyFields(c *counters.File) {
	var ids []uint16
	if c != nil {
		for _, r := range c.Rows {
			if !r.Derived {
				ids = append(ids, r.Field.ID)
			}
		}
	}
	slices.Sort(ids)
	if before := p.flags.sources.dcgm.fields.Swap(&ids); p.workers[dcgm.Name] != nil && !slices.Equal(*before, ids) {
		p.restart(dcgm.Name)
	}
}

package main

import (
	"fmt"
	"os"
	"os/exec"
	"time"

	"github.com/alecthomas/kingpin/v2"

	"github.com/accel-exporter/accel-exporter/collector"
	"github.com/accel-exporter/accel-exporter/collector/nvidia"
	"github.com/accel-exporter/accel-exporter/internal/config"
)

// sourceFlags is the command line of the sources.
type sourceFlags struct {
	enabled     map[string]*bool
	timeout     map[string]*time.Duration
	nvmlLibrary string
}

// sourceSpec registers one source: a new one is an entry of specs.
type sourceSpec struct {
	name string
	help string
	// timeout is what the configuration says of a round's limit, or 0.
	timeout func(*config.Config) time.Duration
	// args are the arguments of the worker that reads the source.
	args func(*sourceFlags, *config.Config) []string
	// work returns the source inside the worker.
	work func(args []string, emit func(collector.Event)) (collector.Source, error)
}

var specs = []sourceSpec{
	{
		name:    "nvidia",
		help:    "NVIDIA GPUs through NVML",
		timeout: func(c *config.Config) time.Duration { return c.Sources.NVIDIA.Timeout },
		args: func(f *sourceFlags, c *config.Config) []string {
			args := []string{"--slow-interval=" + c.Sources.NVIDIA.SlowInterval.String()}
			if f.nvmlLibrary != "" {
				args = append(args, "--nvml.library="+f.nvmlLibrary)
			}
			return args
		},
		work: workNVIDIA,
	},
}

func (f *sourceFlags) add(app *kingpin.Application) {
	f.enabled, f.timeout = map[string]*bool{}, map[string]*time.Duration{}
	for _, s := range specs {
		f.enabled[s.name] = app.Flag("collector."+s.name, "Collect from "+s.help+".").Default("true").Bool()
		f.timeout[s.name] = app.Flag("collector."+s.name+".timeout", "Time after which a round of "+s.name+" is given up.").Default("5s").Duration()
	}
	app.Flag("nvml.library", "NVML library to load. By default it is looked for where drivers and containers put it.").PlaceHolder("PATH").StringVar(&f.nvmlLibrary)
}

// check refuses what the configuration file would be refused for.
func (f *sourceFlags) check() error {
	for name, t := range f.timeout {
		if *t < 100*time.Millisecond || *t > 5*time.Minute {
			return fmt.Errorf("--collector.%s.timeout is %s; 100ms to 5m is accepted", name, *t)
		}
	}
	return nil
}

// open returns a source that is read by a worker process of its own. It
// starts nothing yet.
func (p *program) open(spec sourceSpec) collector.Source {
	events := &eventLog{log: p.log}
	emit := func(e collector.Event) {
		p.sampler.Emit(e)
		events.note(e)
	}
	w := collector.NewProcess(spec.name, func() *exec.Cmd {
		args := append([]string{"worker", spec.name}, spec.args(&p.flags.sources, p.config.Load())...)
		cmd := exec.Command(self, args...)
		cmd.Args[0] = "accel-exporter"
		cmd.Stderr = &lineLogger{log: p.log.With("collector", spec.name)}
		return cmd
	}, emit)
	p.workers[spec.name] = w
	return w
}

// self is this very executable, also once the file it was started from has
// been replaced: parent and worker must be the same build.
const self = "/proc/self/exe"

// work is the main of a worker: it serves one source on its pipes until they
// end, and then ends without asking the library, which may hang.
func work(name string, args []string) error {
	for _, s := range specs {
		if s.name != name {
			continue
		}
		showName()
		tuneWorker()
		events := make(chan collector.Event, 1024)
		src, err := s.work(args, func(e collector.Event) { events <- e })
		if err != nil {
			return err
		}
		in, out := collector.WorkerIO()
		return collector.Serve(in, out, src, events)
	}
	return fmt.Errorf("no worker is called %q", name)
}

// showName makes tools that read the command's short name show the program's,
// not "exe".
func showName() {
	// Best effort: the name is for people.
	_ = os.WriteFile("/proc/self/comm", []byte("accel-exporter"), 0)
}

func workNVIDIA(args []string, emit func(collector.Event)) (collector.Source, error) {
	var o nvidia.Options
	app := kingpin.New("accel-exporter worker nvidia", "Reads NVML for the exporter that started it.")
	app.Flag("nvml.library", "NVML library to load.").StringVar(&o.Library)
	app.Flag("slow-interval", "Time between two readings of what changes slowly.").Default("10s").DurationVar(&o.SlowInterval)
	if _, err := app.Parse(args); err != nil {
		return nil, err
	}
	return nvidia.New(o, emit), nil
}

package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/alecthomas/kingpin/v2"

	"github.com/accel-exporter/accel-exporter/collector/solo"
	"github.com/accel-exporter/accel-exporter/internal/compat"
	"github.com/accel-exporter/accel-exporter/internal/compat/counters"
	"github.com/accel-exporter/accel-exporter/internal/exposition"
)

// compatFlags are the flags for users of dcgm-exporter.
type compatFlags struct {
	on        bool
	fields    string
	hostname  string
	hostLabel string
	oldNames  bool
	pods      bool
	podUID    bool
	podLabels []string
	dashes    bool
	jobs      string // a directory
	// ignored are flags of dcgm-exporter without effect, each with the reason.
	ignored []string

	selected []*regexp.Regexp // podLabels
}

func (f *compatFlags) add(app *kingpin.Application) {
	app.Flag(compatFlag, "Serve the families of NVIDIA's dcgm-exporter in addition to those of this exporter, and accept its flags and environment variables: see docs/migrating-from-dcgm-exporter.md.").BoolVar(&f.on)
	app.Flag("dcgm.fields", "Counters file of dcgm-exporter: the DCGM fields to serve and, with DCGM, to read. Reloaded like the configuration file. Default: the fields of dcgm-exporter.").PlaceHolder("FILE").StringVar(&f.fields)
	app.Flag("compat.hostname", "Value of the node label on the families of dcgm-exporter. Default: the host name.").Envar("NODE_NAME").PlaceHolder("NAME").StringVar(&f.hostname)
	app.Flag("compat.hostname-label", "Name of the node label on the families of dcgm-exporter: hostname, Hostname (before dcgm-exporter 4.8.3) or none.").Default("hostname").PlaceHolder("NAME").StringVar(&f.hostLabel)
	app.Flag("compat.old-label-names", "Use the labels uuid, pod_name, pod_namespace and container_name of dcgm-exporter 1 on its families.").BoolVar(&f.oldNames)
	app.Flag("compat.pods", "Add the pod of a device to its dcgm-exporter series.").Default("true").BoolVar(&f.pods)
	app.Flag("compat.pod-uid", "Add the pod's UID to dcgm-exporter series. Needs --kubernetes.pods.").BoolVar(&f.podUID)
	app.Flag("compat.pod-label", "Add to dcgm-exporter series the pod labels whose Kubernetes names match this regular expression (RE2, not anchored). Repeatable. Needs --kubernetes.pods and --kubernetes.pod-label.").PlaceHolder("REGEX").StringsVar(&f.podLabels)
	app.Flag("compat.model-dashes", "Replace spaces by dashes in the model name on dcgm-exporter series.").BoolVar(&f.dashes)
	app.Flag("compat.hpc-jobs", "Add the jobs of a scheduler such as Slurm to dcgm-exporter series. Each file in this directory is named after the index of a GPU, or index.instance of a MIG instance, and has a job id in each line. Read every two seconds.").PlaceHolder("DIR").StringVar(&f.jobs)
}

func (f *compatFlags) check(p *podFlags) error {
	if !slices.Contains([]string{"hostname", "Hostname", "none"}, f.hostLabel) {
		return fmt.Errorf("--compat.hostname-label is %q; hostname, Hostname or none is accepted", f.hostLabel)
	}
	if f.jobs != "" && !f.on {
		return errors.New("--compat.hpc-jobs needs --" + compatFlag)
	}
	if (f.podUID || len(f.podLabels) > 0) && !p.api {
		return errors.New("--compat.pod-uid and --compat.pod-label need --kubernetes.pods")
	}
	for _, text := range f.podLabels {
		re, err := regexp.Compile(text)
		if err != nil {
			return fmt.Errorf("--compat.pod-label: %w", err)
		}
		f.selected = append(f.selected, re)
	}
	return nil
}

// options returns the options of the view. file is the counters file, nil
// without one.
func (f *compatFlags) options(file *counters.File) compat.Options {
	o := compat.Options{Counters: file, OldNamespace: f.oldNames, Pods: f.pods, PodUID: f.podUID, Dashes: f.dashes}
	if f.hostLabel != "none" {
		o.HostnameLabel, o.Hostname = f.hostLabel, f.hostname
		if o.Hostname == "" {
			o.Hostname, _ = os.Hostname() // without a name the label is left out
		}
	}
	if len(f.selected) > 0 {
		o.PodLabels = func(name string) bool {
			return slices.ContainsFunc(f.selected, func(re *regexp.Regexp) bool { return re.MatchString(name) })
		}
	}
	return o
}

// dcgmFields is the counters file, the job directory, and the view built from
// both.
type dcgmFields struct {
	flags *compatFlags
	log   *slog.Logger
	input *input // the counters file, nil without one
	// changed is called after the rows or the view have changed. It is nil
	// until the program is built.
	changed func()

	counters atomic.Pointer[counters.File] // nil without a counters file
	jobs     atomic.Pointer[compat.Jobs]   // nil without a job directory
	view     atomic.Pointer[compat.View]   // nil if dcgm-exporter's families are off
	mu       sync.Mutex                    // locked while a view is built
}

// openFields loads the counters file, if one is named.
func openFields(f *compatFlags, log *slog.Logger) (*dcgmFields, error) {
	d := &dcgmFields{flags: f, log: log}
	if len(f.ignored) > 0 {
		log.Warn("Some flags or variables of dcgm-exporter have no effect", "which", strings.Join(f.ignored, "; "))
	}
	if f.jobs != "" {
		d.jobs.Store(&compat.Jobs{})
	}
	if f.fields == "" {
		d.apply(nil)
		return d, nil
	}
	d.input = fileInput(f.fields, counters.Parse, d.apply)
	apply, err := d.input.load()
	if err != nil {
		return nil, err
	}
	apply()
	return d, nil
}

// apply replaces the rows, and logs those without a value.
func (d *dcgmFields) apply(file *counters.File) {
	d.counters.Store(file)
	d.render()
	v := d.view.Load()
	if v == nil {
		return
	}
	var rows []string
	for _, s := range v.Unserved() {
		rows = append(rows, s.Name+" ("+s.Reason+")")
	}
	if len(rows) > 0 {
		d.log.Info("Some fields of the counters file have no value, or only with DCGM", "fields", strings.Join(rows, ", "))
	}
}

// render rebuilds the view from the current rows and jobs.
func (d *dcgmFields) render() {
	if d.flags.on {
		d.mu.Lock()
		o := d.flags.options(d.counters.Load())
		o.Jobs = d.jobs.Load()
		d.view.Store(compat.New(o))
		d.mu.Unlock()
	}
	if d.changed != nil {
		d.changed()
	}
}

// page returns the current view, nil without one.
func (d *dcgmFields) page() exposition.View {
	if v := d.view.Load(); v != nil {
		return v
	}
	return nil
}

// checkFields reports every mistake in a counters file.
func checkFields(path string) error {
	_, err := fileInput(path, counters.Parse, func(*counters.File) {}).load()
	return err
}

// jobsPoll is the interval at which the job directory is read.
const jobsPoll = 2 * time.Second

// followJobs updates the view from the job directory until ctx is done. A read
// that hangs blocks only this function's reader.
func (d *dcgmFields) followJobs(ctx context.Context) {
	reader := solo.New(func(time.Time) *compat.Jobs { return readJobs(d.flags.jobs) }, nil)
	defer reader.Stop()
	tick := time.NewTicker(jobsPoll)
	defer tick.Stop()
	for {
		reader.Start(time.Now())
		if jobs, ok := reader.Await(ctx.Done()); ok {
			d.applyJobs(jobs)
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// readJobs reads the job directory. Links that lead out of it are not followed:
// others write to it, and its content is on the page.
func readJobs(dir string) *compat.Jobs {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return compat.ReadJobs(os.DirFS(dir)) // fails too, and is counted
	}
	defer root.Close()
	return compat.ReadJobs(root.FS())
}

// applyJobs replaces the jobs if they have changed, and logs rejected entries.
func (d *dcgmFields) applyJobs(jobs *compat.Jobs) {
	before := d.jobs.Load()
	if before.Equal(jobs) {
		return
	}
	d.jobs.Store(jobs)
	d.render()
	if was, is := before.Rejected(), jobs.Rejected(); len(was) > 0 || len(is) > 0 {
		level := slog.LevelInfo
		if len(is) > 0 {
			level = slog.LevelWarn
		}
		d.log.Log(context.Background(), level, "Entries rejected in the job directory, by reason", "dir", d.flags.jobs, "rejected", is)
	}
}

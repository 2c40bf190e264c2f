package main

import (
	"context"
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
	release   string
	fields    string
	hostLabel string

	foreign  foreignOptions
	selected []*regexp.Regexp // foreign.podLabels
}

func (f *compatFlags) add(app *kingpin.Application) {
	app.Flag(compatFlag, "Serve the families of NVIDIA's dcgm-exporter in addition to those of this exporter, and accept its flags and environment variables: see docs/migrating-from-dcgm-exporter.md.").BoolVar(&f.on)
	app.Flag("compat.release", "Release of dcgm-exporter whose default fields are served: 4.8 or 4.9. It also decides whether DCGM_FI_DEV_GPU_UTIL_RATIO in a counters file is a percentage (4.8) or a ratio (4.9); without it that row is left out, and the default is 4.8.").PlaceHolder("RELEASE").EnumVar(&f.release, string(counters.Release48), string(counters.Release49))
	app.Flag("dcgm.fields", "Counters file of dcgm-exporter: the DCGM fields to serve and, with DCGM, to read. Reloaded like the configuration file. Default: the fields of dcgm-exporter.").PlaceHolder("FILE").StringVar(&f.fields)
	app.Flag("compat.hostname-label", "Name of the node label on the families of dcgm-exporter: hostname, Hostname (before dcgm-exporter 4.8.3) or none.").Default("hostname").PlaceHolder("NAME").EnumVar(&f.hostLabel, "hostname", "Hostname", "none")
}

func (f *compatFlags) check() error {
	for _, text := range f.foreign.podLabels {
		re, err := regexp.Compile(text)
		if err != nil {
			return fmt.Errorf("--kubernetes-pod-label-allowlist-regex: %w", err)
		}
		f.selected = append(f.selected, re)
	}
	return nil
}

// rows is the release that the counters file is written for.
func (f *compatFlags) rows() counters.Release { return counters.Release(f.release) }

// options returns the options of the view. file is the counters file, nil
// without one; without a name of the node the label is left out.
func (f *compatFlags) options(file *counters.File, node string) compat.Options {
	x := &f.foreign
	o := compat.Options{Counters: file, Release: f.rows(), OldNamespace: x.oldNames, Pods: !x.noPods, PodUID: x.podUID, Dashes: x.dashes}
	if f.hostLabel != "none" {
		o.HostnameLabel, o.Hostname = f.hostLabel, node
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
	node  string
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
func openFields(f *compatFlags, node string, log *slog.Logger) (*dcgmFields, error) {
	d := &dcgmFields{flags: f, node: node, log: log}
	if len(f.foreign.ignored) > 0 {
		log.Warn("Some flags or variables of dcgm-exporter have no effect", "which", strings.Join(f.foreign.ignored, "; "))
	}
	if f.foreign.jobs != "" {
		d.jobs.Store(&compat.Jobs{})
	}
	if f.fields == "" {
		d.apply(nil)
		return d, nil
	}
	d.input = fileInput(f.fields, f.rows().Parse, d.apply)
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
	if file != nil && len(file.Unread) > 0 {
		d.log.Warn("Rows of the counters file are left out", "rows", file.Unread.Error())
	}
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
		o := d.flags.options(d.counters.Load(), d.node)
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

// checkFields reports every mistake in a counters file, and the rows that are left
// out.
func (f *compatFlags) checkFields(path string) error {
	var file *counters.File
	apply, err := fileInput(path, f.rows().Parse, func(c *counters.File) { file = c }).load()
	if err != nil {
		return err
	}
	apply()
	if len(file.Unread) > 0 {
		return file.Unread
	}
	return nil
}

// jobsPoll is the interval at which the job directory is read. Tests shorten it.
var jobsPoll = 2 * time.Second

// followJobs updates the view from the job directory until ctx is done. A read
// that hangs blocks only this function's reader.
func (d *dcgmFields) followJobs(ctx context.Context) {
	reader := solo.New(func(time.Time) *compat.Jobs { return readJobs(d.flags.foreign.jobs) }, nil)
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
	if len(jobs.Refused) > 0 {
		d.log.Warn("A part of the job directory is not used", "dir", d.flags.foreign.jobs, "why", strings.Join(jobs.Refused, "; "))
	}
}

package main

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/alecthomas/kingpin/v2"

	"github.com/accel-exporter/accel-exporter/internal/compat"
	"github.com/accel-exporter/accel-exporter/internal/compat/counters"
	"github.com/accel-exporter/accel-exporter/internal/exposition"
)

// compatFlags is the command line of what dcgm-exporter's users are used to.
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
	jobs      string // a folder
	// ignored are flags of dcgm-exporter that were given, each with why it has
	// no effect.
	ignored []string

	selected []*regexp.Regexp // podLabels
}

func (f *compatFlags) add(app *kingpin.Application) {
	app.Flag(compatFlag, "Show the families of NVIDIA's dcgm-exporter beside those of this exporter, and take its flags and environment variables: see docs/migrating-from-dcgm-exporter.md.").BoolVar(&f.on)
	app.Flag("dcgm.fields", "Counters file of dcgm-exporter: the DCGM fields to show and, where DCGM is asked, to read. Read again like the configuration file. By default those that dcgm-exporter shows.").PlaceHolder("FILE").StringVar(&f.fields)
	app.Flag("compat.hostname", "Name of this node on the families of dcgm-exporter; by default the host's.").Envar("NODE_NAME").PlaceHolder("NAME").StringVar(&f.hostname)
	app.Flag("compat.hostname-label", "Label of the node's name on them: hostname, Hostname as before dcgm-exporter 4.8.3, or none.").Default("hostname").PlaceHolder("NAME").StringVar(&f.hostLabel)
	app.Flag("compat.old-label-names", "Use the labels uuid, pod_name, pod_namespace and container_name of dcgm-exporter 1 on them.").BoolVar(&f.oldNames)
	app.Flag("compat.pods", "Put the pod that holds a device on its series of them.").Default("true").BoolVar(&f.pods)
	app.Flag("compat.pod-uid", "Put the UID of the pod on them; needs --kubernetes.pods.").BoolVar(&f.podUID)
	app.Flag("compat.pod-label", "Put labels of the pod on them whose names in Kubernetes match this regular expression (RE2, anywhere in the name); repeatable. Needs --kubernetes.pods and --kubernetes.pod-label.").PlaceHolder("REGEX").StringsVar(&f.podLabels)
	app.Flag("compat.model-dashes", "Replace blanks by dashes in the model's name on them.").BoolVar(&f.dashes)
	app.Flag("compat.hpc-jobs", "Put the jobs of a scheduler such as Slurm on them, by files in this folder: each is named after the index of a GPU, or index.instance of a MIG instance, and has the id of a job in each line. Looked at every two seconds.").PlaceHolder("DIR").StringVar(&f.jobs)
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

// options are what the flags say; file is the counters file, nil without one.
func (f *compatFlags) options(file *counters.File) compat.Options {
	o := compat.Options{Counters: file, OldNamespace: f.oldNames, Pods: f.pods, PodUID: f.podUID, Dashes: f.dashes}
	if f.hostLabel != "none" {
		o.HostnameLabel, o.Hostname = f.hostLabel, f.hostname
		if o.Hostname == "" {
			o.Hostname, _ = os.Hostname() // without a name there is no label
		}
	}
	if len(f.selected) > 0 {
		o.PodLabels = func(name string) bool {
			return slices.ContainsFunc(f.selected, func(re *regexp.Regexp) bool { return re.MatchString(name) })
		}
	}
	return o
}

// dcgmFields is the counters file, and the view that is made of it.
type dcgmFields struct {
	flags *compatFlags
	log   *slog.Logger
	// counters are the rows in force, nil where no file is named.
	counters atomic.Pointer[counters.File]
	view     atomic.Pointer[compat.View] // nil where none is asked for
	input    *input                      // nil where no file is named
	// changed is called when other rows have come into force, and shown when
	// another view has.
	changed, shown func()
	// jobs are those of the folder of jobs, nil where none is named.
	jobs      atomic.Pointer[compat.Jobs]
	rendering sync.Mutex // one view is made at a time, of what is latest
}

// openFields loads the counters file, where one is named.
func openFields(f *compatFlags, log *slog.Logger) (*dcgmFields, error) {
	d := &dcgmFields{flags: f, log: log}
	if len(f.ignored) > 0 {
		log.Warn("Some flags or variables of dcgm-exporter have no effect", "which", strings.Join(f.ignored, "; "))
	}
	d.changed, d.shown = func() {}, func() {} // there is nothing yet that they could change
	if f.jobs != "" {
		d.jobs.Store(&compat.Jobs{})
	}
	if f.fields == "" {
		d.take(nil)
		return d, nil
	}
	d.input = fileInput(f.fields, counters.Parse, d.take)
	apply, err := d.input.load()
	if err != nil {
		return nil, err
	}
	apply()
	return d, nil
}

// take puts rows into force, and says once which of them show nothing.
func (d *dcgmFields) take(c *counters.File) {
	d.counters.Store(c)
	defer d.changed()
	if !d.flags.on {
		return
	}
	v := d.render()
	var rows []string
	for _, s := range v.Unserved() {
		rows = append(rows, s.Name+" ("+s.Reason+")")
	}
	if len(rows) > 0 {
		d.log.Info("Some fields of the counters file have no value without DCGM, or none at all", "fields", strings.Join(rows, ", "))
	}
}

// render makes the view of the rows and jobs in force.
func (d *dcgmFields) render() *compat.View {
	d.rendering.Lock()
	defer d.rendering.Unlock()
	o := d.flags.options(d.counters.Load())
	o.Jobs = d.jobs.Load()
	v := compat.New(o)
	d.view.Store(v)
	return v
}

// page is the view in force, nil where none is asked for.
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

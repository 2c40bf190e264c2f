package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/alecthomas/kingpin/v2"
	"github.com/prometheus/common/version"

	"github.com/accel-exporter/accel-exporter/collector"
	"github.com/accel-exporter/accel-exporter/collector/kernellog"
	"github.com/accel-exporter/accel-exporter/internal/config"
	"github.com/accel-exporter/accel-exporter/internal/status"
)

// diagnosis is the output of --json.
type diagnosis struct {
	Version string `json:"version"`
	// User is the numeric id of the user of this process.
	User     int       `json:"user"`
	Observed string    `json:"observed"` // who sampled the node
	Lacking  int       `json:"lacking"`
	Findings []finding `json:"findings"`
}

// States of a finding.
const (
	findingOK    = "ok"
	findingOff   = "off"   // not asked for
	findingNote  = "note"  // missing, and nothing that flags name depends on it
	findingLacks = "LACKS" // missing, and asked for
)

// finding is what the doctor reports of one thing.
type finding struct {
	State    string `json:"state"`
	Check    string `json:"check"`
	Found    string `json:"found"`
	Expected string `json:"expected,omitempty"`
	Mend     string `json:"mend,omitempty"`
}

// doctorCommand is `accel-exporter doctor`: what the status page of the running exporter
// has about flags, files, sources and drivers, or what that of an exporter with the given
// flags would have.
func doctorCommand(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	app := kingpin.New("accel-exporter doctor", `Lists what this node has of what the exporter needs, and how to mend what is missing: as the running exporter finds it, or, with a flag of the exporter or where none runs, as this process finds it.

Exit status: 0 if nothing that is asked for is missing, 1 if something is, 2 if the command line is wrong.`)
	asJSON := app.Flag("json", "Print the findings as JSON.").Bool()
	var ask askFlags
	ask.add(app)
	f := &flags{}
	if err := f.parse(app, args, stdout, stderr); err != nil {
		return err
	}
	d := diagnosis{Version: version.Version, User: os.Geteuid()}
	view, err := f.examine(ctx, &ask, &d)
	if err != nil {
		return err
	}
	d.examine(view)
	if err := d.print(stdout, *asJSON); err != nil {
		return err
	}
	if d.Lacking > 0 {
		return errPrinted
	}
	return nil
}

// examine returns the View of the running exporter, because the permissions of this
// process may differ, or else the View of this process.
func (f *flags) examine(ctx context.Context, ask *askFlags, d *diagnosis) (*status.View, error) {
	exporters := maps.Clone(f.given)
	maps.DeleteFunc(exporters, func(flag, _ string) bool { return slices.Contains([]string{"json", "url", "http.config.file"}, flag) })
	d.Observed = "this process and its workers"
	if len(exporters) == 0 {
		v, err := ask.getStatus(ctx, "")
		if err == nil {
			d.Observed = "the running exporter at " + ask.url
			return v, nil
		}
		if f.asked("url") || !errors.Is(err, syscall.ECONNREFUSED) {
			return nil, err
		}
		d.Observed += ", because no exporter answers at " + ask.url
	}
	return f.sample(ctx), nil
}

// samplePatience is how long the doctor waits for all sources: longer than the
// slowest may take.
const samplePatience = 20 * time.Second

// sample samples the node. It leaves out what would change the node or disturb
// others.
func (f *flags) sample(ctx context.Context) *status.View {
	once := *f
	once.interval = onceInterval
	cfg := config.Default()
	if _, c, err := openConfig(f.configFile, f.alerts.urls); err == nil {
		cfg = c.Config
		cfg.Collect.Interval = 0
	}
	remarks := f.remarks()
	lacks := func(what, found, expected, cure string) {
		remarks = append(remarks, status.Remark{What: what, Found: found, Expected: expected, Cure: cure, Tone: "warn"})
	}
	for _, file := range checkedFiles(f) {
		if file.path == "" {
			continue
		}
		if err := file.check(file.path); err != nil {
			lacks("file", err.Error(), "a file without a mistake", "correct what is named; the exporter starts with none of these mistakes. Only the rows of unknown fields in the file of --dcgm.fields are left out")
		}
	}
	allocs, err := openPods(&once.pods, f.sources.procfs, cfg.Allocation, discardedLog)
	if err != nil {
		lacks("sampling", err.Error(), "every source answers", "see the sources")
		once.pods.api = false
		allocs, _ = openPods(&once.pods, f.sources.procfs, cfg.Allocation, discardedLog) // which cannot fail
	}
	node := newSampling(&once.sampleFlags, cfg, allocs, discardedLog)
	waiting, done := context.WithTimeout(ctx, samplePatience)
	defer done()
	if _, err := node.once(waiting); err != nil {
		lacks("sampling", err.Error(), "every source answers", "see the sources")
	}
	page := statusOptions(f, node, nil)
	page.Remarks = func() []status.Remark { return remarks }
	return status.New(page).View()
}

// examine adds the findings from a View.
func (d *diagnosis) examine(v *status.View) {
	reads := map[string]string{status.Kubelet: "the kubelet lists the devices of pods", status.APIServer: "the kubelet or the API server lists the pods of this node"}
	var names []string
	for _, spec := range specs {
		names = append(names, spec.name)
		reads[spec.name] = "reads " + spec.help
	}
	for _, name := range append(names, status.Kubelet, status.APIServer) {
		f := finding{State: findingOff, Check: "source " + name, Found: "not enabled"}
		if i := slices.IndexFunc(v.Sources, func(s status.Source) bool { return s.Name == name }); i >= 0 {
			f.source(&v.Sources[i], reads[name])
		}
		d.Findings = append(d.Findings, f)
	}
	for _, r := range v.Remarks {
		state := map[string]string{"good": findingOK, "neutral": findingNote}[r.Tone]
		d.Findings = append(d.Findings, finding{cmp.Or(state, findingLacks), r.What, r.Found, r.Expected, r.Cure})
	}
	for _, x := range d.Findings {
		if x.State == findingLacks {
			d.Lacking++
		}
	}
}

// source sets the finding of a source that is enabled.
func (f *finding) source(s *status.Source, reads string) {
	f.Found, f.Expected = firstLines(cmp.Or(s.Err, s.Meaning, s.Reason)), reads
	if s.Doc != "" {
		f.Mend = "docs/" + s.Doc
	}
	f.Mend = strings.TrimSpace(s.Cure + " " + f.Mend)
	switch {
	case s.Word == "up":
		*f = finding{State: findingOK, Check: f.Check, Found: reads}
	case s.Tone == "neutral" && s.Reason != collector.SourceStarting:
		*f = finding{State: findingOff, Check: f.Check, Found: f.Found}
	case s.Err != "" && s.Reason == "": // up, in part
		f.State, f.Mend = findingNote, "accel-exporter who shows the devices"
	case s.Name == kernellog.Name: // most installations may not read it
		f.State = findingNote
	default:
		f.State = findingLacks
	}
}

// print writes the findings.
func (d *diagnosis) print(w io.Writer, asJSON bool) error {
	if asJSON {
		return writeJSON(w, d)
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, "accel-exporter %s, user %d. Observed by %s.\n\n", d.Version, d.User, d.Observed)
	for _, f := range d.Findings {
		fmt.Fprintf(&b, "%-5s  %-18s  %s\n", f.State, f.Check, indented(f.Found))
		for _, more := range []struct{ name, text string }{{"expected", f.Expected}, {"mend", f.Mend}} {
			if more.text != "" {
				fmt.Fprintf(&b, "%27s%s: %s\n", "", more.name, indented(more.text))
			}
		}
	}
	switch d.Lacking {
	case 0:
		fmt.Fprintln(&b, "\nNothing that was asked for is missing.")
	case 1:
		fmt.Fprintln(&b, "\n1 thing is missing.")
	default:
		fmt.Fprintf(&b, "\n%d things are missing.\n", d.Lacking)
	}
	_, err := b.WriteTo(w)
	return err
}

// indented returns a text whose further lines are below the first.
func indented(s string) string {
	return strings.ReplaceAll(s, "\n", "\n"+strings.Repeat(" ", 27))
}

// firstLines bounds a text of errors.
func firstLines(s string) string {
	const most = 6
	lines := strings.Split(s, "\n")
	if more := len(lines) - most; more > 0 {
		lines = append(lines[:most], fmt.Sprintf("and %d more", more))
	}
	return strings.Join(lines, "\n")
}

package incidents

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/accel-exporter/accel-exporter/internal/config/strict"
	"github.com/accel-exporter/accel-exporter/internal/config/strict/wording"
	"github.com/accel-exporter/accel-exporter/internal/sim"
)

// Incident is one file of the corpus. Times are times of the play, counted from
// when the exporter has sampled everything once.
type Incident struct {
	// Name is that of the file, without .yaml.
	Name string
	// What is a sentence that describes the incident.
	What string `yaml:"what"`
	// Scenario is a scenario of the simulators, or a node of
	// fixtures/incidents/nodes.
	Scenario string `yaml:"scenario"`
	// Flags are more flags of the exporter; DIR in them is the directory of
	// the play. Config and Baseline are the content of its configuration file
	// and of its baseline.
	Flags    []string `yaml:"flags"`
	Config   string   `yaml:"config"`
	Baseline string   `yaml:"baseline"`
	// DeviceFiles has the node make files below /dev, which needs CAP_MKNOD.
	DeviceFiles bool `yaml:"device_files"`
	// Prometheus has a Prometheus scrape the exporter and evaluate the rules in its
	// stead: of this node alone, or beside another node that stays healthy.
	Prometheus string `yaml:"prometheus" accept:"alone|beside"`
	// KubeStateMetrics are series, in the text format, that this Prometheus scrapes
	// from kube-state-metrics.
	KubeStateMetrics string `yaml:"kube_state_metrics"`
	// Lasts is when the play ends.
	Lasts    time.Duration `yaml:"lasts" accept:"1s..10m"`
	Timeline []Step        `yaml:"timeline"`
	// Expect lists the alerts that must arrive. A day without is healthy:
	// nothing must arrive, whatever it looks like.
	Expect []Expectation `yaml:"expect"`
	// Never lists alerts that must not arrive, alerts of severity info too. An
	// alert that is neither expected nor allowed must not arrive either, unless
	// its severity is info.
	Never []Pattern `yaml:"never"`
	// Allow lists alerts that may arrive or not.
	Allow []Pattern `yaml:"allow"`
	// Pages is how many notifications reach the pager through the shipped
	// configuration of Alertmanager, where several devices fail for reasons of
	// their own; otherwise it is one if an expected alert is critical.
	Pages int `yaml:"pages" accept:"2..10"`
	// Tickets is how many notifications the tickets get; 0 leaves that open.
	Tickets int `yaml:"tickets" accept:"1..10"`
}

// Healthy reports whether nothing is wrong in the incident.
func (i *Incident) Healthy() bool { return len(i.Expect) == 0 }

// Step is one thing that happens. Exactly one of its actions is given.
type Step struct {
	At time.Duration `yaml:"at" accept:"0s..10m"`
	// Inject and Clear are arguments of accel-sim inject and accel-sim clear. Lines of
	// Inject happen at once, as what a driver does within a millisecond.
	Inject string `yaml:"inject"`
	Clear  string `yaml:"clear"`
	// Exporter stops or starts the exporter.
	Exporter string `yaml:"exporter" accept:"stop|start"`
	// Release and Attach name a source whose hardware the exporter has to
	// close, and to open again.
	Release string `yaml:"release"`
	Attach  string `yaml:"attach"`
	// Config is the new content of the configuration file.
	Config string `yaml:"config"`
}

// Check finds a step that does nothing or several things.
func (s *Step) Check() error {
	given := 0
	for _, text := range []string{s.Inject, s.Clear, s.Exporter, s.Release, s.Attach, s.Config} {
		if text != "" {
			given++
		}
	}
	if given != 1 {
		return fmt.Errorf("found %d actions; accepted is one of inject, clear, exporter, release, attach, config", given)
	}
	return nil
}

// faults are the lines of Inject.
func (s *Step) faults() []string { return strings.Split(strings.TrimSpace(s.Inject), "\n") }

// inject does all that the step injects to a simulation.
func (s *Step) inject(to *sim.State) error {
	for _, fault := range s.faults() {
		if err := to.Inject(strings.Fields(fault)); err != nil {
			return err
		}
	}
	return nil
}

// String is the step as a report names it.
func (s *Step) String() string {
	for _, a := range [][2]string{{"inject ", strings.Join(s.faults(), "; ")}, {"clear ", s.Clear}, {"exporter ", s.Exporter}, {"release ", s.Release}, {"attach ", s.Attach}, {"config ", strings.TrimSpace(s.Config)}} {
		if a[1] != "" {
			return a[0] + a[1]
		}
	}
	return "nothing"
}

// Pattern names alerts. Labels are the labels that an alert must have at least;
// of the label device, gpu N is the GPU of that index.
type Pattern struct {
	Alert  string            `yaml:"alert"`
	Labels map[string]string `yaml:"labels"`
}

// Check finds a pattern that names no alert.
func (p *Pattern) Check() error {
	if p.Alert == "" {
		return errors.New("found no alert; accepted is the name of one")
	}
	return nil
}

func (p Pattern) String() string {
	var labels []string
	for name, value := range p.Labels {
		labels = append(labels, name+"="+value)
	}
	slices.Sort(labels)
	if len(labels) == 0 {
		return p.Alert
	}
	return p.Alert + "{" + strings.Join(labels, ",") + "}"
}

// Expectation is an alert that must arrive.
type Expectation struct {
	Alert  string            `yaml:"alert"`
	Labels map[string]string `yaml:"labels"`
	// Annotations must contain these texts.
	Annotations map[string]string `yaml:"annotations"`
	// Since is when its cause happened; 0 stands for the first step. What
	// arrives before that does not count.
	Since time.Duration `yaml:"since" accept:"0s..10m"`
	// By is when it must have arrived.
	By time.Duration `yaml:"by" accept:"1s..10m"`
	// Resolves is when it must have resolved, or never.
	Resolves Resolution `yaml:"resolves"`
}

// Check finds an expectation that cannot be met.
func (e *Expectation) Check() error {
	switch {
	case e.Alert == "":
		return errors.New("found no alert; accepted is the name of one")
	case e.By <= e.Since:
		return strict.At(fmt.Errorf("found %s; accepted is a time after %s, when its cause happens", e.By, e.Since), "by")
	}
	return nil
}

// Resolution is when an alert must have resolved: a time, never within the
// play, or, as the zero value, whenever it likes.
type Resolution struct {
	By    time.Duration
	Never bool
}

// UnmarshalText accepts a duration and never.
func (r *Resolution) UnmarshalText(text []byte) error {
	if string(text) == "never" {
		r.Never = true
		return nil
	}
	d, err := time.ParseDuration(string(text))
	if err != nil || d < time.Second || d > 10*time.Minute {
		return fmt.Errorf("found %s; accepted is never, or a duration from 1s to 10m", wording.Quote(string(text)))
	}
	r.By = d
	return nil
}

// Check finds what does not fit in the incident.
func (i *Incident) Check() error {
	switch {
	case i.What == "":
		return errors.New("found no what; accepted is a sentence that describes the incident")
	case i.Scenario == "":
		return errors.New("found no scenario; accepted is the name of one")
	case i.Lasts == 0:
		return errors.New("found no lasts; accepted is when the play ends")
	case i.KubeStateMetrics != "" && i.Prometheus != "beside":
		return strict.At(errors.New("found series that no Prometheus scrapes; accepted with prometheus: beside"), "kube_state_metrics")
	}
	before := time.Duration(0)
	for n, s := range i.Timeline {
		if s.At < before || s.At >= i.Lasts {
			return strict.At(fmt.Errorf("found %s; accepted is a time from %s, that of the step before, to less than %s, when the play ends", s.At, before, i.Lasts), "timeline", n, "at")
		}
		before = s.At
	}
	for n, e := range i.Expect {
		if max(e.By, e.Resolves.By) > i.Lasts {
			return strict.At(fmt.Errorf("found %s; accepted is a time up to %s, when the play ends", max(e.By, e.Resolves.By), i.Lasts), "expect", n)
		}
	}
	return nil
}

// Parse reads the content of a file; the error is of type strict.Mistakes.
func Parse(file string, data []byte) (*Incident, error) {
	i := &Incident{}
	if err := strict.Decode(file, data, i); err != nil {
		return nil, err
	}
	// An empty file has no section that could be checked.
	if err := i.Check(); err != nil {
		return nil, strict.Mistakes{{File: file, Line: 1, Text: err.Error()}}
	}
	i.Name = strings.TrimSuffix(filepath.Base(file), ".yaml")
	return i, nil
}

// Load reads all incidents of a directory, sorted by name. The error has every
// mistake of every file.
func Load(dir string) ([]*Incident, error) {
	paths, err := filepath.Glob(filepath.Join(dir, "*.yaml"))
	if err != nil {
		return nil, err
	}
	if len(paths) == 0 {
		return nil, fmt.Errorf("%s: %w: no incidents", dir, fs.ErrNotExist)
	}
	var all []*Incident
	var errs []error
	for _, path := range paths {
		data, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		i, err := Parse(path, data)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		all = append(all, i)
	}
	return all, errors.Join(errs...)
}

package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"os"
	"os/signal"
	"regexp"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/accel-exporter/accel-exporter/internal/config"
	"github.com/accel-exporter/accel-exporter/internal/config/strict"
	"github.com/accel-exporter/accel-exporter/internal/status"
	"github.com/accel-exporter/accel-exporter/rules/alertmanager"
)

// configPoll is the interval of checks for changed files. On Kubernetes a change
// is the replacement of a ConfigMap's ..data link. Tests shorten it.
var configPoll = 2 * time.Second

// input is a file that configures the exporter: the configuration file, a
// baseline, a catalogue, rule files.
type input struct {
	path    string
	changed func() (bool, error)
	// load reads the file and returns the function that applies it.
	load func() (apply func(), err error)
	// missing is whether the last check found no file.
	missing bool
}

// configuration is the content of the configuration file.
type configuration struct {
	*config.Config
	alertmanager alertmanager.Settings // with the addresses of the command line
}

// openConfig returns the configuration file and its content, with more Alertmanagers.
// Without a path there is no file, and the content is the defaults.
func openConfig(path string, urls []string) (*strict.File, *configuration, error) {
	if path == "" {
		cfg, err := parseConfig(path, nil, urls)
		return nil, cfg, err
	}
	file := strict.NewFile(path)
	cfg, err := readConfig(file, urls)
	return file, cfg, err
}

func readConfig(file *strict.File, urls []string) (*configuration, error) {
	data, err := file.Read()
	if err != nil {
		return nil, fmt.Errorf("configuration: %w", err)
	}
	return parseConfig(file.Path(), data, urls)
}

// parseConfig decodes the configuration file, all of it or nothing.
func parseConfig(path string, data []byte, urls []string) (*configuration, error) {
	cfg, settings := config.Default(), alertmanager.Settings{}
	cfg.Alertmanager = &settings
	if err := strict.Decode(path, data, cfg); err != nil {
		return nil, err
	}
	return &configuration{cfg, settings.WithURLs(urls...)}, nil
}

// configInput is the configuration file as an input.
func configInput(file *strict.File, urls []string, prepare func(*configuration) (func(), error)) *input {
	return &input{path: file.Path(), changed: file.Changed, load: func() (func(), error) {
		cfg, err := readConfig(file, urls)
		if err != nil {
			return nil, err
		}
		return prepare(cfg)
	}}
}

// printConfigError prints every mistake on its own line.
func printConfigError(w io.Writer, err error) error {
	fmt.Fprintln(w, err)
	return errPrinted
}

// reloader keeps the configuration current. A new configuration is applied when
// all of its files are valid; until then the previous one remains active.
type reloader struct {
	inputs  []*input // used by run only
	applied func()   // called after all inputs are applied
	log     *slog.Logger
	mu      sync.Mutex
	refused map[string]refusal // by path
	// ok and success are the metrics of reloads.
	ok, success prometheus.Gauge
}

// refusal is why the content of a file is not in force.
type refusal struct {
	since time.Time
	err   error
}

func newReloader(inputs []*input, applied func(), log *slog.Logger) *reloader {
	r := &reloader{inputs: inputs, applied: applied, log: log, refused: map[string]refusal{}}
	r.ok = prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "accel_config_last_reload_successful",
		Help: "1 if the last configuration that was read is in force; 0 if it was refused and an older one is in force.",
	})
	r.success = prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "accel_config_last_reload_success_timestamp_seconds",
		Help: "Time at which a configuration was last accepted, seconds since the epoch.",
	})
	r.accepted()
	return r
}

func (r *reloader) accepted() {
	r.ok.Set(1)
	r.success.SetToCurrentTime()
}

// run reloads on SIGHUP and when a file changes.
func (r *reloader) run(ctx context.Context) {
	hup := make(chan os.Signal, 1)
	signal.Notify(hup, syscall.SIGHUP)
	defer signal.Stop(hup)
	var look <-chan time.Time
	if len(r.inputs) > 0 {
		tick := time.NewTicker(configPoll)
		defer tick.Stop()
		look = tick.C
	}
	for {
		select {
		case <-ctx.Done():
			return
		case <-hup:
			r.reload("signal")
		case <-look:
			if r.look() {
				r.reload("change")
			}
		}
	}
}

// look reports whether a file changed or reappeared.
func (r *reloader) look() bool {
	due := false
	for _, in := range r.inputs {
		changed, err := in.changed()
		switch {
		case err != nil && !in.missing:
			in.missing = true
			r.rejected(in.path, "change", err)
		case err == nil && (changed || in.missing):
			in.missing = false
			due = true
		}
	}
	return due
}

// reload reads all files and applies them if all are valid.
func (r *reloader) reload(why string) {
	applies := make([]func(), 0, len(r.inputs))
	for _, in := range r.inputs {
		apply, err := in.load()
		if err != nil {
			r.rejected(in.path, why, err)
			continue
		}
		r.mu.Lock()
		delete(r.refused, in.path)
		r.mu.Unlock()
		applies = append(applies, apply)
	}
	if len(applies) < len(r.inputs) {
		return
	}
	r.accepted()
	for i, apply := range applies {
		apply()
		r.log.Info("Configuration loaded", "file", r.inputs[i].path, "why", why)
	}
	r.applied()
}

// rejected records that the current content of a file was rejected.
func (r *reloader) rejected(path, why string, err error) {
	r.ok.Set(0)
	r.mu.Lock()
	r.refused[path] = refusal{time.Now(), err}
	r.mu.Unlock()
	r.log.Error("Configuration rejected, the previous one remains active", "file", path, "why", why, "err", err)
}

// foundValue is the value in the text of a mistake.
var foundValue = regexp.MustCompile(`found (?:"(?:\\.|[^"\\])*"…?|the \w+ [^;,]+)`)

// refusals are the files whose content is not in force, for the status page. They have
// no values of the files, which can be passwords: the log has them.
func (r *reloader) refusals() (list []status.Remark) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, path := range slices.Sorted(maps.Keys(r.refused)) {
		list = append(list, status.Remark{
			What: "configuration", Found: foundValue.ReplaceAllString(r.refused[path].err.Error(), "found another value"),
			Expected: "a file without a mistake; until then, what was read before stays in force",
			Cure:     "Correct the file: it is read again when it changes", Tone: "bad", Since: r.refused[path].since,
		})
	}
	return list
}

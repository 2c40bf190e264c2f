package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/accel-exporter/accel-exporter/internal/config"
)

// configPoll is how often the configuration file is looked at for a change,
// which on Kubernetes is the swap of a ConfigMap's ..data link.
const configPoll = 2 * time.Second

// openConfig returns the configuration file and its content, or no file and
// the defaults where none is named.
func openConfig(path string) (*config.File, *config.Config, error) {
	if path == "" {
		return nil, config.Default(), nil
	}
	file := config.NewFile(path)
	cfg, err := file.Load()
	return file, cfg, err
}

// printConfigError prints every mistake on a line of its own.
func printConfigError(w io.Writer, err error) error {
	fmt.Fprintln(w, err)
	return errPrinted
}

// reloader keeps the configuration current: the last good one stays in force
// until a better one is whole. It is also the collector of the metrics that
// say so.
type reloader struct {
	file     *config.File // nil where none is named; run's alone
	apply    func(*config.Config)
	log      *slog.Logger
	requests chan chan error

	mu      sync.Mutex
	ok      bool
	success time.Time
}

func newReloader(file *config.File, apply func(*config.Config), log *slog.Logger) *reloader {
	return &reloader{file: file, apply: apply, log: log, requests: make(chan chan error), ok: true, success: time.Now()}
}

// run reloads on SIGHUP, on request and when the file changes.
func (r *reloader) run(ctx context.Context) {
	hup := make(chan os.Signal, 1)
	signal.Notify(hup, syscall.SIGHUP)
	defer signal.Stop(hup)
	var look <-chan time.Time
	if r.file != nil {
		tick := time.NewTicker(configPoll)
		defer tick.Stop()
		look = tick.C
	}
	missing := false
	for {
		select {
		case <-ctx.Done():
			return
		case <-hup:
			_ = r.reload("signal") // it logs its error
		case answer := <-r.requests:
			answer <- r.reload("request")
		case <-look:
			changed, err := r.file.Changed()
			switch {
			case err != nil && !missing:
				missing = true
				r.refused("change", err)
			case err == nil && (changed || missing):
				missing = false
				_ = r.reload("change")
			}
		}
	}
}

// now reloads and reports the outcome.
func (r *reloader) now(ctx context.Context) error {
	answer := make(chan error, 1)
	select {
	case r.requests <- answer:
	case <-ctx.Done():
		return ctx.Err()
	}
	return <-answer
}

func (r *reloader) reload(why string) error {
	if r.file == nil {
		return errors.New("there is no configuration file: --config.file is not set")
	}
	cfg, err := r.file.Load()
	if err != nil {
		r.refused(why, err)
		return err
	}
	r.mu.Lock()
	r.ok, r.success = true, time.Now()
	r.mu.Unlock()
	r.apply(cfg)
	r.log.Info("Configuration loaded", "file", r.file.Path(), "why", why)
	return nil
}

// refused notes that what the file holds, or that it is gone, is not in
// force.
func (r *reloader) refused(why string, err error) {
	r.mu.Lock()
	r.ok = false
	r.mu.Unlock()
	r.log.Error("Configuration is not accepted; the last good one stays in force", "file", r.file.Path(), "why", why, "err", err)
}

var (
	reloadOK = prometheus.NewDesc("accel_config_last_reload_successful",
		"1 if the configuration in force is the one last read; 0 if that one was refused and an older one is in force.", nil, nil)
	reloadTime = prometheus.NewDesc("accel_config_last_reload_success_timestamp_seconds",
		"When a configuration was last accepted, seconds since the epoch.", nil, nil)
)

// Describe implements prometheus.Collector.
func (r *reloader) Describe(ch chan<- *prometheus.Desc) { ch <- reloadOK; ch <- reloadTime }

// Collect implements prometheus.Collector.
func (r *reloader) Collect(ch chan<- prometheus.Metric) {
	r.mu.Lock()
	defer r.mu.Unlock()
	ok := 0.0
	if r.ok {
		ok = 1
	}
	ch <- prometheus.MustNewConstMetric(reloadOK, prometheus.GaugeValue, ok)
	ch <- prometheus.MustNewConstMetric(reloadTime, prometheus.GaugeValue, float64(r.success.UnixMilli())/1000)
}

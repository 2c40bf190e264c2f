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
const configPoll = 5 * time.Second

// loadConfig reads the file, or yields the defaults where there is none.
func loadConfig(path string) (*config.Config, error) {
	if path == "" {
		return config.Default(), nil
	}
	return config.Load(path)
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
	path     string
	apply    func(*config.Config)
	log      *slog.Logger
	requests chan chan error

	mu      sync.Mutex
	ok      bool
	success time.Time
}

func newReloader(path string, apply func(*config.Config), log *slog.Logger) *reloader {
	return &reloader{path: path, apply: apply, log: log, requests: make(chan chan error), ok: true, success: time.Now()}
}

// run reloads on SIGHUP, on request and when the file changes.
func (r *reloader) run(ctx context.Context) {
	hup := make(chan os.Signal, 1)
	signal.Notify(hup, syscall.SIGHUP)
	defer signal.Stop(hup)
	var changed <-chan time.Time
	var file *config.File
	if r.path != "" {
		tick := time.NewTicker(configPoll)
		defer tick.Stop()
		changed, file = tick.C, config.NewFile(r.path)
	}
	for {
		select {
		case <-ctx.Done():
			return
		case <-hup:
			_ = r.reload("signal") // has been logged
		case answer := <-r.requests:
			answer <- r.reload("request")
		case <-changed:
			// A file that cannot be read is reported when it is loaded.
			if yes, err := file.Changed(); yes && err == nil {
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
	if r.path == "" {
		return errors.New("there is no configuration file: --config.file is not set")
	}
	cfg, err := config.Load(r.path)
	r.mu.Lock()
	if r.ok = err == nil; r.ok {
		r.success = time.Now()
	}
	r.mu.Unlock()
	if err != nil {
		r.log.Error("Configuration is not accepted; the last good one stays in force", "file", r.path, "why", why, "err", err)
		return err
	}
	r.apply(cfg)
	r.log.Info("Configuration loaded", "file", r.path, "why", why)
	return nil
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

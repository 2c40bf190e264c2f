package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	stdlog "log"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	versioncollector "github.com/prometheus/client_golang/prometheus/collectors/version"
	"github.com/prometheus/common/promslog"
	"github.com/prometheus/common/version"
	"github.com/prometheus/exporter-toolkit/web"

	"github.com/accel-exporter/accel-exporter/collector"
	"github.com/accel-exporter/accel-exporter/internal/config"
	"github.com/accel-exporter/accel-exporter/internal/exposition"
	"github.com/accel-exporter/accel-exporter/internal/exposition/status"
	"github.com/accel-exporter/accel-exporter/internal/judge/baseline"
	"github.com/accel-exporter/accel-exporter/internal/judge/health"
	"github.com/accel-exporter/accel-exporter/internal/strict"
	"github.com/accel-exporter/accel-exporter/internal/trace"
)

// shutdownPatience bounds the scrapes in progress when the exporter stops.
const shutdownPatience = 3 * time.Second

// run runs the exporter until ctx is done or an error prevents it. Tests call it
// like main.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	f, err := parseFlags(args, stdout, stderr)
	if err != nil {
		return err
	}
	if f.configCheck {
		return check(f, stdout, stderr)
	}
	tune(2) // a scrape and a sample at the same time
	lines := newLogQueue(f.log.Writer)
	defer lines.flush(flushPatience)
	f.log.Writer = lines
	log := promslog.New(f.log)
	log.Info("Starting accel-exporter", "version", version.Info(), "build", version.BuildContext())
	for _, w := range f.warnings() {
		log.Warn("Flag without effect", "why", w)
	}

	file, cfg, err := openConfig(f)
	if err != nil {
		return printConfigError(lines, err)
	}
	if err := checkWebConfig(*f.web.WebConfigFile); err != nil {
		return printConfigError(lines, err)
	}
	allocs, err := openPods(&f.pods, f.sources.procfs, cfg.Allocation, log)
	if err != nil {
		return err
	}
	j, err := openJudges(&f.judges, f.sources.procfs, allocs.judge)
	if err != nil {
		return printConfigError(lines, err)
	}
	fields, err := openFields(&f.compat, log)
	if err != nil {
		return printConfigError(lines, err)
	}
	sender, err := openTraces(f, log)
	if err != nil {
		return err
	}
	names, err := openIdentities(f, log)
	if err != nil {
		return err
	}
	p := newProgram(f, cfg.Config, allocs, j, fields, log)
	p.registry.MustRegister(lines.counter())
	if p.alerts, err = openAlerts(f, cfg.alertmanager, p.exporter.Read, log); err != nil {
		return printConfigError(stderr, err)
	}
	if sender != nil {
		p.traces = followTraces(sender, f, allocs, p.sampler)
		p.registry.MustRegister(p.traces)
	}
	p.names = names
	p.page = p.newStatusPage()
	p.addSources() // last, because sources start goroutines
	names.recall(p.sampler)
	p.watch(file, j)
	return p.serve(ctx)
}

// checkedFile is a file that --config.check reads.
type checkedFile struct {
	flag, path string
	check      func(path string) error
}

// checkedFiles are all files that flags name.
func checkedFiles(f *flags) []checkedFile {
	return []checkedFile{
		{"--config.file", f.configFile, func(string) error {
			_, cfg, err := openConfig(f)
			if err == nil {
				_, err = newNotifier(cfg.alertmanager, nil)
			}
			return err
		}},
		{"--baseline.file", f.judges.baseline, func(path string) error { _, err := baseline.Load(path); return err }},
		{"--health.catalogue", f.judges.catalogue, func(path string) error { _, err := health.Load(path); return err }},
		{"--dcgm.fields", f.compat.fields, checkFields},
		{"--rules.file", strings.Join(f.alerts.files, ", "), func(string) error { _, err := f.alerts.rules(); return err }},
		{"--otlp.headers-file", f.traces.headersFile, checkHeaders},
		{"--otlp.ca-file", f.traces.caFile, checkCAs},
		{"--web.config.file", *f.web.WebConfigFile, checkWebConfig},
	}
}

// check is --config.check: it prints every mistake in every file.
func check(f *flags, stdout, stderr io.Writer) error {
	var named []string
	none, good := true, true
	for _, file := range checkedFiles(f) {
		named = append(named, file.flag)
		if file.path == "" {
			continue
		}
		none = false
		if err := file.check(file.path); err != nil {
			good = false
			fmt.Fprintln(stderr, err)
			continue
		}
		fmt.Fprintf(stdout, "%s: ok\n", file.path)
	}
	warnings := f.warnings()
	if set, err := f.alerts.rules(); err == nil {
		warnings = append(warnings, unknownMetrics(set)...)
	}
	for _, w := range warnings {
		fmt.Fprintln(stderr, "warning:", w)
	}
	switch {
	case none:
		return fmt.Errorf("--config.check needs one of %s", strings.Join(named, ", "))
	case !good:
		return errPrinted
	}
	return nil
}

// program is a running exporter.
type program struct {
	flags    *flags
	log      *slog.Logger
	sampler  *collector.Sampler
	pods     *pods
	names    *identities
	alerts   *alerts         // nil if no rules are evaluated
	traces   *trace.Follower // nil if no traces are sent
	workers  map[string]*collector.Process
	releases releases
	states   atomic.Int32 // concurrent requests for the state
	answers  struct{ state, series, allocations, rules answer }
	reload   *reloader
	config   atomic.Pointer[config.Config]
	exporter *exposition.Exporter
	registry *prometheus.Registry
	fields   *dcgmFields
	page     *status.Page
	showing  sync.Mutex
}

func newProgram(f *flags, cfg *config.Config, allocs *pods, j *judges, fields *dcgmFields, log *slog.Logger) *program {
	p := &program{flags: f, log: log, pods: allocs, fields: fields, workers: map[string]*collector.Process{}, registry: prometheus.NewRegistry()}
	p.config.Store(cfg)
	p.sampler = collector.NewSampler(settings(f, cfg))
	j.add(p.sampler)
	p.registry.MustRegister(
		collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
		versioncollector.NewCollector("accel_exporter"),
	)
	p.exporter = exposition.New(p.sampler.Latest, p.registry, exposition.Options{
		MaxInFlight:  f.maxRequests,
		WriteTimeout: 30 * time.Second,
		Log:          log,
		Registry:     p.registry,
	})
	p.show()
	p.applyFields(p.fields.counters.Load())
	p.fields.changed = func() {
		p.show()
		p.applyFields(p.fields.counters.Load())
	}
	return p
}

// watch registers the files that are reloaded when they change.
func (p *program) watch(file *strict.File, j *judges) {
	inputs := j.inputs
	if file != nil {
		inputs = append(inputs, configInput(file, p.flags, p.prepare))
	}
	if p.fields.input != nil {
		inputs = append(inputs, p.fields.input)
	}
	if p.alerts != nil {
		p.registry.MustRegister(p.alerts.engine, p.alerts.notifier)
		if p.alerts.input != nil {
			inputs = append(inputs, p.alerts.input)
		}
	}
	// Without Wake, a new file would apply only with the next Snapshot.
	p.reload = newReloader(inputs, func() { p.sampler.Wake("") }, p.log)
	p.registry.MustRegister(p.reload)
}

// settings returns the settings of the Sampler, from the configuration file or
// else from flags.
func settings(f *flags, cfg *config.Config) collector.Settings {
	s := collector.DefaultSettings()
	s.Interval = f.interval
	if cfg.Collect.Interval > 0 {
		s.Interval = cfg.Collect.Interval
	}
	s.ForgetAfter = cfg.Devices.ForgetAfter
	s.XidBaseline = cfg.Xid.BaselineExtra
	s.Timeout = map[string]time.Duration{}
	for _, spec := range specs {
		s.Timeout[spec.name] = *f.sources.timeout[spec.name]
		if t := spec.timeout(cfg); t > 0 {
			s.Timeout[spec.name] = t
		}
	}
	return s
}

// show applies the current settings to the page. The last call wins.
func (p *program) show() {
	p.showing.Lock()
	defer p.showing.Unlock()
	p.exporter.Apply(served(p.flags, p.config.Load(), p.fields))
}

// detail returns the level of detail, from the configuration file or else from the
// flag.
func detail(f *flags, cfg *config.Config) string { return cmp.Or(cfg.Metrics.Detail, f.detail) }

// served returns the settings of the page.
func served(f *flags, cfg *config.Config, fields *dcgmFields) exposition.Settings {
	dropped := cfg.Dropped()
	drop := func(family string) bool {
		_, found := slices.BinarySearch(dropped, family)
		return found
	}
	return exposition.Settings{
		MaxSeries: cfg.Metrics.MaxSeries,
		Drop:      drop,
		Standard:  detail(f, cfg) == standardDetail,
		View:      fields.page(),
	}
}

// prepare checks files that a configuration refers to, and returns the function
// that applies it.
func (p *program) prepare(cfg *configuration) (apply func(), err error) {
	if p.alerts == nil {
		if _, err := newNotifier(cfg.alertmanager, nil); err != nil {
			return nil, err
		}
		return func() { p.apply(cfg.Config) }, nil
	}
	notify, err := p.alerts.notifier.Prepare(cfg.alertmanager)
	if err != nil {
		return nil, fmt.Errorf("alertmanager: %w", err)
	}
	return func() { p.apply(cfg.Config); notify() }, nil
}

// apply applies a new configuration. Workers whose arguments change are
// restarted.
func (p *program) apply(cfg *config.Config) {
	before := p.config.Swap(cfg)
	p.show()
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
func (p *program) restart(name string) {
	if err := p.workers[name].Restart(); err != nil {
		p.log.Error("Worker keeps its previous settings: it could not be restarted", "collector", name, "err", err)
	}
	p.sampler.Wake(name)
}

// serve runs every loop until ctx is done or the listener fails.
func (p *program) serve(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var open connections
	var passwords guard
	server := &http.Server{
		Handler:           passwords.inside(p.handler()),
		ConnState:         open.track,
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       10 * time.Second,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    64 << 10,
		ErrorLog:          stdlog.New(&serverLog{log: p.log, lines: flood{log: p.log}}, "", 0),
	}
	server.BaseContext = func(net.Listener) context.Context {
		passwords.wrap(server)
		return ctx
	}
	var loops sync.WaitGroup
	loops.Go(func() {
		if err := p.sampler.Run(ctx); err != nil {
			p.log.Error("Sampler ended with an error", "err", err)
		}
	})
	loops.Go(func() { p.pods.run(ctx, func() { p.sampler.Wake("") }) })
	if p.alerts != nil {
		loops.Go(func() { p.alerts.run(ctx, p.sampler) })
	}
	if p.traces != nil {
		loops.Go(func() { p.traces.Run(ctx) })
	}
	loops.Go(func() { p.logChanges(ctx) })
	if p.flags.statusPage {
		loops.Go(func() { p.page.Run(ctx) })
	}
	loops.Go(func() { p.names.run(ctx, p.sampler, p.pods) })
	loops.Go(func() { p.reload.run(ctx) })
	if p.flags.compat.jobs != "" {
		loops.Go(func() { p.fields.followJobs(ctx) })
	}
	if p.flags.releaseDir != "" {
		loops.Go(func() { p.watchReleases(ctx) })
	}
	loops.Go(func() {
		<-ctx.Done()
		stop, done := context.WithTimeout(context.Background(), shutdownPatience)
		defer done()
		if server.Shutdown(stop) != nil {
			server.Close()
		}
	})
	p.announce()
	err := web.ListenAndServe(server, p.flags.web, p.log)
	if errors.Is(err, http.ErrServerClosed) {
		err = nil
	}
	cancel()
	loops.Wait()
	p.log.Info("Stopped")
	return err
}

// announce logs the address of the page.
func (p *program) announce() {
	scheme := "http"
	if *p.flags.web.WebConfigFile != "" {
		scheme = "http(s)"
	}
	for _, a := range *p.flags.web.WebListenAddresses {
		host, port, err := net.SplitHostPort(a)
		if err != nil || strings.Contains(a, "://") {
			continue // a socket, or an error that the listener reports
		}
		if host == "" {
			host = "localhost"
		}
		p.log.Info("Serving metrics", "url", fmt.Sprintf("%s://%s%s", scheme, net.JoinHostPort(host, port), p.flags.telemetryPath))
	}
}

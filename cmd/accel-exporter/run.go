package main

import (
	"context"
	"errors"
	"fmt"
	"io"
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
	"github.com/accel-exporter/accel-exporter/internal/judge/baseline"
	"github.com/accel-exporter/accel-exporter/internal/judge/health"
	"github.com/accel-exporter/accel-exporter/internal/ruleproc"
	"github.com/accel-exporter/accel-exporter/internal/strict"
	"github.com/accel-exporter/accel-exporter/internal/trace"
)

// shutdownPatience is how long scrapes under way may take once the exporter
// has been told to stop.
const shutdownPatience = 3 * time.Second

// run is the whole exporter: it returns when ctx is done or when it cannot
// go on. Tests call it as main does.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	f, err := parseFlags(args, stdout, stderr)
	if errors.Is(err, errDone) {
		return nil
	}
	if err != nil {
		return err
	}
	if f.configCheck {
		return check(f, stdout, stderr)
	}
	tune(2) // a scrape and a sample at the same time
	log := promslog.New(f.log)
	log.Info("Starting accel-exporter", "version", version.Info(), "build", version.BuildContext())

	file, cfg, content, err := openConfig(f.configFile)
	if err != nil {
		return printConfigError(stderr, strict.Join(err, checkAlertmanager(f, nil, content, log)))
	}
	if err := web.Validate(*f.web.WebConfigFile); err != nil {
		return fmt.Errorf("%s: %w", *f.web.WebConfigFile, err)
	}
	held, err := openPods(&f.pods, f.sources.procfs, cfg.Allocation, log)
	if err != nil {
		return err
	}
	j, err := openJudges(&f.judges, f.sources.procfs, held.judge)
	if err != nil {
		return printConfigError(stderr, err)
	}
	fields, err := openFields(&f.compat, log)
	if err != nil {
		return printConfigError(stderr, err)
	}
	var p *program
	rules, err := openAlerts(ctx, f, cfg, content, func(w io.Writer) error { return p.exporter.WriteText(w) }, log)
	if err != nil {
		return printConfigError(stderr, err)
	}
	sender, err := openTraces(f, log)
	if err != nil {
		if rules != nil {
			rules.Close()
		}
		return err
	}
	p = newProgram(f, cfg, held, j, fields, log)
	p.alerts = rules
	if sender != nil {
		p.traces = followTraces(sender, f, held, p.sampler)
		p.registry.MustRegister(p.traces)
	}
	p.watch(file, j)
	return p.serve(ctx)
}

// check is --config.check: every mistake in every file that is named.
func check(f *flags, stdout, stderr io.Writer) error {
	if f.configFile == "" && *f.web.WebConfigFile == "" && f.judges.baseline == "" && f.judges.catalogue == "" && f.compat.fields == "" && len(f.alerts.files) == 0 && f.traces.headersFile == "" && f.traces.caFile == "" {
		return errors.New("--config.check needs --config.file, --web.config.file, --baseline.file, --health.catalogue, --dcgm.fields, --rules.file, --otlp.headers-file or --otlp.ca-file")
	}
	log, good := promslog.New(f.log), true
	for _, file := range []struct {
		path string
		load func(string) error
	}{
		{f.configFile, func(path string) error {
			_, cfg, content, err := openConfig(path)
			return strict.Join(err, checkAlertmanager(f, cfg, content, log))
		}},
		{f.judges.baseline, func(path string) error { _, err := baseline.Load(path); return err }},
		{f.judges.catalogue, func(path string) error { _, err := health.Load(path); return err }},
		{f.compat.fields, checkFields},
		{strings.Join(f.alerts.files, ", "), func(string) error {
			files, unread := readRules(f.alerts.files)
			return strict.Join(unread, checkRules(f, ruleproc.Settings{Rules: files}, log))
		}},
		{f.traces.headersFile, checkHeaders},
		{f.traces.caFile, checkCAs},
		{*f.web.WebConfigFile, func(path string) error {
			if err := web.Validate(path); err != nil {
				return fmt.Errorf("%s: %w", path, err)
			}
			return nil
		}},
	} {
		if file.path == "" {
			continue
		}
		if err := file.load(file.path); err != nil {
			good = false
			fmt.Fprintln(stderr, err)
			continue
		}
		fmt.Fprintf(stdout, "%s: ok\n", file.path)
	}
	if !good {
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
	alerts   *alerts         // nil where no rules are evaluated
	traces   *trace.Follower // nil where none are sent
	workers  map[string]*collector.Process
	releases releases
	states   atomic.Int32 // requests for /debug/state under way
	reload   *reloader
	config   atomic.Pointer[config.Config]
	exporter *exposition.Exporter
	registry *prometheus.Registry
	fields   *dcgmFields
	showing  sync.Mutex
}

func newProgram(f *flags, cfg *config.Config, held *pods, j *judges, fields *dcgmFields, log *slog.Logger) *program {
	p := &program{flags: f, log: log, pods: held, fields: fields, workers: map[string]*collector.Process{}, registry: prometheus.NewRegistry()}
	p.config.Store(cfg)
	p.sampler = collector.NewSampler(settings(f, cfg))
	p.addSources()
	p.sampler.AddJudge(j.health)
	p.sampler.AddJudge(j.allocation) // repeats the verdict of health
	p.sampler.AddJudge(j.baseline)   // asks who holds a device
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
	p.fields.shown = p.show
	p.fields.changed = func() {
		p.show()
		p.applyFields(p.fields.counters.Load())
	}
	return p
}

// watch has the files that the exporter was given read again when they change.
func (p *program) watch(file *config.File, j *judges) {
	inputs := j.inputs
	if file != nil {
		inputs = append(inputs, configInput(file, p.prepare))
	}
	if p.fields.input != nil {
		inputs = append(inputs, p.fields.input)
	}
	if p.alerts != nil {
		p.registry.MustRegister(p.alerts)
		if p.alerts.input != nil {
			inputs = append(inputs, p.alerts.input)
		}
	}
	// What a judge is told shows in the next Snapshot, which may be far off.
	p.reload = newReloader(inputs, func() { p.sampler.Wake("") }, p.log)
	p.registry.MustRegister(p.reload)
}

// settings are the Sampler's, from the file where it says, else the flags.
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

// show has the page follow what is in force. Whoever calls it last has the
// latest of all.
func (p *program) show() {
	p.showing.Lock()
	defer p.showing.Unlock()
	p.exporter.Apply(served(p.config.Load(), p.fields))
}

// served are the exporter's settings.
func served(cfg *config.Config, fields *dcgmFields) exposition.Settings {
	dropped := cfg.Dropped()
	drop := func(family string) bool {
		_, found := slices.BinarySearch(dropped, family)
		return found
	}
	return exposition.Settings{MaxSeries: cfg.Metrics.MaxSeries, Drop: drop, View: fields.page()}
}

// prepare has the rule engine check what of a configuration is its, and
// returns what puts all of it into force. wrong is what is wrong with the rest.
func (p *program) prepare(cfg *config.Config, content strict.Content, wrong error) (func(), error) {
	if p.alerts == nil {
		if err := strict.Join(wrong, checkAlertmanager(p.flags, cfg, content, p.log)); err != nil {
			return nil, err
		}
		return func() { p.apply(cfg) }, nil
	}
	alertmanager, err := p.alerts.Prepare(context.Background(), ruleproc.Alertmanager, func(s *ruleproc.Settings) { s.Config = content })
	if err := strict.Join(wrong, err); err != nil {
		return nil, err
	}
	return func() { p.apply(cfg); alertmanager() }, nil
}

// apply puts a new configuration into force. A worker whose arguments it
// changes is replaced.
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
		if err := w.Restart(); err != nil {
			p.log.Error("Worker still runs with its former settings", "collector", spec.name, "err", err)
		}
		p.sampler.Wake(spec.name)
	}
}

// serve runs every loop until ctx is done or the listener fails.
func (p *program) serve(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	server := &http.Server{
		Handler:           p.handler(),
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       10 * time.Second,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    64 << 10,
		ErrorLog:          slog.NewLogLogger(p.log.Handler(), slog.LevelWarn),
		BaseContext:       func(net.Listener) context.Context { return ctx },
	}
	var loops sync.WaitGroup
	loops.Go(func() {
		if err := p.sampler.Run(ctx); err != nil {
			p.log.Error("Sampler ended with an error", "err", err)
		}
	})
	loops.Go(func() { p.pods.run(ctx, func() { p.sampler.Wake("") }) })
	if p.alerts != nil {
		loops.Go(func() { p.alerts.follow(ctx, p.sampler) })
	}
	if p.traces != nil {
		loops.Go(func() { p.traces.Run(ctx) })
	}
	loops.Go(func() { p.logChanges(ctx) })
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

// announce logs where a person finds the page.
func (p *program) announce() {
	scheme := "http"
	if *p.flags.web.WebConfigFile != "" {
		scheme = "http(s)"
	}
	for _, a := range *p.flags.web.WebListenAddresses {
		host, port, err := net.SplitHostPort(a)
		if err != nil || strings.Contains(a, "://") {
			continue // a socket or a mistake that the listener will name
		}
		if host == "" {
			host = "localhost"
		}
		p.log.Info("Serving metrics", "url", fmt.Sprintf("%s://%s%s", scheme, net.JoinHostPort(host, port), p.flags.telemetryPath))
	}
}

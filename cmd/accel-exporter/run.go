package main

import (
	"context"
	"fmt"
	"io"
	"maps"
	"os"
	"os/signal"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"

	"github.com/prometheus/common/promslog"
	"github.com/prometheus/common/version"
	"github.com/prometheus/exporter-toolkit/web"
	"go.yaml.in/yaml/v3"
	"golang.org/x/crypto/bcrypt"

	"github.com/accel-exporter/accel-exporter/collector/kernellog"
	"github.com/accel-exporter/accel-exporter/internal/config/strict"
	"github.com/accel-exporter/accel-exporter/internal/judge/baseline"
	"github.com/accel-exporter/accel-exporter/internal/judge/health"
	"github.com/accel-exporter/accel-exporter/internal/status"
	"github.com/accel-exporter/accel-exporter/internal/trace"
)

// runExporter runs the exporter until ctx is done or an error prevents it. Tests call it
// like main.
func runExporter(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	f, err := parseFlags(args, stdout, stderr)
	if err != nil {
		return err
	}
	if f.configCheck {
		return checkFiles(f, stdout, stderr)
	}
	// A log pipe without a reader must not end the exporter.
	signal.Ignore(syscall.SIGPIPE)
	log := promslog.New(f.log)
	log.Info("Starting accel-exporter", "version", version.Info(), "build", version.BuildContext())
	for _, w := range f.warnings() {
		log.Warn("Flag without effect", "why", w)
	}

	file, cfg, err := openConfig(f.configFile, f.alerts.urls)
	if err != nil {
		return printConfigError(stderr, err)
	}
	if err := checkWebConfig(*f.web.WebConfigFile); err != nil {
		return printConfigError(stderr, err)
	}
	allocs, err := openPods(&f.pods, f.sources.procfs, cfg.Allocation, log)
	if err != nil {
		return err
	}
	defer allocs.close() // also where the exporter does not start
	names, err := openIdentities(f.stateDir, &f.sources, log)
	if err != nil {
		return err
	}
	if f.stateDir == "" && len(cfg.alertmanager.Endpoints) > 0 && !*f.sources.enabled[kernellog.Name] {
		log.Warn("A restart of the exporter ends alerts on faults that only an event reported; --path.state keeps them")
	}
	j, err := openJudges(&f.judges, f.sources.procfs, names, allocs.judge)
	if err != nil {
		return printConfigError(stderr, err)
	}
	fields, err := openFields(&f.compat, f.pods.nodeOrHost(), log)
	if err != nil {
		return printConfigError(stderr, err)
	}
	sender, err := openTraces(&f.traces, &f.pods, log)
	if err != nil {
		return err
	}
	node := newSampling(&f.sampleFlags, cfg.Config, allocs, log)
	j.add(node.sampler)
	serve := newServing(&f.webFlags, node, fields)
	node.applyFields(fields.counters.Load())
	fields.changed = func() {
		serve.show()
		node.applyFields(fields.counters.Load())
	}
	if serve.alerts, err = openAlerts(&f.alerts, targetLabels(f.pods.nodeOrHost(), *f.web.WebListenAddresses, f.alerts.labels), cfg.alertmanager, serve.exporter, log); err != nil {
		return printConfigError(stderr, err)
	}
	var traces *trace.Follower
	if sender != nil {
		traces = followTraces(sender, &f.pods, allocs, node.sampler)
	}
	serve.recorder = openRecorder(&f.bundles, node, log)
	page := statusOptions(f, node, serve.alerts)
	page.Remarks = func() []status.Remark { return slices.Concat(f.remarks(), serve.reload.refusals(), serve.unwritten()) }
	page.Bundles, page.Permits = serve.recorder.List, f.permits
	serve.page = status.New(page)
	node.sampler.AddJudge(serve.recorder) // last of the judges, because it records what they conclude
	if f.bundles.directory != "" {
		serve.registry.MustRegister(serve.recorder)
	}
	node.addSources() // last, because sources start goroutines
	node.sampler.Recall(names.recalled...)
	serve.watch(file, f, j)

	// The loops of the exporter end with ctx, or when the listener fails.
	ctx, cancel := context.WithCancel(ctx)
	var loops sync.WaitGroup
	loops.Go(func() { node.run(ctx) })
	if serve.alerts != nil {
		loops.Go(func() { serve.alerts.run(ctx, node.sampler) })
	}
	if traces != nil {
		loops.Go(func() { traces.Run(ctx) })
	}
	loops.Go(func() { names.run(ctx, node.sampler) })
	if f.bundles.directory != "" {
		loops.Go(func() { serve.recorder.Run(ctx) })
	}
	loops.Go(func() { serve.reload.run(ctx) })
	if f.compat.foreign.jobs != "" {
		loops.Go(func() { fields.followJobs(ctx) })
	}
	err = serve.run(ctx)
	cancel()
	loops.Wait()
	log.Info("Stopped")
	return err
}

// checkedFile is a file that --config.check reads.
type checkedFile struct {
	path  string
	check func(path string) error
}

// checkedFiles are all files that flags name.
func checkedFiles(f *flags) []checkedFile {
	return []checkedFile{
		{f.configFile, func(string) error {
			_, cfg, err := openConfig(f.configFile, f.alerts.urls)
			if err == nil {
				_, err = newNotifier(cfg.alertmanager, nil)
			}
			return err
		}},
		{f.judges.baseline, func(path string) error { _, err := baseline.Load(path); return err }},
		{f.judges.catalogue, func(path string) error { _, err := health.Load(path); return err }},
		{f.compat.fields, f.compat.checkFields},
		{strings.Join(f.alerts.files, ", "), func(string) error { _, err := f.alerts.rules(); return err }},
		{f.traces.headersFile, checkHeaders},
		{f.traces.caFile, checkCAs},
		{f.bundles.headersFile, checkHeaders},
		{*f.web.WebConfigFile, checkWebConfig},
	}
}

// checkWebConfig reports a mistake in the file of --web.config.file.
func checkWebConfig(path string) error {
	if path == "" {
		return nil
	}
	if err := badPassword(path); err != nil {
		return err
	}
	if err := web.Validate(path); err != nil {
		return fmt.Errorf("%s: %s", path, repeated.ReplaceAllString(err.Error(), "$1…$2"))
	}
	return nil
}

// badPassword names the user in a web configuration whose password is no bcrypt hash.
func badPassword(path string) error {
	var config struct {
		Users map[string]yaml.Node `yaml:"basic_auth_users"`
	}
	data, err := os.ReadFile(path)
	if err != nil || yaml.Unmarshal(data, &config) != nil {
		return nil // web.Validate reports it
	}
	for _, user := range slices.Sorted(maps.Keys(config.Users)) {
		hash := config.Users[user]
		if _, err := bcrypt.Cost([]byte(hash.Value)); err != nil {
			return fmt.Errorf("%s:%d: basic_auth_users.%s: found no bcrypt hash; accepted is the output of htpasswd -nBC 10 %[3]s, after the colon", path, hash.Line, user)
		}
	}
	return nil
}

// repeated matches what an error of the parser repeats of a web configuration: values,
// and keys that are no names. The file may be another one, given by mistake.
var repeated = regexp.MustCompile("`[^`]*`|(field )[^\n]*[^\\w\n][^\n]*( not found)")

// checkFiles is --config.check: it prints every mistake in every file.
func checkFiles(f *flags, stdout, stderr io.Writer) error {
	good := true
	fmt.Fprintln(stdout, "flags: ok") // or they had been refused before
	for _, file := range checkedFiles(f) {
		if file.path == "" {
			continue
		}
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
	if !good {
		return errPrinted
	}
	return nil
}

// watch registers the files that are reloaded when they change.
func (p *serving) watch(file *strict.File, f *flags, j *judges) {
	inputs := j.inputs
	if file != nil {
		inputs = append(inputs, configInput(file, f.alerts.urls, func(cfg *configuration) (func(), error) {
			return p.prepare(cfg)
		}))
	}
	if p.fields.input != nil {
		inputs = append(inputs, p.fields.input)
	}
	if p.alerts != nil {
		p.registry.MustRegister(append(p.alerts.engine.Metrics(), p.alerts.notifier)...)
		if p.alerts.input != nil {
			inputs = append(inputs, p.alerts.input)
		}
	}
	// Without Wake, a new file would apply only with the next Snapshot.
	p.reload = newReloader(inputs, func() { p.node.sampler.Wake("") }, p.log)
	p.registry.MustRegister(p.reload.ok, p.reload.success)
}

// prepare checks files that a configuration refers to, and returns the function
// that applies it.
func (p *serving) prepare(cfg *configuration) (apply func(), err error) {
	notify := func() {}
	if p.alerts == nil {
		_, err = newNotifier(cfg.alertmanager, nil)
	} else if notify, err = p.alerts.notifier.Prepare(cfg.alertmanager); err != nil {
		err = fmt.Errorf("alertmanager: %w", err)
	}
	if err != nil {
		return nil, err
	}
	return func() {
		p.node.apply(cfg.Config)
		p.show()
		notify()
	}, nil
}

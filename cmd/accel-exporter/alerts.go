package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/alecthomas/kingpin/v2"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/accel-exporter/accel-exporter/collector"
	"github.com/accel-exporter/accel-exporter/internal/config"
	"github.com/accel-exporter/accel-exporter/notify"
	"github.com/accel-exporter/accel-exporter/rules"
)

// alertFlags is the command line of the rules that are evaluated here.
type alertFlags struct {
	files       []string
	interval    time.Duration
	labels      map[string]string
	externalURL string
	urls        []string
}

func (f *alertFlags) add(app *kingpin.Application) {
	f.labels = map[string]string{}
	app.Flag("rules.file", "Rule files to evaluate on this node, a path or a pattern; repeatable. By default the built-in ones, where --alertmanager.url is given, and none where it is not. Read again like the configuration file.").PlaceHolder("GLOB").StringsVar(&f.files)
	app.Flag("rules.interval", "Time between two evaluations of the rules; after an event they are evaluated at once.").Default("15s").DurationVar(&f.interval)
	app.Flag("rules.target-label", "Label that a scrape of this exporter gives its series, so that alerts from here and from Prometheus are the same; repeatable. By default job=accel-exporter and instance=NODE:PORT.").PlaceHolder("NAME=VALUE").StringMapVar(&f.labels)
	app.Flag("web.external-url", "Where people reach this exporter, for links in alerts. By default http://NODE:PORT.").PlaceHolder("URL").StringVar(&f.externalURL)
	app.Flag("alertmanager.url", "Alertmanager to tell of alerts, as http://HOST:9093; repeatable. Further ones, and how to log in, are in the configuration file.").PlaceHolder("URL").StringsVar(&f.urls)
}

func (f *alertFlags) check() error {
	var errs []error
	if f.interval < time.Second || f.interval > time.Hour {
		errs = append(errs, fmt.Errorf("--rules.interval is %s; 1s to 1h is accepted", f.interval))
	}
	for _, u := range f.urls {
		if err := notify.CheckURL(u); err != nil {
			errs = append(errs, fmt.Errorf("--alertmanager.url: %w", err))
		}
	}
	return errors.Join(errs...)
}

// alerts is the rule engine and who is told of what it finds.
type alerts struct {
	engine   *rules.Engine
	notifier *notify.Notifier
	input    *input // the rule files; nil for those that are built in
}

// openAlerts returns nil where no rules are to be evaluated.
func openAlerts(f *flags, cfg *config.Config, page prometheus.TransactionalGatherer, log *slog.Logger) (*alerts, error) {
	settings := cfg.Alertmanager.WithURLs(f.alerts.urls...)
	if len(f.alerts.files) == 0 && len(settings.Endpoints) == 0 {
		return nil, nil
	}
	set := rules.Builtin()
	if len(f.alerts.files) > 0 {
		var err error
		if set, err = rules.Load(f.alerts.files...); err != nil {
			return nil, err
		}
	}
	a := &alerts{}
	var err error
	if a.notifier, err = notify.New(notify.Options{Settings: settings, Log: log}); err != nil {
		return nil, fmt.Errorf("alertmanager: %w", err)
	}
	target := targetLabels(f)
	a.engine, err = rules.New(rules.Options{
		Gather: page, Rules: set, Labels: target, ExternalLabels: settings.ExternalLabels,
		ExternalURL: cmp.Or(strings.TrimSuffix(f.alerts.externalURL, "/"), "http://"+target["instance"]),
		Interval:    f.alerts.interval, Notify: a.send, Log: log,
	})
	if err != nil {
		return nil, err
	}
	if len(f.alerts.files) > 0 {
		a.input = rulesInput(f.alerts.files, a.engine.Apply)
	}
	return a, nil
}

// targetLabels are those that a scrape would give.
func targetLabels(f *flags) map[string]string {
	node := f.pods.node
	if node == "" {
		node, _ = os.Hostname() // "" makes an instance of the port alone
	}
	port := strings.TrimPrefix(defaultAddress, ":")
	if a := *f.web.WebListenAddresses; len(a) > 0 {
		if _, p, err := net.SplitHostPort(a[0]); err == nil {
			port = p
		}
	}
	labels := map[string]string{"job": "accel-exporter", "instance": net.JoinHostPort(node, port)}
	if f.pods.node != "" {
		labels["node"] = f.pods.node
	}
	maps.Copy(labels, f.alerts.labels)
	return labels
}

func (a *alerts) send(list []rules.Alert) {
	told := make([]notify.Alert, len(list))
	for i := range list {
		x := &list[i]
		told[i] = notify.Alert{
			Labels: x.Labels, Annotations: x.Annotations,
			StartsAt: x.FiredAt, EndsAt: x.EndsAt(), GeneratorURL: x.GeneratorURL,
		}
	}
	a.notifier.Send(told...)
}

// run evaluates until ctx is done. What is queued by then is still sent.
func (a *alerts) run(ctx context.Context, s *collector.Sampler) {
	var loops sync.WaitGroup
	defer loops.Wait()
	loops.Go(func() { a.engine.Run(ctx) })
	loops.Go(func() { a.notifier.Run(ctx) })
	seen := map[string]standing{}
	for {
		next := s.Next()
		if snap := s.Latest(); snap != nil && turned(seen, snap) {
			a.engine.Trigger()
		}
		select {
		case <-next:
		case <-ctx.Done():
			return
		}
	}
}

// standing is how a device stands, as far as that cannot wait for a tick.
type standing struct{ down, health string }

// turned reports whether a Snapshot has an event, or a device that stands
// otherwise than in the one before.
func turned(seen map[string]standing, snap *collector.Snapshot) bool {
	due := len(snap.News) > 0
	for i := range snap.Devices {
		d := &snap.Devices[i]
		now := standing{down: d.Down}
		if d.Verdict != nil {
			now.health = d.Verdict.State
		}
		if was, known := seen[d.ID]; !known || was != now {
			due, seen[d.ID] = true, now
		}
	}
	if len(seen) > len(snap.Devices) {
		present := make(map[string]bool, len(snap.Devices))
		for i := range snap.Devices {
			present[snap.Devices[i].ID] = true
		}
		maps.DeleteFunc(seen, func(id string, _ standing) bool { return !present[id] })
		due = true
	}
	return due
}

// rulesInput are rule files as an input.
func rulesInput(patterns []string, apply func(*rules.Set)) *input {
	known := fingerprint(patterns)
	pending := known
	return &input{
		path: strings.Join(patterns, ", "),
		// A change is told by the second look that finds the files in the same
		// state: one that is just being written is left alone.
		changed: func() (bool, error) {
			now := fingerprint(patterns)
			changed := now == pending && now != known
			if pending = now; changed {
				known = now
			}
			return changed, nil
		},
		load: func() (func(), error) {
			known = fingerprint(patterns)
			pending = known
			set, err := rules.Load(patterns...)
			if err != nil {
				return nil, err
			}
			return func() { apply(set) }, nil
		},
	}
}

// fingerprint changes with the files that patterns match, by what they
// resolve to: Kubernetes updates a ConfigMap by swapping a link.
func fingerprint(patterns []string) string {
	var all []string
	for _, p := range patterns {
		paths, _ := filepath.Glob(p) // rules.Load says what is wrong with it
		for _, path := range paths {
			info, err := os.Stat(path)
			if err != nil {
				all = append(all, path)
				continue
			}
			all = append(all, fmt.Sprint(path, " ", info.Size(), " ", info.ModTime().UnixNano()))
		}
	}
	slices.Sort(all)
	return strings.Join(all, "\n")
}

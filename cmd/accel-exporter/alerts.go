package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"strings"
	"sync"
	"time"

	"github.com/alecthomas/kingpin/v2"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/common/model"

	"github.com/accel-exporter/accel-exporter/collector"
	"github.com/accel-exporter/accel-exporter/rules/alertmanager"
	"github.com/accel-exporter/accel-exporter/rules/engine"
)

// alertFlags is the command line of the rules that are evaluated on the node.
type alertFlags struct {
	files       []string
	builtin     bool
	interval    time.Duration
	labels      map[string]string
	externalURL string
	urls        []string
}

func (f *alertFlags) add(app *kingpin.Application) {
	f.labels = map[string]string{}
	app.Flag("rules.file", "Rule files to evaluate on this node, a path or a pattern; repeatable. By default the built-in rules with --rules.builtin or an Alertmanager, else none. Reloaded like the configuration file.").PlaceHolder("GLOB").StringsVar(&f.files)
	app.Flag("rules.builtin", "Evaluate the built-in rules without an Alertmanager: for the command alerts and the status page.").BoolVar(&f.builtin)
	app.Flag("rules.interval", "Time between two evaluations of the rules. An event triggers an evaluation at once.").Default("15s").SetValue((*duration)(&f.interval))
	app.Flag("rules.target-label", "Label that a scrape of this exporter adds to its series, so that alerts from here and from Prometheus are equal; repeatable. By default job=accel-exporter, node=NODE and instance=NODE:PORT.").PlaceHolder("NAME=VALUE").SetValue(labels(f.labels))
	app.Flag("web.external-url", "Address of this exporter for links in alerts. By default http://NODE:PORT.").PlaceHolder("URL").StringVar(&f.externalURL)
	app.Flag("alertmanager.url", "Alertmanager to send alerts to, such as http://HOST:9093; repeatable. The configuration file can add more, with credentials.").PlaceHolder("URL").StringsVar(&f.urls)
}

func (f *alertFlags) check() error {
	if f.builtin && len(f.files) > 0 {
		return errors.New("--rules.builtin evaluates the built-in rules, which --rules.file replaces: give one of them")
	}
	if err := within("rules.interval", f.interval, time.Second, time.Hour); err != nil {
		return err
	}
	for name := range f.labels {
		if !model.LegacyValidation.IsValidLabelName(name) {
			return fmt.Errorf("--rules.target-label: %q is no label name; letters, digits and underscores are accepted, without a digit at the beginning", name)
		}
	}
	for _, u := range f.urls {
		if err := alertmanager.CheckURL(u); err != nil {
			return fmt.Errorf("--alertmanager.url: %w", err)
		}
	}
	return nil
}

// rules returns the rules of --rules.file, else the built-in ones.
func (f *alertFlags) rules() (*engine.Set, error) {
	if len(f.files) > 0 {
		return engine.Load(f.files...)
	}
	return engine.Builtin(), nil
}

// alerts are the rule engine and the notifier.
type alerts struct {
	engine   *engine.Engine
	notifier *alertmanager.Notifier
	input    *input // the files of the rules; nil for the built-in rules
}

// openAlerts returns nil if no rules are to be evaluated: no flag gives rules, and
// there is no Alertmanager.
func openAlerts(f *alertFlags, target map[string]string, settings alertmanager.Settings, page prometheus.Gatherer, log *slog.Logger) (*alerts, error) {
	if !f.builtin && len(f.files) == 0 && len(settings.Endpoints) == 0 {
		return nil, nil
	}
	set, err := f.rules()
	notifier, badSettings := newNotifier(settings, log)
	if err := errors.Join(err, badSettings); err != nil {
		return nil, err
	}
	warnUnknown(set, log)
	a := &alerts{notifier: notifier}
	a.engine, err = engine.New(engine.Options{
		Page: page, Rules: set, Labels: target, ExternalLabels: settings.ExternalLabels, Interval: f.interval,
		ExternalURL: cmp.Or(strings.TrimSuffix(f.externalURL, "/"), "http://"+target["instance"]),
		Notify:      notifier.Send, Log: log,
	})
	if err != nil {
		return nil, err
	}
	if len(f.files) > 0 {
		a.input = rulesInput(f, a.engine, log)
	}
	return a, nil
}

func newNotifier(settings alertmanager.Settings, log *slog.Logger) (*alertmanager.Notifier, error) {
	n, err := alertmanager.New(alertmanager.Options{Settings: settings, Log: log})
	if err != nil {
		return nil, fmt.Errorf("alertmanager: %w", err)
	}
	return n, nil
}

// targetLabels are the labels that a scrape adds. Without a name of the node the
// instance is the port alone.
func targetLabels(node string, addresses []string, more map[string]string) map[string]string {
	port := strings.TrimPrefix(defaultAddress, ":")
	if len(addresses) > 0 {
		if _, p, err := net.SplitHostPort(addresses[0]); err == nil {
			port = p
		}
	}
	labels := map[string]string{"job": "accel-exporter", "instance": net.JoinHostPort(node, port)}
	if node != "" {
		labels["node"] = node // alerts on devices are identified by it
	}
	maps.Copy(labels, more)
	return labels
}

// run evaluates rules and sends alerts until ctx is done, and then for a few
// seconds the alerts that are queued. It starts with the first Snapshot.
func (a *alerts) run(ctx context.Context, s *collector.Sampler) {
	var loops sync.WaitGroup
	defer loops.Wait()
	loops.Go(func() { a.notifier.Run(ctx) })
	follow(ctx, s, func(before, snap *collector.Snapshot) {
		if before == nil {
			loops.Go(func() { a.engine.Run(ctx) })
		}
		if len(snap.News) > 0 || len(snap.Since(before)) > 0 {
			a.engine.Trigger()
		}
	})
}

const noRules = "no rules are evaluated; start the exporter with --rules.builtin, --rules.file or --alertmanager.url"

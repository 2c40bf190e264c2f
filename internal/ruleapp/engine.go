package ruleapp

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/common/expfmt"

	"github.com/accel-exporter/accel-exporter/internal/ruleproc"
	"github.com/accel-exporter/accel-exporter/internal/strict"
	notify "github.com/accel-exporter/accel-exporter/rules/alertmanager"
	rules "github.com/accel-exporter/accel-exporter/rules/engine"
)

// engine is the rules and the notifier, as the exporter asks for them.
type engine struct {
	parent *ruleproc.Parent
	page   *page
	log    *slog.Logger

	mu       sync.Mutex
	rules    *rules.Engine // nil until the settings are there
	notifier *notify.Notifier
	stop     context.CancelFunc
	loops    sync.WaitGroup
	changed  chan struct{} // there is something to tell
	large    sync.Once     // too many alerts to hand on
}

func newEngine(p *ruleproc.Parent) *engine {
	handler := slog.NewJSONHandler(p.Log(), &slog.HandlerOptions{Level: slog.LevelInfo, ReplaceAttr: readable})
	return &engine{parent: p, page: newPage(p), log: slog.New(handler), stop: func() {}, changed: make(chan struct{}, 1)}
}

// readable has durations stand in the log as people write them.
func readable(_ []string, a slog.Attr) slog.Attr {
	if a.Value.Kind() == slog.KindDuration {
		a.Value = slog.StringValue(a.Value.Duration().String())
	}
	return a
}

// Prepare implements ruleproc.Engine.
func (e *engine) Prepare(s *ruleproc.Settings, part ruleproc.Part) (func(), int, error) {
	if part == ruleproc.Everything {
		return e.create(s)
	}
	e.mu.Lock()
	engine, notifier := e.rules, e.notifier
	e.mu.Unlock()
	switch {
	case engine == nil:
		return nil, 0, errors.New("the engine has no settings yet")
	case part == ruleproc.Rules:
		set, err := parse(s)
		if err != nil {
			return nil, 0, err
		}
		return func() { engine.Apply(set) }, 0, nil
	}
	settings, err := alertmanager(s)
	if err != nil {
		return nil, 0, err
	}
	apply, err := notifier.Prepare(settings)
	if err != nil {
		return nil, 0, fmt.Errorf("alertmanager: %w", err)
	}
	return func() { apply(); e.tell() }, len(settings.Endpoints), nil
}

// create makes an engine of settings. All that is wrong with them is said at
// once.
func (e *engine) create(s *ruleproc.Settings) (func(), int, error) {
	set, wrongRules := parse(s)
	settings, wrong := alertmanager(s)
	if err := strict.Join(wrongRules, wrong); err != nil {
		return nil, 0, err
	}
	notifier, err := notify.New(notify.Options{Settings: settings, Log: e.log, Changed: e.tell})
	if err != nil {
		return nil, 0, fmt.Errorf("alertmanager: %w", err)
	}
	engine, err := rules.New(rules.Options{
		Gather: e.page, Rules: set, Labels: s.Labels, ExternalLabels: settings.ExternalLabels, ExternalURL: s.ExternalURL,
		Interval: s.Interval, Notify: send(notifier), Evaluated: e.tell, Log: e.log,
	})
	if err != nil {
		return nil, 0, err
	}
	var standing rules.Standing
	if len(s.Standing) > 0 {
		if err := json.Unmarshal(s.Standing, &standing); err != nil {
			e.log.Error("Alerts of the engine before are not understood and begin anew", "err", err)
		}
		engine.Resume(standing, time.Now())
	}
	return func() { e.start(engine, notifier) }, len(settings.Endpoints), nil
}

func parse(s *ruleproc.Settings) (*rules.Set, error) {
	if len(s.Rules) == 0 {
		return rules.Builtin(), nil
	}
	return rules.ParseFiles(s.Rules)
}

// alertmanager returns the settings of the configuration file and the command
// line.
func alertmanager(s *ruleproc.Settings) (notify.Settings, error) {
	settings := notify.DefaultSettings()
	var errs []error
	if s.Config.Name != "" {
		errs = append(errs, strict.DecodeSection(s.Config.Name, s.Config.Data, "alertmanager", &settings))
	}
	for _, u := range s.URLs {
		if err := notify.CheckURL(u); err != nil {
			errs = append(errs, fmt.Errorf("--alertmanager.url: %w", err))
		}
	}
	return settings.WithURLs(s.URLs...), strict.Join(errs...)
}

// send hands alerts to who tells of them.
func send(n *notify.Notifier) func([]rules.Alert) {
	return func(list []rules.Alert) {
		told := make([]notify.Alert, len(list))
		for i := range list {
			x := &list[i]
			told[i] = notify.Alert{
				Labels: x.Labels, Annotations: x.Annotations,
				StartsAt: x.FiredAt, EndsAt: x.EndsAt(), GeneratorURL: x.GeneratorURL,
			}
		}
		n.Send(told...)
	}
}

// start puts the engine to work. It is called once.
func (e *engine) start(r *rules.Engine, n *notify.Notifier) {
	ctx, cancel := context.WithCancel(context.Background())
	e.mu.Lock()
	e.rules, e.notifier, e.stop = r, n, cancel
	e.mu.Unlock()
	registry := prometheus.NewRegistry()
	registry.MustRegister(r, n)
	e.loops.Go(func() { r.Run(ctx) })
	e.loops.Go(func() { n.Run(ctx) })
	e.loops.Go(func() { e.tellAll(ctx, registry) })
	e.tell()
}

// close ends the engine. What is queued by then is still sent.
func (e *engine) close() {
	e.mu.Lock()
	stop := e.stop
	e.mu.Unlock()
	stop()
	e.loops.Wait()
}

// tell has the exporter told what the engine counts.
func (e *engine) tell() {
	select {
	case e.changed <- struct{}{}:
	default:
	}
}

// tellPause is how long what changed may gather before it is told.
const tellPause = 200 * time.Millisecond

// tellAll tells the exporter of the engine's families when they have changed.
func (e *engine) tellAll(ctx context.Context, registry *prometheus.Registry) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-e.changed:
		}
		if err := errors.Join(e.tellNow(registry), e.stand()); err != nil {
			e.log.Error("State of the rule engine is not told", "err", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(tellPause):
		}
	}
}

func (e *engine) tellNow(registry *prometheus.Registry) error {
	families, err := registry.Gather()
	var b bytes.Buffer
	encoder := expfmt.NewEncoder(&b, expfmt.NewFormat(expfmt.TypeProtoDelim))
	for _, f := range families {
		err = errors.Join(err, encoder.Encode(f))
	}
	return errors.Join(err, e.parent.Tell(b.Bytes()))
}

// stand hands over how far the alerts are.
func (e *engine) stand() error {
	standing := e.current().Standing()
	if standing.Time.IsZero() {
		return nil // nothing is known yet, and the engine before knew more
	}
	data, err := json.Marshal(standing)
	if err != nil {
		return err
	}
	if len(data) > ruleproc.MaxStanding {
		e.large.Do(func() {
			e.log.Warn("There are more alerts than can be handed on; should the rule engine have to be started again, they begin anew", "bytes", len(data))
		})
		data = nil
	}
	return e.parent.Stand(data)
}

func (e *engine) current() *rules.Engine {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.rules
}

// Trigger implements ruleproc.Engine.
func (e *engine) Trigger() {
	if r := e.current(); r != nil {
		r.Trigger()
	}
}

// Ping implements ruleproc.Engine.
func (e *engine) Ping() {
	if r := e.current(); r != nil {
		r.Ping()
	}
}

// Report implements ruleproc.Engine.
func (e *engine) Report(ctx context.Context, explain bool) ([]byte, error) {
	r := e.current()
	if r == nil {
		return nil, errors.New("the engine has no settings yet")
	}
	report := r.Report
	if explain {
		report = func() rules.Report { return r.Explain(ctx) }
	}
	data, err := json.MarshalIndent(report(), "", "  ")
	return append(data, '\n'), err
}

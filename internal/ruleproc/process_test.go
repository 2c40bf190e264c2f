package ruleproc_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"github.com/accel-exporter/accel-exporter/internal/ruleproc"
	"github.com/accel-exporter/accel-exporter/internal/strict"
	"github.com/accel-exporter/accel-exporter/rules/engine"
)

// patience bounds the wait for what must come.
const patience = 3 * time.Minute

const hot = `groups:
  - name: mine
    rules:
      - alert: %s
        expr: temp > 90
`

// ruleFile is a file with one alert of that name.
func ruleFile(alert string) strict.Content {
	return strict.Content{Name: "mine.yaml", Data: []byte(strings.ReplaceAll(hot, "%s", alert))}
}

func settings() ruleproc.Settings {
	return ruleproc.Settings{
		Rules: []strict.Content{ruleFile("Hot")}, Interval: time.Second,
		Labels: map[string]string{"job": "test", "instance": "here"}, ExternalURL: "http://here",
	}
}

// rig is a Process under test.
type rig struct {
	*ruleproc.Process
	t    *testing.T
	log  *lockedBuffer
	page atomic.Pointer[string]
}

type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

// options are those of engines that behave as listed, the last one from then
// on.
func (r *rig) options(behaviours ...string) ruleproc.Options {
	started := 0
	var mu sync.Mutex
	return ruleproc.Options{
		Command: func() *exec.Cmd {
			mu.Lock()
			defer mu.Unlock()
			started++
			return command(behaviours[min(started, len(behaviours))-1])
		},
		Build: ruleproc.Build(),
		Page: func(w io.Writer) error {
			_, err := io.WriteString(w, *r.page.Load())
			return err
		},
		Log: slog.New(slog.NewTextHandler(r.log, nil)),
	}
}

// newRig returns a Process that has started nothing.
func newRig(t *testing.T, change func(*ruleproc.Options), behaviours ...string) *rig {
	t.Helper()
	r := &rig{t: t, log: &lockedBuffer{}}
	r.set("temp 95\n")
	o := r.options(behaviours...)
	if change != nil {
		change(&o)
	}
	r.Process = ruleproc.New(o, settings())
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("log:\n%s", r.log)
		}
	})
	return r
}

func (r *rig) set(page string) { r.page.Store(&page) }

// run runs the Process until the end of the test.
func (r *rig) run() {
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() { r.Run(ctx); close(ended) }()
	r.t.Cleanup(func() { cancel(); <-ended })
}

// until waits for cond. What it waits for happens in another process.
func (r *rig) until(what string, cond func() bool) {
	r.t.Helper()
	for end := time.Now().Add(patience); !cond(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			r.t.Fatalf("waited in vain for %s", what)
		}
	}
}

// firing reports whether an alert of that name fires.
func (r *rig) firing(alert string) bool {
	data, err := r.Report(r.t.Context(), true)
	var report engine.Report
	if err != nil || json.Unmarshal(data, &report) != nil {
		return false
	}
	for _, g := range report.Groups {
		for _, rule := range g.Rules {
			for _, a := range rule.Alerts {
				if a.Labels["alertname"] == alert && a.State == engine.Firing && a.Labels["instance"] == "here" {
					return true
				}
			}
		}
	}
	return false
}

// value returns what a family of the Process sums up to, -1 where it has none.
func (r *rig) value(name string) float64 {
	r.t.Helper()
	registry := prometheus.NewRegistry()
	registry.MustRegister(r)
	families, err := registry.Gather()
	if err != nil {
		r.t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() != name {
			continue
		}
		sum := 0.0
		for _, m := range f.Metric {
			switch f.GetType() {
			case dto.MetricType_COUNTER:
				sum += m.Counter.GetValue()
			case dto.MetricType_HISTOGRAM:
				sum += float64(m.Histogram.GetSampleCount())
			default:
				sum += m.Gauge.GetValue()
			}
		}
		return sum
	}
	return -1
}

// TestWork: rules are evaluated over the page, and what the engine counts
// shows.
func TestWork(t *testing.T) {
	r := newRig(t, nil, "good")
	if n, err := r.Start(t.Context()); n != 0 || err != nil {
		t.Fatalf("Start: %d Alertmanagers, %v", n, err)
	}
	if _, err := r.Report(t.Context(), false); err == nil {
		t.Error("a report of an engine that does not work yet")
	}
	r.run()
	r.until("the alert", func() bool { return r.firing("Hot") })
	r.until("what the engine counts", func() bool { return r.value("accel_rules_passes_total") > 0 })
	if up := r.value("accel_rules_engine_up"); up != 1 {
		t.Errorf("accel_rules_engine_up is %v", up)
	}
	r.set("temp 80\n")
	r.Trigger()
	r.until("the end of the alert", func() bool { return !r.firing("Hot") })
}

// TestEnds: however an engine ends, another one takes over, and what was
// counted goes on.
func TestEnds(t *testing.T) {
	for name, end := range map[string]func(pid int){
		"killed": func(pid int) { syscall.Kill(pid, syscall.SIGKILL) },
		"asked":  func(pid int) { syscall.Kill(pid, syscall.SIGTERM) },
		"hung":   func(pid int) { syscall.Kill(pid, syscall.SIGSTOP) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, func(o *ruleproc.Options) { o.HungAfter = 5 * time.Second }, "good")
			if _, err := r.Start(t.Context()); err != nil {
				t.Fatal(err)
			}
			r.run()
			r.until("the alert", func() bool { return r.firing("Hot") })
			r.until("the second evaluation", func() bool { return r.value("accel_rules_passes_total") >= 2 })
			before, pid := r.value("accel_rules_passes_total"), r.PID()
			end(pid)
			r.until("its end", func() bool { return r.value("accel_rules_engine_restarts_total") >= 1 })
			r.until("another engine", func() bool { return r.PID() != 0 && r.PID() != pid })
			r.until("the alert again", func() bool { return r.firing("Hot") })
			r.until("an evaluation", func() bool { return r.value("accel_rules_passes_total") > before })
			if !strings.Contains(r.log.String(), "Rule engine does not work") || !strings.Contains(r.log.String(), "Rule engine works again") {
				t.Error("the log does not say so")
			}
		})
	}
}

// TestGoesOn: an alert is as old with the next engine as it was.
func TestGoesOn(t *testing.T) {
	r := newRig(t, nil, "good")
	if _, err := r.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	r.run()
	since := func() string {
		data, _ := r.Report(t.Context(), false)
		return regexp.MustCompile(`"fired_at": "[^"]*"`).FindString(string(data))
	}
	r.until("the alert", func() bool { return since() != "" })
	r.until("word of it", func() bool { return r.value("accel_rules_alerts") > 0 })
	r.until("another evaluation", func() bool { return r.value("accel_rules_passes_total") >= 3 })
	before, pid := since(), r.PID()
	syscall.Kill(pid, syscall.SIGKILL)
	r.until("another engine that has evaluated", func() bool { return r.PID() != pid && since() != "" })
	if after := since(); after != before {
		t.Errorf("the alert has %s, and had %s", after, before)
	}
}

// TestDown: without an engine its gauges are gone and its counts stay.
func TestDown(t *testing.T) {
	r := newRig(t, nil, "good", "crash")
	if _, err := r.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	r.run()
	r.until("what the engine counts", func() bool { return r.value("accel_rules_passes_total") > 0 && r.value("accel_rules_alerts") > 0 })
	syscall.Kill(r.PID(), syscall.SIGKILL)
	r.until("its end", func() bool { return r.value("accel_rules_engine_up") == 0 })
	if alerts, passes := r.value("accel_rules_alerts"), r.value("accel_rules_passes_total"); alerts != -1 || passes < 1 {
		t.Errorf("without an engine there are %v alerts and were %v evaluations", alerts, passes)
	}
	r.until("the next ends", func() bool { return strings.Contains(r.log.String(), "out of ideas") })
	if _, err := r.Report(t.Context(), false); err == nil || !strings.Contains(err.Error(), "ended") {
		t.Errorf("report without an engine: %v", err)
	}
}

// TestStart: an engine that cannot be is refused, one that breaks is not.
func TestStart(t *testing.T) {
	for name, c := range map[string]struct {
		behaviour string
		change    func(*ruleproc.Options)
		refused   bool
		says      string
	}{
		"missing": {"good", func(o *ruleproc.Options) {
			o.Command = func() *exec.Cmd { return exec.Command("/nonexistent/accel-rules") }
		}, true, "--rules.program"},
		"stranger":    {"good", func(o *ruleproc.Options) { o.Build = "0.0.1 abc go1.1" }, true, "0.0.1 abc"},
		"crash":       {"crash", nil, false, "out of ideas"},
		"killed":      {"killed", nil, false, "signal_kill"},
		"garbage":     {"garbage", nil, false, "garbage"},
		"no greeting": {"no greeting", nil, false, "without a greeting"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, c.change, c.behaviour)
			_, err := r.Start(t.Context())
			refused := (*ruleproc.Refusal)(nil)
			if err == nil || errors.As(err, &refused) != c.refused || !strings.Contains(err.Error(), c.says) {
				t.Errorf("Start: %v", err)
			}
			r.Close()
		})
	}
}

// TestRecovers: an engine that did not come up is tried again.
func TestRecovers(t *testing.T) {
	r := newRig(t, nil, "garbage", "killed", "good")
	if _, err := r.Start(t.Context()); err == nil {
		t.Fatal("started")
	}
	r.run()
	r.until("the alert", func() bool { return r.firing("Hot") })
}

// TestSilent: an engine that says nothing is given up when the caller does.
func TestSilent(t *testing.T) {
	r := newRig(t, nil, "silent")
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if _, err := r.Start(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Start: %v", err)
	}
}

// TestMistakes: all that is wrong in rule files and configuration is named at
// once, by file and line.
func TestMistakes(t *testing.T) {
	r := newRig(t, nil, "good")
	s := settings()
	s.Rules = []strict.Content{{Name: "bad.yaml", Data: []byte("groups:\n  - name: g\n    rules:\n      - alert: A\n        exprs: up\n")}}
	s.Config = strict.Content{Name: "accel.yml", Data: []byte("collect: {}\nalertmanager:\n  queue_size: many\n  batch_size: 0\n")}
	_, err := ruleproc.Check(t.Context(), r.options("good"), s)
	refused := (*ruleproc.Refusal)(nil)
	mistakes, ok := errors.AsType[strict.Mistakes](err)
	if !errors.As(err, &refused) || !ok {
		t.Fatalf("%T: %v", err, err)
	}
	for _, want := range []string{"bad.yaml:5:", "exprs", "accel.yml:3: alertmanager.queue_size", "accel.yml:4: alertmanager.batch_size"} {
		if !strings.Contains(mistakes.Error(), want) {
			t.Errorf("%q is not named in\n%v", want, mistakes)
		}
	}
	s = settings()
	s.URLs = []string{"http://user:hunter2@host:9093"}
	if _, err := ruleproc.Check(t.Context(), r.options("good"), s); err == nil || !strings.Contains(err.Error(), "--alertmanager.url: ") || strings.Contains(err.Error(), "hunter2") {
		t.Errorf("an address with a password: %v", err)
	}
	s.URLs = []string{"http://a:9093", "http://b:9093"}
	if n, err := ruleproc.Check(t.Context(), r.options("good"), s); n != 2 || err != nil {
		t.Errorf("two addresses: %d, %v", n, err)
	}
}

// TestPrepare: new rules are taken whole or not at all, also while no engine
// works.
func TestPrepare(t *testing.T) {
	r := newRig(t, nil, "good")
	if _, err := r.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	r.run()
	r.until("the alert", func() bool { return r.firing("Hot") })
	change := func(content strict.Content) func(*ruleproc.Settings) {
		return func(s *ruleproc.Settings) { s.Rules = []strict.Content{content} }
	}
	wrong := strict.Content{Name: "mine.yaml", Data: []byte("groups: 5\n")}
	if _, err := r.Prepare(t.Context(), ruleproc.Rules, change(wrong)); err == nil || !strings.Contains(err.Error(), "mine.yaml:1:") {
		t.Errorf("wrong rules: %v", err)
	}
	apply, err := r.Prepare(t.Context(), ruleproc.Rules, change(ruleFile("Second")))
	if err != nil {
		t.Fatal(err)
	}
	if !r.firing("Hot") {
		t.Error("the former rules are not in force before the new ones are applied")
	}
	apply()
	r.until("the alert of the new rules", func() bool { return r.firing("Second") })

	// What was prepared by an engine that is gone holds for the next.
	apply, err = r.Prepare(t.Context(), ruleproc.Rules, change(ruleFile("Third")))
	if err != nil {
		t.Fatal(err)
	}
	pid := r.PID()
	syscall.Kill(pid, syscall.SIGKILL)
	r.until("another engine", func() bool { return r.PID() != pid })
	apply()
	r.until("the alert of the third rules", func() bool { return r.firing("Third") })
}

// TestPrepareWithout: rules by which no engine can work are replaced by others
// although none works.
func TestPrepareWithout(t *testing.T) {
	r := newRig(t, nil, "crash", "crash", "crash", "good")
	r.run()
	r.until("the first attempts", func() bool { return r.value("accel_rules_engine_restarts_total") >= 1 })
	var apply func()
	r.until("an engine that checks", func() bool {
		var err error
		apply, err = r.Prepare(t.Context(), ruleproc.Rules, func(s *ruleproc.Settings) { s.Rules = []strict.Content{ruleFile("Second")} })
		return err == nil
	})
	apply()
	r.until("the alert of the new rules", func() bool { return r.firing("Second") })
}

// TestNoOrphan: an engine does not outlive the exporter, however that ends and
// whatever the engine does.
func TestNoOrphan(t *testing.T) {
	parent := command("parent")
	out, in, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	parent.Stdout = in
	err = parent.Start()
	in.Close()
	if err != nil {
		t.Fatal(err)
	}
	out.SetReadDeadline(time.Now().Add(patience))
	lines := bufio.NewReader(out)
	if line, err := lines.ReadString('\n'); line != "started\n" {
		t.Fatalf("%q, %v", line, err)
	}
	parent.Process.Kill()
	parent.Wait()
	// Both hold the pipe; it ends when both are gone.
	if _, err := lines.ReadByte(); err != io.EOF {
		t.Errorf("the engine is still there: %v", err)
	}
}

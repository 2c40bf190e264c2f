package alertmanager_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-openapi/strfmt"
	"github.com/prometheus/alertmanager/api/v2/models"
	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	memory "github.com/accel-exporter/accel-exporter/internal/sim/golden"
	"github.com/accel-exporter/accel-exporter/rules/alertmanager"
	"github.com/accel-exporter/accel-exporter/rules/engine"
)

const address = "http://am.example:9093"

// manager is an Alertmanager that validates requests with the models of its API.
type manager struct {
	t      *testing.T
	server *httptest.Server
	pipes  *memory.Pipes

	mu       sync.Mutex
	down     bool
	alerts   map[string]*models.PostableAlert // the latest state, by name
	requests []*http.Request
	batches  [][]string // alert names of each accepted request
	// answer returns true if it has written the response itself.
	answer func(w http.ResponseWriter, r *http.Request, names []string) bool
}

// serve starts an Alertmanager in memory.
func serve(t *testing.T) *manager {
	m := &manager{t: t, pipes: memory.NewPipes(), alerts: map[string]*models.PostableAlert{}}
	m.server = httptest.NewUnstartedServer(m)
	m.server.Listener.Close()
	m.server.Listener = m.pipes
	m.server.Config.ErrorLog = log.New(io.Discard, "", 0)
	m.server.Start()
	t.Cleanup(m.server.Close)
	return m
}

func (m *manager) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	m.mu.Lock()
	down := m.down
	m.mu.Unlock()
	if down {
		return nil, errors.New("connection refused")
	}
	return m.pipes.Dial(ctx, "", "")
}

func (m *manager) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // the client has gone
	}
	var posted models.PostableAlerts
	if err := validate(body, &posted); err != nil {
		m.t.Errorf("invalid request: %v: %s", err, body)
	}
	if r.Method != http.MethodPost || r.URL.Path != "/api/v2/alerts" || r.Header.Get("Content-Type") != "application/json" {
		m.t.Errorf("%s %s %q", r.Method, r.URL, r.Header.Get("Content-Type"))
	}
	names := make([]string, len(posted))
	for i, a := range posted {
		names[i] = a.Labels["alertname"]
	}
	m.mu.Lock()
	m.requests = append(m.requests, r)
	answer := m.answer
	m.mu.Unlock()
	if answer != nil && answer(w, r, names) {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.batches = append(m.batches, names)
	for i, a := range posted {
		m.alerts[names[i]] = a
	}
}

func validate(body []byte, posted *models.PostableAlerts) error {
	if err := json.Unmarshal(body, posted); err != nil {
		return err
	}
	return posted.Validate(strfmt.Default)
}

func (m *manager) set(change func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	change()
}

// knows returns the names of the firing alerts, sorted, and after a slash the names of
// the resolved alerts.
func (m *manager) knows() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	var firing, resolved []string
	for _, name := range slices.Sorted(maps.Keys(m.alerts)) {
		if end := time.Time(m.alerts[name].EndsAt); end.IsZero() || end.After(time.Now()) {
			firing = append(firing, name)
		} else {
			resolved = append(resolved, name)
		}
	}
	return strings.Join(firing, " ") + "/" + strings.Join(resolved, " ")
}

func (m *manager) count() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.requests)
}

// rig is a Notifier with its log.
type rig struct {
	*alertmanager.Notifier
	t    *testing.T
	log  *memory.Buffer
	stop func() // ends it and waits
}

func (r *rig) Send(alerts ...engine.Alert) { r.Notifier.Send(alerts) }

func settings(urls ...string) alertmanager.Settings {
	return alertmanager.Settings{}.WithURLs(urls...)
}

// bubble runs a test with an Alertmanager in memory and a Notifier that sends to it.
func bubble(t *testing.T, s alertmanager.Settings, test func(*testing.T, *manager, *rig)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		m := serve(t)
		test(t, m, start(t, alertmanager.Options{Settings: s, Dial: m.dial}))
	})
}

func create(t *testing.T, o alertmanager.Options) *rig {
	t.Helper()
	r := &rig{t: t, log: &memory.Buffer{}}
	o.Log = slog.New(slog.NewTextHandler(r.log, nil))
	n, err := alertmanager.New(o)
	if err != nil {
		t.Fatal(err)
	}
	r.Notifier = n
	return r
}

func start(t *testing.T, o alertmanager.Options) *rig {
	t.Helper()
	r := create(t, o)
	r.run()
	return r
}

func (r *rig) run() {
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { r.Run(ctx) })
	r.stop = func() { cancel(); running.Wait() }
	r.t.Cleanup(r.stop)
}

// metrics returns values by metric name and the labels other than endpoint.
func (r *rig) metrics() map[string]float64 { return r.metricsOf("") }

// metricsOf returns the metrics of one endpoint, or of all for "".
func (r *rig) metricsOf(endpoint string) map[string]float64 {
	r.t.Helper()
	reg := prometheus.NewPedanticRegistry()
	reg.MustRegister(r)
	families, err := reg.Gather()
	if err != nil {
		r.t.Fatal(err)
	}
	values := map[string]float64{}
	for _, f := range families {
		for _, m := range f.Metric {
			name, mine := strings.TrimPrefix(f.GetName(), "accel_alertmanager_"), true
			for _, l := range m.Label {
				if l.GetName() == "endpoint" {
					mine = endpoint == "" || l.GetValue() == endpoint
				} else {
					name += " " + l.GetValue()
				}
			}
			if mine {
				values[name] = valueOf(m)
			}
		}
	}
	return values
}

func valueOf(m *dto.Metric) float64 {
	if m.Histogram != nil {
		return float64(m.Histogram.GetSampleCount())
	}
	return m.GetCounter().GetValue() + m.GetGauge().GetValue()
}

// wait polls in real time until ok returns true.
func wait(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(3 * time.Minute); !ok(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("timed out waiting until " + what)
		}
	}
}

func firing(name string) engine.Alert {
	now := time.Now()
	return engine.Alert{
		Labels:      map[string]string{"alertname": name, "severity": "page"},
		Annotations: map[string]string{"summary": "a \"summary\"\n"},
		FiredAt:     now.Add(-time.Minute), ValidUntil: now.Add(4 * time.Minute),
		GeneratorURL: "http://node-1:9400/alerts",
	}
}

func resolved(name string) engine.Alert {
	a := firing(name)
	a.ResolvedAt = time.Now()
	return a
}

func write(t *testing.T, dir, name, content string) string {
	t.Helper()
	file := filepath.Join(dir, name)
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

package engine_test

import (
	"fmt"
	"io"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/accel-exporter/accel-exporter/collector"
	"github.com/accel-exporter/accel-exporter/internal/exposition"
	"github.com/accel-exporter/accel-exporter/rules/engine"
)

// TestFeed compares an engine that reads the page of an Exporter with an engine
// that reads the text of its scrapes, while devices appear, disappear and
// return.
func TestFeed(t *testing.T) {
	snap := &collector.Snapshot{}
	registry := prometheus.NewRegistry()
	scrapes := prometheus.NewCounter(prometheus.CounterOpts{Name: "scrapes_total", Help: "Scrapes."})
	registry.MustRegister(scrapes)
	page := exposition.New(func() *collector.Snapshot { return snap }, registry, exposition.Options{})

	text := group(`
- {record: temp, expr: accel_temperature_celsius}
- {record: spent, expr: 'increase(accel_energy_joules_total[2m])'}
- {record: scraped, expr: 'increase(scrapes_total[2m])'}
- {record: gone, expr: 'absent(accel_temperature_celsius{device="b"})'}
- {alert: Hot, expr: 'accel_temperature_celsius > 80', for: 1m}
`)
	scraped := newWorld(t, text)
	read := newWorld(t, text, func(o *engine.Options) { o.Read = page.Read })
	device := func(id string, value float64) collector.Device {
		return collector.Device{ID: id, Readings: []collector.Reading{
			{Metric: collector.TemperatureCelsius, Labels: []string{"gpu"}, Value: value},
			{Metric: collector.EnergyJoules, Value: 10 * value},
		}}
	}
	for i, devices := range [][]string{{"a", "b"}, {"a", "b"}, {"a"}, {"a"}, nil, {"b"}, {"a", "b"}, {"a", "b"}, {"b", "c"}} {
		snap = &collector.Snapshot{Seq: uint64(i)}
		for n, id := range devices {
			snap.Devices = append(snap.Devices, device(id, float64(75+i+n)))
		}
		scrapes.Inc()
		w := httptest.NewRecorder()
		page.ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
		body, err := io.ReadAll(w.Body)
		if err != nil {
			t.Fatal(err)
		}
		scraped.set(string(body))
		at := time.Duration(i) * 30 * time.Second
		if i >= 6 { // all samples have been dropped
			at += time.Hour
		}
		scraped.at(at)
		read.at(at)
		for _, query := range []string{"accel_temperature_celsius", "temp", "spent", "scraped", "gone", "ALERTS", "ALERTS_FOR_STATE"} {
			if diff := cmp.Diff(scraped.query(query), read.query(query)); diff != "" {
				t.Errorf("step %d: %s (-scraped +read):\n%s", i, query, diff)
			}
		}
	}
	if len(read.query("temp")) != 2 || fmt.Sprint(read.alerts()) == "[]" {
		t.Errorf("nothing was evaluated: %v, %v", read.query("temp"), read.alerts())
	}
}

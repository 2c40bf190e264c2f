package compat_test

import (
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/accel-exporter/accel-exporter/collector"
	"github.com/accel-exporter/accel-exporter/internal/compat"
	"github.com/accel-exporter/accel-exporter/internal/exposition"
)

// recorded returns a Snapshot with the values of the golden page of a node with
// eight GPUs, one of them split into MIG devices.
func recorded(tb testing.TB) *collector.Snapshot {
	tb.Helper()
	file, err := os.ReadFile("../../cmd/accel-exporter/testdata/golden/h100-8.metrics")
	if err != nil {
		tb.Fatal(err)
	}
	parser := expfmt.NewTextParser(model.LegacyValidation)
	families, err := parser.TextToMetricFamilies(strings.NewReader(strings.ReplaceAll(string(file), " VOLATILE\n", " 1\n")))
	if err != nil {
		tb.Fatal(err)
	}
	devices := map[string]*device{}
	var node []collector.Reading
	for _, m := range collector.Table() {
		f := families[m.Name]
		if f == nil || m.Kind == collector.Histogram {
			continue
		}
		for _, s := range f.Metric {
			r := collector.Reading{Metric: m, Value: s.GetGauge().GetValue() + s.GetCounter().GetValue()}
			for _, name := range m.Labels {
				r.Labels = append(r.Labels, labelOf(s, name))
			}
			id := labelOf(s, "device")
			if m.Scope == collector.PerNode {
				node = append(node, r)
				continue
			}
			if devices[id] == nil {
				devices[id] = &device{collector.Device{ID: id, Parent: labelOf(s, "parent")}}
			}
			devices[id].Readings = append(devices[id].Readings, r)
		}
	}
	var all []*device
	for _, d := range devices {
		all = append(all, d)
	}
	return snapshot(all, node...)
}

func labelOf(m *dto.Metric, name string) string {
	at := slices.IndexFunc(m.Label, func(l *dto.LabelPair) bool { return l.GetName() == name })
	if at < 0 {
		return ""
	}
	return m.Label[at].GetValue()
}

// changing returns a function that alternates between two Snapshots with the
// same devices and different counter values.
func changing(s *collector.Snapshot) func() *collector.Snapshot {
	next := &collector.Snapshot{Node: s.Node}
	for _, d := range s.Devices {
		d.Readings = slices.Clone(d.Readings)
		for i := range d.Readings {
			if d.Readings[i].Metric.Kind == collector.Counter {
				d.Readings[i].Value += 17
			}
		}
		next.Devices = append(next.Devices, d)
	}
	turn := 0
	return func() *collector.Snapshot {
		turn++
		return []*collector.Snapshot{s, next}[turn%2]
	}
}

// discard is a ResponseWriter that drops the body.
type discard struct{ header http.Header }

func (d discard) Header() http.Header         { return d.header }
func (d discard) Write(b []byte) (int, error) { return len(b), nil }
func (d discard) WriteHeader(int)             {}

func cpuTime(b *testing.B) int64 {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return u.Utime.Nano() + u.Stime.Nano()
}

// BenchmarkScrape measures a scrape with and without the view, on a node with
// eight GPUs. Compare results of the same run only.
//
//	go test -run '^$' -bench Scrape -count 6 ./internal/compat
func BenchmarkScrape(b *testing.B) {
	s := recorded(b)
	for name, view := range map[string]exposition.View{"off": nil, "on": compat.New(compat.Options{Hostname: "n1", Pods: true})} {
		e := exposition.New(changing(s), nil, exposition.Options{})
		e.Apply(exposition.Settings{View: view})
		for _, encoding := range []string{"identity", "gzip"} {
			b.Run(name+"/"+encoding, func(b *testing.B) {
				r := httptest.NewRequest(http.MethodGet, "/metrics", nil)
				r.Header.Set("Accept-Encoding", encoding)
				e.ServeHTTP(discard{make(http.Header, 4)}, r) // builds the page layout
				b.ReportAllocs()
				before := cpuTime(b)
				for b.Loop() {
					e.ServeHTTP(discard{make(http.Header, 4)}, r)
				}
				b.ReportMetric(float64(cpuTime(b)-before)/float64(b.N), "cpu-ns/op")
			})
		}
	}
}

// BenchmarkSeries measures the additional cost of a scrape after the devices
// have changed.
func BenchmarkSeries(b *testing.B) {
	s, view := recorded(b), compat.New(compat.Options{Hostname: "n1", Pods: true})
	b.ReportAllocs()
	for b.Loop() {
		view.Series(s)
	}
}

package exposition_test

import (
	"cmp"
	"slices"
	"strings"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/accel-exporter/accel-exporter/collector"
)

// naive is an exporter as it is usually written: one const metric per series and
// scrape. It defines what the page must look like and costs many times as much.
type naive struct {
	latest func() *collector.Snapshot
	descs  map[descKey]*prometheus.Desc
	// seen is set for snapshots that may have duplicates.
	seen       map[string]bool
	duplicates int
}

type descKey struct {
	metric *collector.Metric
	child  bool
}

func newNaive(latest func() *collector.Snapshot) *naive {
	return &naive{latest: latest, descs: make(map[descKey]*prometheus.Desc)}
}

func (n *naive) Describe(chan<- *prometheus.Desc) {}

func (n *naive) Collect(ch chan<- prometheus.Metric) {
	s := n.latest()
	if s == nil {
		return
	}
	for i := range s.Devices {
		d := &s.Devices[i]
		for j := range d.Readings {
			n.emit(ch, d, &d.Readings[j])
		}
	}
	for i := range s.Node {
		n.emit(ch, nil, &s.Node[i])
	}
}

func (n *naive) emit(ch chan<- prometheus.Metric, d *collector.Device, r *collector.Reading) {
	m := r.Metric
	perDevice := m.Scope == collector.PerDevice
	key := descKey{m, perDevice && d.Parent != ""}
	desc := n.descs[key]
	if desc == nil {
		var names []string
		if perDevice {
			names = append(names, "device")
			if key.child {
				names = append(names, "parent")
			}
		}
		desc = prometheus.NewDesc(m.Name, m.Help, append(names, m.Labels...), nil)
		n.descs[key] = desc
	}
	values := make([]string, 0, 2+len(r.Labels))
	if perDevice {
		values = append(values, d.ID)
		if key.child {
			values = append(values, d.Parent)
		}
	}
	values = append(values, r.Labels...)
	for i := range values {
		values[i] = strings.ToValidUTF8(values[i], "\uFFFD")
	}
	kind := prometheus.GaugeValue
	if m.Kind == collector.Counter {
		kind = prometheus.CounterValue
	}
	if n.seen != nil {
		id := m.Name + "\xff" + strings.Join(values, "\xff")
		if n.seen[id] {
			n.duplicates++
			return
		}
		n.seen[id] = true
	}
	ch <- prometheus.MustNewConstMetric(desc, kind, r.Value, values...)
}

// drops is the exporter's own family.
type drops struct{ duplicate, invalid, limit float64 }

func (drops) Describe(chan<- *prometheus.Desc) {}

func (d drops) Collect(ch chan<- prometheus.Metric) {
	desc := prometheus.NewDesc("accel_exporter_series_dropped_total",
		"Series left off the page, counted once per snapshot served.", []string{"reason"}, nil)
	ch <- prometheus.MustNewConstMetric(desc, prometheus.CounterValue, d.duplicate, "duplicate")
	ch <- prometheus.MustNewConstMetric(desc, prometheus.CounterValue, d.invalid, "invalid")
	ch <- prometheus.MustNewConstMetric(desc, prometheus.CounterValue, d.limit, "limit")
}

func sortDevices(s *collector.Snapshot) {
	slices.SortFunc(s.Devices, func(x, y collector.Device) int { return cmp.Compare(x.ID, y.ID) })
}

// collectorFunc is an unchecked collector.
type collectorFunc func(chan<- prometheus.Metric)

func (collectorFunc) Describe(chan<- *prometheus.Desc) {}

func (f collectorFunc) Collect(ch chan<- prometheus.Metric) { f(ch) }

package compat_test

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/accel-exporter/accel-exporter/collector"
	"github.com/accel-exporter/accel-exporter/internal/compat"
	"github.com/accel-exporter/accel-exporter/internal/compat/counters"
	"github.com/accel-exporter/accel-exporter/internal/exposition"
)

// UUIDs of the devices in tests.
const (
	gpu0 = "GPU-0d4b5a6e-0000-4000-8000-000000000000"
	gpu1 = "GPU-1d4b5a6e-0000-4000-8000-000000000001"
	mig0 = "MIG-0d4b5a6e-0000-4000-8000-000000000010"
)

// device builds a device of a Snapshot.
type device struct{ collector.Device }

// gpu returns a GPU with an index and the readings that identify it.
func gpu(id, index string) *device {
	d := &device{collector.Device{ID: id, Class: collector.GPU, Vendor: "nvidia"}}
	return d.set(collector.DeviceInfo, 1, "gpu", "nvidia", "NVIDIA H100 80GB HBM3", "hopper", index, "0000:1"+index+":00.0", "0", "165"+index, "900-2", "")
}

// instance returns a MIG device of a parent GPU.
func instance(id, parent, index, profile string) *device {
	d := &device{collector.Device{ID: id, Parent: parent, Class: collector.GPU, Vendor: "nvidia"}}
	return d.set(collector.DeviceInfo, 1, "gpu", "nvidia", "NVIDIA H100 80GB HBM3", "hopper", index, "0000:10:00.0", "0", "1650", "900-2", profile)
}

func (d *device) set(m *collector.Metric, v float64, labels ...string) *device {
	d.Readings = append(d.Readings, collector.Reading{Metric: m, Labels: labels, Value: v})
	return d
}

// allocate allocates the device to a pod.
func (d *device) allocate(namespace, pod string) *device {
	return d.set(collector.AllocationInfo, 1, namespace, pod, "main", "nvidia.com/gpu")
}

// allLabels selects every label of a pod.
func allLabels(string) bool { return true }

// snapshot returns a Snapshot of devices and readings of the node.
func snapshot(devices []*device, node ...collector.Reading) *collector.Snapshot {
	s := &collector.Snapshot{Node: node}
	for _, d := range devices {
		s.Devices = append(s.Devices, d.Device)
	}
	slices.SortFunc(s.Devices, func(a, b collector.Device) int { return strings.Compare(a.ID, b.ID) })
	return s
}

// of returns a reading with the value 1.
func of(m *collector.Metric, labels ...string) collector.Reading {
	return collector.Reading{Metric: m, Labels: labels, Value: 1}
}

// driver is the driver reading of a node with NVIDIA GPUs.
var driver = of(collector.DriverInfo, "nvidia", "580.105.08", "r580_92", "13.580.105.08", "13.0")

// parseRows parses a counters file with these rows.
func parseRows(t testing.TB, rows ...string) *counters.File {
	t.Helper()
	c, err := counters.Unstated.Parse("test.csv", []byte(strings.Join(rows, "\n")))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// page returns the lines of the page that begin with prefix, and the counters
// of dropped series that are not 0.
func page(t testing.TB, o compat.Options, s *collector.Snapshot, prefix string) string {
	t.Helper()
	e := exposition.New(func() *collector.Snapshot { return s }, nil, exposition.Options{})
	e.Apply(exposition.Settings{View: compat.New(o)})
	w := httptest.NewRecorder()
	e.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	var b strings.Builder
	for line := range strings.Lines(w.Body.String()) {
		if strings.HasPrefix(line, prefix) || strings.HasPrefix(line, "accel_exporter_series_dropped_total") && !strings.HasSuffix(line, " 0\n") {
			b.WriteString(line)
		}
	}
	return b.String()
}

// expect compares a page with lines.
func expect(t testing.TB, got string, want ...string) {
	t.Helper()
	if text := strings.Join(want, "\n") + "\n"; got != text && (len(want) != 0 || got != "") {
		t.Errorf("got:\n%swant:\n%s", got, text)
	}
}

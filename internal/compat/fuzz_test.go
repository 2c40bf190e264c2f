package compat_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/accel-exporter/accel-exporter/collector"
	"github.com/accel-exporter/accel-exporter/internal/compat"
	"github.com/accel-exporter/accel-exporter/internal/exposition"
)

// FuzzView checks that, with arbitrary label values from firmware, drivers and
// Kubernetes, the page can be parsed and no series of the view is rejected.
func FuzzView(f *testing.F) {
	f.Add("0", "NVIDIA H100", "0000:1b:00.0", "app.kubernetes.io/name", "web", "79", "link-3")
	f.Add("0:1:2", "a \xff\"\n\\", "::", "__name__", "", "-1", "core-")
	f.Add("4:3:0", "", "no address", "1st/é", "\x00", "x", "link-")
	f.Fuzz(func(t *testing.T, index, model_, pci, name, value, xid, entity string) {
		board := gpu(gpu0, "0").set(collector.UtilizationRatio, 0.5, "compute").set(collector.XidErrors, 1, xid).
			set(collector.XidTimestamp, 5, xid, value).set(collector.NVLinkUp, 1, index).
			set(collector.DCGMField, 3, "DCGM_FI_DEV_PLATFORM_TRAY_INDEX", entity, value).
			set(collector.DCGMFieldInfo, 1, "DCGM_FI_DEV_BRAND", value).
			set(collector.AllocationInfo, 1, value, name, xid, "r")
		other := &device{collector.Device{ID: mig0, Parent: gpu0}}
		other.set(collector.DeviceInfo, 1, "gpu", "nvidia", model_, "", index, pci, "", value, "", name).
			set(collector.MemoryUsed, 5<<20).allocate(value, name).allocate(name, value).
			set(collector.AllocationMemory, 1<<20, value, name, "main", "nvidia.com/gpu")
		s := snapshot([]*device{board, other}, driver,
			of(collector.PodInfo, value, name, value, "", "", "", ""), of(collector.PodLabelInfo, value, name, name, value))
		rows := []string{"DCGM_EXP_XID_ERRORS_TOTAL, counter, x", "DCGM_FI_DEV_NVLINK_LINK_STATUS, gauge, x", "DCGM_FI_DEV_BRAND, label, x", "DCGM_FI_DEV_SERIAL, label, x"}
		for _, r := range compat.Default().Rows {
			rows = append(rows, r.Name+", "+string(r.Type)+", x")
		}
		e := exposition.New(func() *collector.Snapshot { return s }, nil, exposition.Options{})
		e.Apply(exposition.Settings{View: compat.New(compat.Options{
			Counters: parseRows(t, rows...), Hostname: value, Pods: true, PodUID: true, PodLabels: allLabels,
		})})
		w := httptest.NewRecorder()
		e.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", nil))
		page := w.Body.String()
		parser := expfmt.NewTextParser(model.LegacyValidation)
		families, err := parser.TextToMetricFamilies(strings.NewReader(page))
		if err != nil {
			t.Fatalf("%v in\n%s", err, page)
		}
		if families["DCGM_FI_DEV_GPU_UTIL"] == nil || strings.Contains(page, "accel_exporter_series_dropped_total{reason=\"invalid\"} 1") {
			t.Fatalf("series were rejected:\n%s", page)
		}
	})
}

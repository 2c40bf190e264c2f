package main

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/accel-exporter/accel-exporter/internal/remediation"
)

const proofPage = `# HELP accel_source_up 1 if the source answered.
# TYPE accel_source_up gauge
accel_source_up{reason="",source="nvidia"} 1
accel_source_up{reason="absent",source="fpga"} 0
accel_source_up{reason="timeout",source="amd"} 0
# TYPE accel_device_health gauge
accel_device_health{device="GPU-0",state="healthy"} 1
accel_device_health{device="GPU-0",state="failed"} 0
accel_device_health{device="GPU-1",state="failed"} 1
# TYPE accel_device_health_reason gauge
accel_device_health_reason{device="GPU-1",reason="xid_79",severity="failed"} 1
# TYPE accel_device_faults_unknown_before_timestamp_seconds gauge
accel_device_faults_unknown_before_timestamp_seconds{device="GPU-1"} 1.7e+09
# TYPE accel_clock_hertz gauge
accel_clock_hertz{clock="memory",device="GPU-0",parent=""} 2.6e+09
accel_clock_hertz{clock="sm",device="GPU-0",parent=""} 1e+09
accel_clock_hertz{clock="sm",device="GPU-1",parent=""} 1e+09
# TYPE accel_clock_max_hertz gauge
accel_clock_max_hertz{clock="sm",device="GPU-0",parent=""} 2e+09
accel_clock_max_hertz{clock="sm",device="GPU-1",parent=""} 2e+09
# TYPE accel_utilization_ratio gauge
accel_utilization_ratio{device="GPU-0",engine="compute",parent=""} 1
accel_utilization_ratio{device="GPU-1",engine="compute",parent=""} 0.1
# TYPE accel_power_watts gauge
accel_power_watts{device="GPU-0",parent=""} 690
# TYPE accel_power_limit_watts gauge
accel_power_limit_watts{device="GPU-0",limit="enforced",parent=""} 700
accel_power_limit_watts{device="GPU-0",limit="max",parent=""} 1000
# TYPE other gauge
other{device="not closed
`

// A proof is made from families of the page. Whatever is no complete page of an
// exporter is an error, which names the address.
func TestProve(t *testing.T) {
	page, status := proofPage, http.StatusOK
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		fmt.Fprint(w, page)
	}))
	defer server.Close()
	hosts := []string{"127.0.0.1"}
	url := strings.Replace(server.URL, "127.0.0.1", "{address}", 1)
	e, err := newExporters(url, "", func(context.Context, string) ([]string, error) { return hosts, nil })
	if err != nil {
		t.Fatal(err)
	}
	want := &remediation.Proof{
		Sources: map[string]string{"amd": "timeout"}, Devices: map[string]string{"GPU-0": "healthy", "GPU-1": "failed"},
		Before: map[string]time.Time{"GPU-1": time.Unix(1.7e9, 0)}, Clocks: map[string]remediation.Clock{"GPU-0": {Share: 0.5, Limited: true}},
	}
	got, err := e.Prove(t.Context(), "n1")
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Error(err, diff)
	}
	page += "# TYPE accel_device_bundle_timestamp_seconds gauge\naccel_device_bundle_timestamp_seconds{device=\"GPU-1\",state=\"saved\",location=\"/a\",sha256=\"0f\"} 1.6e+09\n"
	if got, err = e.Prove(t.Context(), "n1"); err != nil || got.Evidence["GPU-1"] != (remediation.Evidence{State: "saved", Place: "/a, SHA-256 0f"}) {
		t.Error(got, err)
	}
	for want, change := range map[string]func(){
		"no exporter runs":                     func() { hosts = nil },
		"404 Not Found":                        func() { status = http.StatusNotFound },
		"has no accel_source_up":               func() { page = strings.ReplaceAll(proofPage, "accel_source_up", "x") },
		"exporter 127.0.0.1: text format pars": func() { page = "accel_source_up{source=" },
	} {
		hosts, page, status = []string{"127.0.0.1"}, proofPage, http.StatusOK
		change()
		if _, err := e.Prove(t.Context(), "n1"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	for _, url := range []string{"http://10.0.0.1:19400/metrics", "ftp://{address}/", "http://user@{address}/"} {
		if _, err := newExporters(url, "", nil); err == nil {
			t.Errorf("%s is accepted", url)
		}
	}
}

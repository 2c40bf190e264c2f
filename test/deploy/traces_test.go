package deploy

import (
	"encoding/pem"
	"net/http/httptest"
	"slices"
	"testing"
)

// authority is a certificate as a Secret has one.
var authority = func() string {
	server := httptest.NewTLSServer(nil)
	defer server.Close()
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}))
}()

// TestEgress: a network policy lets out what the values call for, by the port
// that each URL has or means; the remediator's to the API server, Alertmanagers and
// hooks.
func TestEgress(t *testing.T) {
	for _, c := range []struct {
		policy, values, flags string
		want                  []float64
	}{
		{"accel-exporter", "", "traces.endpoint=http://collector:4318/v1/traces", []float64{53, 4318}},
		{"accel-exporter", "", "traces.endpoint=https://otlp.example", []float64{53, 443}},
		{"accel-exporter", "", "nodeRules.alertmanagers={http://a:9093,https://b},traces.endpoint=https://c", []float64{53, 443, 9093}},
		{"accel-exporter", "", "config.alertmanager.endpoints[0].url=https://a:9095,dcgm.address=engine.gpu:5556", []float64{53, 5556, 9095}},
		{"accel-exporter", "", "bundle.enabled=true,bundle.url=https://evidence.example:8443/", []float64{53, 8443}},
		{"accel-exporter", "", "podMetadata.enabled=true", []float64{53, 443, 6443}},
		{"accel-remediator", "remediator-everything", "", []float64{53, 443, 6443, 8443, 9093, 19400}},
	} {
		all := objects(t, c.values, "--set=networkPolicy.enabled=true,"+c.flags)
		all = slices.DeleteFunc(all, func(o object) bool { return o.name() != c.policy })
		if got := ports(one(t, all, "NetworkPolicy")); !slices.Equal(got, c.want) {
			t.Errorf("%s %s: out to %v, want %v", c.values, c.flags, got, c.want)
		}
	}
}

// ports are the destination ports that a network policy permits.
func ports(policy object) []float64 {
	var all []float64
	rules, _ := policy.sub("spec")["egress"].([]any)
	for _, r := range rules {
		list, _ := r.(map[string]any)["ports"].([]any)
		for _, p := range list {
			n, _ := p.(map[string]any)["port"].(float64)
			all = append(all, n)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

package deploy

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"slices"
	"testing"
	"time"
)

// authority is a certificate as a Secret has one.
var authority = func() string {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		panic(err)
	}
	is := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true}
	der, err := x509.CreateCertificate(rand.Reader, is, is, key.Public(), key)
	if err != nil {
		panic(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
}()

// TestEgress: a network policy lets out what the values call for, by the port
// that each URL has or means.
func TestEgress(t *testing.T) {
	for _, c := range []struct {
		flags string
		want  []float64
	}{
		{"traces.endpoint=http://collector:4318/v1/traces", []float64{53, 4318}},
		{"traces.endpoint=grpc://collector", []float64{53, 4317}},
		{"traces.endpoint=https://otlp.example", []float64{53, 443}},
		{"nodeRules.alertmanagers={http://a:9093,https://b},traces.endpoint=grpcs://c:443", []float64{53, 443, 9093}},
		{"podMetadata.enabled=true", []float64{53, 443, 6443}},
	} {
		got := ports(one(t, objects(t, "", "--set=networkPolicy.enabled=true,"+c.flags), "NetworkPolicy"))
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: out to %v, want %v", c.flags, got, c.want)
		}
	}
}

// TestRemediatorEgress: to the API server, Alertmanagers and hooks.
func TestRemediatorEgress(t *testing.T) {
	for _, o := range objects(t, "remediator-everything") {
		if o.id() != "NetworkPolicy/accel-remediator" {
			continue
		}
		if got, want := ports(o), []float64{53, 443, 6443, 8443, 9093}; !slices.Equal(got, want) {
			t.Errorf("out to %v, want %v", got, want)
		}
		return
	}
	t.Error("there is none")
}

// ports are those that a network policy lets out to.
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

package alertmanager_test

import (
	"context"
	"net"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/accel-exporter/accel-exporter/rules/alertmanager"
)

// TestApply: an endpoint whose address stays keeps its queue. A new endpoint
// receives later alerts. A removed endpoint receives none.
func TestApply(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		managers := map[string]*manager{"a.example:80": serve(t), "b.example:80": serve(t), "c.example:80": serve(t)}
		dial := func(ctx context.Context, network, addr string) (net.Conn, error) {
			return managers[addr].dial(ctx, network, addr)
		}
		a, b, c := managers["a.example:80"], managers["b.example:80"], managers["c.example:80"]
		a.down, b.down = true, true
		n := start(t, alertmanager.Options{Settings: settings("http://a.example", "http://b.example"), Dial: dial})
		n.Send(firing("first"))
		time.Sleep(time.Minute)
		s := settings("http://b.example/", "http://c.example")
		s.ExternalLabels = map[string]string{"cluster": "east"}
		a.set(func() { a.down = false })
		b.set(func() { b.down = false })
		if err := n.Apply(s); err != nil {
			t.Fatal(err)
		}
		n.Send(firing("second"))
		synctest.Wait() // no time passes: queued alerts are sent at once
		for m, want := range map[*manager]string{a: "/", b: "first second/", c: "second/"} {
			if got := m.knows(); got != want {
				t.Errorf("%q, want %q", got, want)
			}
		}
		if got := c.alerts["second"].Labels["cluster"]; got != "east" {
			t.Errorf("the external label is %q", got)
		}
		if got := n.metricsOf("http://a.example"); got["queue_capacity"] != 0 {
			t.Errorf("the removed endpoint has metrics: %v", got)
		}
		if err := n.Apply(settings()); err != nil {
			t.Fatal(err)
		}
		n.Send(firing("no endpoint"))
		n.stop()
		if err := n.Apply(settings("http://a.example")); err != nil {
			t.Fatal(err)
		}
		n.Send(firing("after the end"))
	})
}

// TestApplyWholeOrNot: Apply changes nothing if a setting is invalid.
func TestApplyWholeOrNot(t *testing.T) {
	dir := t.TempDir()
	broken := write(t, dir, "broken", "no certificate")
	bubble(t, settings(address), func(t *testing.T, m *manager, n *rig) {
		for name, c := range map[string]struct {
			change func(*alertmanager.Settings)
			want   string
		}{
			"missing CA": {func(s *alertmanager.Settings) { s.Endpoints[1].HTTP.TLS.CAFile = filepath.Join(dir, "gone") }, "gone"},
			"broken CA":  {func(s *alertmanager.Settings) { s.Endpoints[1].HTTP.TLS.CAFile = broken }, "broken"},
			"broken key": {func(s *alertmanager.Settings) {
				s.Endpoints[1].HTTP.TLS.CertFile, s.Endpoints[1].HTTP.TLS.KeyFile = broken, broken
			}, "broken"},
			"address": {func(s *alertmanager.Settings) { s.Endpoints[1].URL = "http://user:hunter2@other" }, "a user or a password"},
		} {
			s := settings("http://first.example", "https://second.example")
			s.ExternalLabels = map[string]string{"new": "label"}
			c.change(&s)
			err := n.Apply(s)
			if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "hunter2") {
				t.Errorf("%s: %v, want %q", name, err, c.want)
			}
			if _, err := alertmanager.New(alertmanager.Options{Settings: s}); err == nil {
				t.Errorf("%s: New accepts it", name)
			}
		}
		n.Send(firing("a"))
		synctest.Wait()
		if got := m.knows(); got != "a/" || m.alerts["a"].Labels["new"] != "" {
			t.Errorf("%q %v", got, m.alerts["a"].Labels)
		}
	})
}

// TestExternalLabels are added to an alert without such a label.
func TestExternalLabels(t *testing.T) {
	s := settings(address)
	s.ExternalLabels = map[string]string{"cluster": "east", "severity": "info"}
	bubble(t, s, func(t *testing.T, m *manager, n *rig) {
		a := firing("Hot")
		a.Labels = map[string]string{"alertname": "Hot", "severity": "page", "empty": ""}
		n.Send(a)
		synctest.Wait()
		want := map[string]string{"alertname": "Hot", "severity": "page", "cluster": "east"}
		if diff := cmp.Diff(want, map[string]string(m.alerts["Hot"].Labels)); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
}

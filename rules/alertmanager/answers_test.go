package alertmanager_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/accel-exporter/accel-exporter/rules/engine"
)

// TestAnswers: after a response of any status, a firing alert is sent again. The
// retry waits for the pause, and the failure is counted and logged by its reason.
func TestAnswers(t *testing.T) {
	for _, c := range []struct {
		code         int
		header, body string
		reason       string
		pause        time.Duration // minimum time until the retry
	}{
		{code: 500, body: `"no disk"`, reason: "server_error", pause: 250 * time.Millisecond},
		{code: 502, body: "<html>", reason: "server_error", pause: 250 * time.Millisecond},
		{code: 429, header: "90", reason: "throttled", pause: 90 * time.Second},
		{code: 429, header: "1000000", reason: "throttled", pause: 2 * time.Minute},
		{code: 429, header: "date", reason: "throttled", pause: 119 * time.Second},
		{code: 408, reason: "client_error", pause: 250 * time.Millisecond},
		{code: 401, body: "no", reason: "unauthorized", pause: 30 * time.Second},
		{code: 404, body: "404 page not found", reason: "client_error", pause: 30 * time.Second},
		{code: 400, body: "Client sent an HTTP request to an HTTPS server.\n", reason: "client_error", pause: 30 * time.Second},
		{code: 302, reason: "redirect", pause: 30 * time.Second}, // not followed: credentials could go to another host
	} {
		t.Run(fmt.Sprint(c.code, c.header), func(t *testing.T) {
			bubble(t, settings(address), func(t *testing.T, m *manager, n *rig) {
				bad := true
				m.answer = func(w http.ResponseWriter, _ *http.Request, _ []string) bool {
					if !bad {
						return false
					}
					bad = false
					if c.header == "date" {
						c.header = time.Now().Add(2 * time.Minute).UTC().Format(http.TimeFormat)
					}
					if c.header != "" {
						w.Header().Set("Retry-After", c.header)
					}
					w.Header().Set("Location", "http://elsewhere.example/api/v2/alerts")
					w.WriteHeader(c.code)
					fmt.Fprint(w, c.body)
					return true
				}
				n.Send(firing("a"))
				synctest.Wait()
				begin := time.Now()
				if got := n.metrics(); got["request_failures_total "+c.reason] != 1 || got["queue_length"] != 1 {
					t.Errorf("%v", got)
				}
				time.Sleep(c.pause - time.Millisecond)
				synctest.Wait()
				if got := m.count(); got != 1 {
					t.Errorf("%d requests within %v", got, time.Since(begin))
				}
				n.Send(firing("a"))
				time.Sleep(c.pause + time.Second)
				synctest.Wait()
				if m.alerts["a"] == nil || m.count() != 2 {
					t.Errorf("%q after %d requests", m.knows(), m.count())
				}
				if text := n.log.String(); strings.Count(text, "\n") != 2 || !strings.Contains(text, "reason="+c.reason) {
					t.Errorf("log:\n%s", text)
				}
			})
		})
	}
}

// refuses returns an answer that refuses every batch with an alert whose name begins
// with bad, as Alertmanager does. Some versions of Alertmanager accept the other
// alerts of such a batch; this one accepts none.
func refuses(code int, body any) func(http.ResponseWriter, *http.Request, []string) bool {
	return func(w http.ResponseWriter, _ *http.Request, names []string) bool {
		if !slices.ContainsFunc(names, func(s string) bool { return strings.HasPrefix(s, "bad") }) {
			return false
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(code)
		_ = json.NewEncoder(w).Encode(body)
		return true
	}
}

// TestRefused: a refused alert does not affect the other alerts. It is logged once.
func TestRefused(t *testing.T) {
	for _, c := range []struct {
		code int
		body any
		want string
	}{
		{400, "start time must be before end time", "status 400: start time must be before end time"},
		{422, map[string]any{"code": 601, "message": "generatorURL must be of type uri"}, "status 422: generatorURL must be"},
		{413, "", "status 413"},
		{400, strings.Repeat("long ", 2000), "long long"},
	} {
		bubble(t, settings(address), func(t *testing.T, m *manager, n *rig) {
			m.answer = refuses(c.code, c.body)
			var alerts []engine.Alert
			for i := range 63 {
				alerts = append(alerts, firing(fmt.Sprint(i)))
			}
			n.Send(slices.Insert(alerts, 40, firing("bad"))...)
			synctest.Wait()
			if len(m.alerts) != 63 || m.count() > 13 {
				t.Errorf("%d alerts after %d requests", len(m.alerts), m.count())
			}
			n.Send(firing("bad"))
			synctest.Wait()
			got := n.metrics()
			if got["alerts_dropped_total refused"] != 2 || got["alerts_sent_total"] != 63 || got["queue_length"] != 0 {
				t.Errorf("%v", got)
			}
			if text := n.log.String(); strings.Count(text, "\n") != 1 || !strings.Contains(text, "alert=bad") || !strings.Contains(text, c.want) || len(text) > 600 {
				t.Errorf("log:\n%s", text)
			}
		})
	}
}

// TestClosed: a request on a connection that the server has closed is retried on a
// new connection. It does not count as failed.
func TestClosed(t *testing.T) {
	bubble(t, settings(address), func(t *testing.T, m *manager, n *rig) {
		n.Send(firing("a"))
		synctest.Wait()
		m.answer = func(w http.ResponseWriter, _ *http.Request, _ []string) bool {
			if m.count() > 2 {
				return false
			}
			conn, _, err := w.(http.Hijacker).Hijack()
			if err != nil {
				t.Error(err)
				return false
			}
			conn.Close()
			return true
		}
		n.Send(firing("b"))
		synctest.Wait()
		if got := m.knows(); got != "a b/" || n.log.String() != "" || m.requests[2].Header["Idempotency-Key"] != nil {
			t.Errorf("%q, log:\n%s", got, n.log)
		}
	})
}

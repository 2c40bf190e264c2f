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
)

// TestAnswers: after a response of any status, a firing alert is sent again. The
// retry waits for the pause, and the failure is counted and logged by its reason.
func TestAnswers(t *testing.T) {
	for _, c := range []struct {
		code   int
		body   string
		reason string
	}{
		{code: 500, body: `"no disk"`, reason: "server_error"},
		{code: 502, body: "<html>", reason: "server_error"},
		{code: 429, reason: "throttled"},
		{code: 408, reason: "client_error"},
		{code: 401, body: "no", reason: "unauthorized"},
		{code: 404, body: "404 page not found", reason: "client_error"},
		{code: 400, body: "Client sent an HTTP request to an HTTPS server.\n", reason: "client_error"},
		{code: 302, reason: "redirect"}, // not followed: credentials could go to another host
	} {
		t.Run(fmt.Sprint(c.code), func(t *testing.T) {
			bubble(t, settings(address), func(t *testing.T, m *manager, n *rig) {
				bad := true
				m.answer = func(w http.ResponseWriter, _ *http.Request, _ []string) bool {
					if !bad {
						return false
					}
					bad = false
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
				time.Sleep(249 * time.Millisecond)
				synctest.Wait()
				if got := m.count(); got != 1 {
					t.Errorf("%d requests within %v", got, time.Since(begin))
				}
				n.Send(firing("a"))
				time.Sleep(time.Second)
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

// TestRefused: an alert whose content is refused is dropped, and logged once; the others of
// its batch are delivered.
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
			m.answer = func(w http.ResponseWriter, _ *http.Request, names []string) bool {
				if !slices.Contains(names, "bad") {
					return false
				}
				w.WriteHeader(c.code)
				_ = json.NewEncoder(w).Encode(c.body)
				return true
			}
			for range 2 {
				n.Send(firing("bad"), firing("beside"))
				synctest.Wait()
			}
			got := n.metrics()
			if got["alerts_dropped_total refused"] != 2 || got["queue_length"] != 0 {
				t.Errorf("%v", got)
			}
			if text := n.log.String(); strings.Count(text, "\n") != 1 || !strings.Contains(text, "alert=bad") || !strings.Contains(text, c.want) || len(text) > 600 {
				t.Errorf("log:\n%s", text)
			}
			n.Send(firing("good"))
			synctest.Wait()
			if got := m.knows(); got != "beside good/" {
				t.Errorf("Alertmanager has %q", got)
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

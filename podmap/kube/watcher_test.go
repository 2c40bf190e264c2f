package kube_test

import (
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/accel-exporter/accel-exporter/podmap/kube"
)

// TestFollows: the Map follows a list and the events of a watch.
func TestFollows(t *testing.T) {
	bubble(t, func(t *testing.T, a *api) {
		train := pod("ml", "train-0", "u-1", func(meta, _, _ object) {
			meta["labels"] = object{"team": "vision", "app.kubernetes.io/name": "trainer", "password": "hunter2", "app.kubernetes.io/a/b": "no"}
			meta["ownerReferences"] = []object{{"kind": "Other", "name": "x"}, {"kind": "StatefulSet", "name": "train", "controller": true}}
		})
		a.send("ADDED", podsPath, train)
		w := a.run()

		want := kube.Pod{
			Namespace: "ml", Name: "train-0", UID: "u-1",
			Labels:     map[string]string{"team": "vision", "app.kubernetes.io/name": "trainer"},
			Controller: kube.Workload{Kind: "StatefulSet", Name: "train"}, Workload: kube.Workload{Kind: "StatefulSet", Name: "train"},
			Created: time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC),
		}
		m := w.Latest()
		if got, _ := m.Pod("ml", "train-0"); cmp.Diff(want, got) != "" {
			t.Error(cmp.Diff(want, got))
		}
		if w.Latest() != m {
			t.Error("a new Map without a change")
		}

		a.send("ADDED", podsPath, pod("ml", "web", "u-2"))
		train["metadata"].(object)["labels"] = object{"team": "speech"}
		a.send("MODIFIED", podsPath, train)
		a.send("BOOKMARK", podsPath, object{"kind": "Pod", "metadata": object{}})
		if got, _ := w.Latest().Pod("ml", "train-0"); got.Labels["team"] != "speech" || !got.Deleted.IsZero() {
			t.Errorf("%+v", got)
		}
		if got, _ := m.Pod("ml", "train-0"); got.Labels["team"] != "vision" {
			t.Error("a published Map has changed")
		}

		// A deleted pod is kept for ten minutes. A new pod of the same name takes
		// precedence.
		a.send("DELETED", podsPath, train)
		a.send("ADDED", podsPath, pod("ml", "train-0", "u-3"))
		a.pods(w, "ml/train-0", "ml/train-0 deleted", "ml/web")
		if got, _ := w.Latest().Pod("ml", "train-0"); got.UID != "u-3" {
			t.Errorf("%+v", got)
		}
		if s := w.Status().Pods; s.Objects != 2 || s.Kept != 1 || !s.Watching || s.State != kube.StateFresh {
			t.Errorf("%+v", s)
		}
		time.Sleep(11 * time.Minute)
		a.pods(w, "ml/train-0", "ml/web")
		s := w.Status().Pods
		if diff := cmp.Diff(map[string]uint64{"ADDED": 2, "MODIFIED": 1, "DELETED": 1, "BOOKMARK": 1}, s.Events); diff != "" {
			t.Error(diff)
		}
		if s.State != kube.StateFresh || s.LastError != "" || s.Watches[kube.OutcomeOK] == 0 || s.Lists[kube.OutcomeOK] != 1 {
			t.Errorf("%+v", s)
		}
	})
}

// TestVersions: the versions from which lists and watches start.
func TestVersions(t *testing.T) {
	bubble(t, func(t *testing.T, a *api) {
		a.run()
		a.requested("list pods resourceVersion=0 resourceVersionMatch=NotOlderThan", "watch pods resourceVersion=100")

		// A watch continues from the end of the previous one.
		a.send("BOOKMARK", podsPath, object{"kind": "Pod", "metadata": object{}})
		a.endWatches()
		time.Sleep(time.Minute)
		a.requested("watch pods resourceVersion=101")

		// After an expired version, the list is read again from the server's
		// cache.
		a.sendText(podsPath, `{"type":"ERROR","object":{"kind":"Status","status":"Failure","code":410,"reason":"Expired","message":"too old"}}`)
		time.Sleep(time.Minute)
		a.requested("list pods resourceVersion=101 resourceVersionMatch=NotOlderThan", "watch pods resourceVersion=101")

		// A server that was restored from a backup does not have the version.
		a.set(func() {
			a.version = 7
			a.answer = func(w http.ResponseWriter, r *http.Request) bool {
				if r.URL.Query().Get("resourceVersion") == "101" {
					refuse(w, http.StatusGatewayTimeout, "Timeout", "Too large resource version: 101, current: 7")
					return true
				}
				return false
			}
		})
		a.endWatches()
		time.Sleep(2 * time.Minute)
		seen := a.requests()
		if n := len(seen); n < 3 || n > 8 || seen[n-2] != "list pods" || seen[n-1] != "watch pods resourceVersion=7" {
			t.Errorf("%q", seen)
		}
	})
}

// TestVersionsGoBack: a server that was restored from a backup accepts a watch from a
// version that it does not have, and sends no events until it reaches it. So after a
// failure the Watcher first checks that the server has the version.
func TestVersionsGoBack(t *testing.T) {
	bubble(t, func(t *testing.T, a *api) {
		a.send("ADDED", podsPath, pod("ml", "later", "u-1"))
		w := a.run()
		a.requests()
		a.server.CloseClientConnections()
		time.Sleep(10 * time.Second)
		a.requested("probe pods resourceVersion=101 resourceVersionMatch=NotOlderThan", "watch pods resourceVersion=101")
		a.set(func() {
			a.version = 7
			clear(a.objects)
			a.answer = func(w http.ResponseWriter, r *http.Request) bool {
				if q := r.URL.Query(); q.Get("watch") != "" || q.Get("resourceVersion") != "101" {
					return false
				}
				a.probe(w, r)
				return true
			}
		})
		a.server.CloseClientConnections()
		time.Sleep(time.Minute)
		a.requested("probe pods resourceVersion=101 resourceVersionMatch=NotOlderThan", "list pods resourceVersion=101 resourceVersionMatch=NotOlderThan",
			"list pods", "watch pods resourceVersion=7")
		a.pods(w, "ml/later deleted")
		if s := w.Status().Pods; s.State != kube.StateFresh || s.Watches[kube.OutcomeTimeout] != 1 || !strings.Contains(s.LastError, "Too large resource version: 101, current: 7") {
			t.Errorf("%+v", s)
		}
	})
}

// TestRelist: a pod that is not in a new list counts as deleted.
func TestRelist(t *testing.T) {
	bubble(t, func(t *testing.T, a *api) {
		old := pod("ml", "old", "u-1")
		a.send("ADDED", podsPath, old)
		a.send("ADDED", podsPath, pod("ml", "stays", "u-2"))
		w := a.run()
		a.set(func() { clear(a.objects) })
		a.send("BOOKMARK", podsPath, object{"kind": "Pod", "metadata": object{}})
		a.set(func() {
			a.objects[podsPath+" 1"] = pod("ml", "stays", "u-2")
			a.objects[podsPath+" 2"] = pod("ml", "new", "u-3")
		})
		a.sendText(podsPath, `{"type":"ERROR","object":{"kind":"Status","code":410}}`)
		time.Sleep(time.Minute)
		a.pods(w, "ml/new", "ml/old deleted", "ml/stays")
	})
}

// TestRefusals: each failed request has an outcome. Errors do not contain the token. The
// state is fresh again after the failure.
func TestRefusals(t *testing.T) {
	status := func(code int, reason, message string) func(http.ResponseWriter, *http.Request) {
		return func(w http.ResponseWriter, _ *http.Request) { refuse(w, code, reason, message) }
	}
	body := func(code int, text string) func(http.ResponseWriter, *http.Request) {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(code)
			w.Write([]byte(text))
		}
	}
	for _, c := range []struct {
		name    string
		answer  func(http.ResponseWriter, *http.Request)
		outcome kube.Outcome
		state   kube.State
		err     string
	}{
		{"forbidden", status(403, "Forbidden", `pods is forbidden: User "x" cannot list resource "pods"`), kube.OutcomeForbidden, kube.StateDenied, `list Pods: status 403: pods is forbidden: User "x" cannot list resource "pods"`},
		{"unauthorized", status(401, "Unauthorized", ""), kube.OutcomeUnauthorized, kube.StateDenied, "list Pods: status 401: Unauthorized"},
		{"a server that repeats the token", status(401, "", "bad token "+token+"\nsee "+token), kube.OutcomeUnauthorized, kube.StateDenied, "list Pods: status 401: bad token [token] see [token]"},
		{"throttled", status(429, "TooManyRequests", "later"), kube.OutcomeThrottled, kube.StateUnreachable, "list Pods: status 429: later"},
		{"not found", status(404, "NotFound", "nothing here"), kube.OutcomeNotFound, kube.StateAbsent, "list Pods: status 404: nothing here"},
		{"unavailable", body(503, "<html>Bad gateway</html>"), kube.OutcomeUnavailable, kube.StateUnreachable, "list Pods: status 503"},
		{"redirect", func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "https://example.com/login", http.StatusFound)
		}, kube.OutcomeError, kube.StateUnreachable, "list Pods: status 302"},
		{"an HTML page", body(200, "<html>"), kube.OutcomeGarbage, kube.StateUnreachable, "list Pods: not JSON"},
		{"truncated", body(200, `{"kind":"PodList","metadata":{"resourceVersion":"1"},"items":[`), kube.OutcomeUnavailable, kube.StateUnreachable, "list Pods: unexpected EOF"},
		{"another list", body(200, `{"kind":"SecretList","metadata":{"resourceVersion":"1"},"items":[]}`), kube.OutcomeGarbage, kube.StateUnreachable, `list Pods: not what was asked for: a "SecretList" and no PodList with a version`},
		{"too large", body(200, `{"kind":"PodList","items":[{"metadata":{"name":"`+strings.Repeat("a", 5<<20)+`"}}]}`), kube.OutcomeTooLarge, kube.StateUnreachable, "list Pods: larger than the limit"},
		{"no answer", func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }, kube.OutcomeTimeout, kube.StateUnreachable, "list Pods: no answer in time"},
		{"an incomplete answer", func(w http.ResponseWriter, r *http.Request) {
			w.Write([]byte(`{"kind":`))
			w.(http.Flusher).Flush()
			<-r.Context().Done()
		}, kube.OutcomeTimeout, kube.StateUnreachable, "list Pods: no answer in time"},
	} {
		subtest(t, c.name, func(t *testing.T, a *api) {
			a.send("ADDED", podsPath, pod("ml", "train-0", "u-1"))
			a.answer = func(w http.ResponseWriter, r *http.Request) bool {
				c.answer(w, r)
				return true
			}
			w := a.run()
			time.Sleep(2 * time.Minute)
			s := w.Status().Pods
			if s.Last != c.outcome || s.Lists[c.outcome] < 2 || s.Lists[c.outcome] > 20 || s.State != c.state || s.LastError != c.err || s.Reason != c.err {
				t.Errorf("%+v", s)
			}
			if m := w.Latest(); len(m.Pods) > 0 || m.State != c.state {
				t.Errorf("%+v", m)
			}
			a.set(func() { a.answer = nil })
			time.Sleep(2 * time.Minute)
			if s := w.Status().Pods; s.State != kube.StateFresh || s.Objects != 1 || s.Reason != "" {
				t.Errorf("after the failure: %+v", s)
			}
		})
	}
}

// TestSoon: a server that has just started refuses all requests for some seconds. The
// state is fresh soon after that.
func TestSoon(t *testing.T) {
	bubble(t, func(t *testing.T, a *api) {
		began := time.Now()
		a.answer = func(w http.ResponseWriter, _ *http.Request) bool {
			if time.Since(began) > 10*time.Second {
				return false
			}
			refuse(w, 403, "Forbidden", "RBAC: not ready")
			return true
		}
		w := a.run()
		time.Sleep(25 * time.Second)
		a.fresh(w)
	})
}

// TestRetryAfter: the next request waits for the time that the server requests, up to a
// limit.
func TestRetryAfter(t *testing.T) {
	for _, c := range []struct{ name, after string }{
		{"header", "100"},
		{"above the limit", "9999999999999"},
	} {
		subtest(t, c.name, func(t *testing.T, a *api) {
			a.answer = func(w http.ResponseWriter, _ *http.Request) bool {
				w.Header().Set("Retry-After", c.after)
				refuse(w, 429, "TooManyRequests", "")
				return true
			}
			w := a.run()
			time.Sleep(99 * time.Second)
			if got := len(a.requests()); got != 1 {
				t.Errorf("%d requests", got)
			}
			a.set(func() { a.answer = nil })
			time.Sleep(7 * time.Minute)
			a.fresh(w)
		})
	}
}

// TestToken: the token is read before each request. Errors do not contain it.
func TestToken(t *testing.T) {
	bubble(t, func(t *testing.T, a *api) {
		w := a.run()
		a.write("token", "another")
		a.endWatches()
		time.Sleep(time.Minute)
		if diff := cmp.Diff(map[string]bool{"Bearer " + token: true, "Bearer another": true}, a.received()); diff != "" {
			t.Error(diff)
		}
		for _, bad := range []string{"", " \n", "two\nlines", "with space", "\xff\xfe"} {
			file := a.write("token", bad)
			a.endWatches()
			time.Sleep(2 * time.Minute)
			if s := w.Status().Pods; s.Last != kube.OutcomeCredentials || s.State != kube.StateStale || s.LastError != "watch Pods: token: none in "+file && s.LastError != "list Pods: token: none in "+file {
				t.Errorf("%q: %+v", bad, s)
			}
		}
		a.write("token", token)
		time.Sleep(time.Minute)
		a.fresh(w)
	})
}

// TestCertificates: the token is not sent to a server with an invalid certificate. The
// certificate authorities are read before each request.
func TestCertificates(t *testing.T) {
	bubble(t, func(t *testing.T, a *api) {
		opts := a.options()
		good, err := os.ReadFile(opts.CAFile)
		if err != nil {
			t.Fatal(err)
		}
		a.write("ca.crt", "nothing")
		w := a.run()
		if s := w.Status().Pods; s.Last != kube.OutcomeCredentials || s.LastError != "list Pods: certificates: no PEM certificate in "+opts.CAFile {
			t.Errorf("%+v", s)
		}
		a.write("ca.crt", otherCA)
		time.Sleep(time.Minute)
		if s := w.Status().Pods; s.Last != kube.OutcomeCertificate {
			t.Errorf("%+v", s)
		}
		if len(a.received()) > 0 {
			t.Error("the token was sent")
		}
		a.write("ca.crt", string(good))
		time.Sleep(time.Minute)
		a.fresh(w)
	})
}

// TestOutage: during an outage the data is stale, then dropped. After the outage it is
// read again.
func TestOutage(t *testing.T) {
	for _, c := range []struct {
		name    string
		begin   func(*api)
		outcome kube.Outcome
	}{
		{"refused", func(a *api) { a.down = true }, kube.OutcomeConnect},
		{"silent", func(a *api) { a.stuck = true }, kube.OutcomeTimeout},
		{"frozen", func(a *api) { a.down, a.frozen = true, true }, kube.OutcomeConnect},
	} {
		subtest(t, c.name, func(t *testing.T, a *api) {
			a.send("ADDED", podsPath, pod("ml", "train-0", "u-1"))
			w := a.run()
			a.set(func() { c.begin(a) })
			if !a.frozen {
				a.server.CloseClientConnections()
			}
			time.Sleep(5 * time.Minute)
			s := w.Status().Pods
			if s.State != kube.StateStale || s.Watching || s.Age < 4*time.Minute || s.Watches[c.outcome]+s.Lists[c.outcome] < 3 {
				t.Errorf("%+v", s)
			}
			if _, ok := w.Latest().Pod("ml", "train-0"); !ok {
				t.Error("the pod was dropped within the hour")
			}
			time.Sleep(time.Hour)
			if m := w.Latest(); m.State != kube.StateUnreachable || len(m.Pods) > 0 {
				t.Errorf("%+v", m)
			}
			a.set(func() { a.down, a.stuck, a.frozen = false, false, false })
			time.Sleep(2 * time.Minute)
			if m := w.Latest(); m.State != kube.StateFresh || len(m.Pods) != 1 {
				t.Errorf("%+v %+v", m, w.Status())
			}
		})
	}
}

// TestOnlyLists: if watches are forbidden, lists are read periodically.
func TestOnlyLists(t *testing.T) {
	bubble(t, func(t *testing.T, a *api) {
		a.answer = func(w http.ResponseWriter, r *http.Request) bool {
			if r.URL.Query().Has("watch") {
				refuse(w, 403, "Forbidden", "no")
				return true
			}
			return false
		}
		w := a.run()
		a.send("ADDED", podsPath, pod("ml", "late", "u-1"))
		time.Sleep(5 * time.Minute)
		s := w.Status().Pods
		if s.State != kube.StateStale || s.Objects != 1 || s.LastError != "watch Pods: status 403: no" {
			t.Errorf("%+v", s)
		}
	})
}

// TestWatchGarbage: a watch with an invalid event ends, and a new watch starts.
func TestWatchGarbage(t *testing.T) {
	for _, c := range []struct {
		name, text string
		outcome    kube.Outcome
	}{
		{"no JSON", "<html>", kube.OutcomeGarbage},
		{"not an event", `[]`, kube.OutcomeGarbage},
		{"another event", `{"type":"RENAMED","object":{"kind":"Pod"}}`, kube.OutcomeGarbage},
		{"another kind", `{"type":"ADDED","object":{"kind":"Secret","metadata":{"name":"x","namespace":"y","uid":"z"}}}`, kube.OutcomeGarbage},
		{"an error", `{"type":"ERROR","object":{"kind":"Status","code":500,"message":"etcd"}}`, kube.OutcomeUnavailable},
		{"an error that repeats the token", `{"type":"ERROR","object":{"kind":"Status","code":500,"message":"no ` + token + `"}}`, kube.OutcomeUnavailable},
		{"an error without a code", `{"type":"ERROR","object":null}`, kube.OutcomeError},
		{"too large", `{"type":"ADDED","object":{"x":"` + strings.Repeat("a", 5<<20), kube.OutcomeTooLarge},
	} {
		subtest(t, c.name, func(t *testing.T, a *api) {
			a.send("ADDED", podsPath, pod("ml", "train-0", "u-1"))
			w := a.run()
			a.sendText(podsPath, c.text)
			s := w.Status().Pods
			if s.Watches[c.outcome] != 1 || s.State != kube.StateStale {
				t.Errorf("%+v", s)
			}
			time.Sleep(time.Minute)
			a.send("ADDED", podsPath, pod("ml", "train-1", "u-2"))
			a.pods(w, "ml/train-0", "ml/train-1")
		})
	}
}

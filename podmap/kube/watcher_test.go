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
		const parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
		train := pod("ml", "train-0", "u-1", func(meta, _, _ object) {
			meta["labels"] = object{"team": "vision", "app.kubernetes.io/name": "trainer", "password": "hunter2", "app.kubernetes.io/a/b": "no"}
			meta["annotations"] = object{"other": "hunter2", "long": strings.Repeat("x", 1025), "traceparent": parent, "later": "y"}
			meta["ownerReferences"] = []object{{"kind": "Other", "name": "x"}, {"kind": "StatefulSet", "name": "train", "controller": true}}
		})
		a.send("ADDED", podsPath, train)
		w := a.run(func(o *kube.Options) { o.Contexts = []string{"absent", "long", "traceparent", "later"} })

		want := kube.Pod{
			Namespace: "ml", Name: "train-0", UID: "u-1", Context: parent,
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
		if n := w.Status().Pods.Objects; n != 2 {
			t.Errorf("%d pods", n)
		}
		time.Sleep(11 * time.Minute)
		a.pods(w, "ml/train-0", "ml/web")
		a.state(w, kube.StateFresh, "")
	})
}

// TestManyLabels: the labels of a pod are limited, and labels that match the
// first pattern are kept.
func TestManyLabels(t *testing.T) {
	bubble(t, func(t *testing.T, a *api) {
		labels := object{"team": "vision"}
		for c := 'a'; c <= 'z'; c++ {
			labels["app.kubernetes.io/"+string(c)] = "x"
			labels["app.kubernetes.io/x"+string(c)] = "x"
		}
		a.send("ADDED", podsPath, pod("ml", "train-0", "u-1", func(meta, _, _ object) { meta["labels"] = labels }))
		got, _ := a.run().Latest().Pod("ml", "train-0")
		if len(got.Labels) != 32 || got.Labels["team"] != "vision" {
			t.Errorf("%q", got.Labels)
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
	})
}

// TestVersionsGoBack: a server that was restored from a backup accepts a watch from a
// version that it does not have, and sends no events until it reaches it. So after a
// failure the Watcher lists again.
func TestVersionsGoBack(t *testing.T) {
	bubble(t, func(t *testing.T, a *api) {
		a.send("ADDED", podsPath, pod("ml", "later", "u-1"))
		w := a.run()
		a.requests()
		a.server.CloseClientConnections()
		time.Sleep(10 * time.Second)
		a.requested("list pods resourceVersion=101 resourceVersionMatch=NotOlderThan", "watch pods resourceVersion=101")
		a.set(func() {
			a.version = 7
			clear(a.objects)
		})
		a.server.CloseClientConnections()
		time.Sleep(time.Minute)
		a.requested("list pods resourceVersion=101 resourceVersionMatch=NotOlderThan", "list pods", "watch pods resourceVersion=7")
		a.pods(w, "ml/later deleted")
		a.state(w, kube.StateFresh, "")
	})
}

// TestRelist: a pod that is not in a new list counts as deleted.
func TestRelist(t *testing.T) {
	bubble(t, func(t *testing.T, a *api) {
		a.send("ADDED", podsPath, pod("ml", "old", "u-1"))
		a.send("ADDED", podsPath, pod("ml", "stays", "u-2"))
		w := a.run()
		a.set(func() {
			clear(a.objects)
			a.objects[podsPath+" 1"] = pod("ml", "stays", "u-2")
			a.objects[podsPath+" 2"] = pod("ml", "new", "u-3")
		})
		a.sendText(podsPath, `{"type":"ERROR","object":{"kind":"Status","code":410}}`)
		time.Sleep(time.Minute)
		a.pods(w, "ml/new", "ml/old deleted", "ml/stays")
	})
}

// TestRefusals: each failed request has a reason, which does not contain the
// token. The state is fresh again after the failure.
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
		name   string
		answer func(http.ResponseWriter, *http.Request)
		reason string
	}{
		{"forbidden", status(403, "Forbidden", `pods is forbidden: User "x" cannot list resource "pods"`), `status 403: pods is forbidden: User "x" cannot list resource "pods"`},
		{"a server that repeats the token", status(401, "", "bad token "+token+"\nsee "+token), "status 401: bad token [token] see [token]"},
		{"not found", status(404, "NotFound", ""), "status 404: NotFound"},
		{"unavailable", body(503, "<html>Bad gateway</html>"), "status 503"},
		{"redirect", func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "https://example.com/login", http.StatusFound)
		}, "status 302"},
		{"an HTML page", body(200, "<html>"), "not JSON"},
		{"truncated", body(200, `{"kind":"PodList","metadata":{"resourceVersion":"1"},"items":[`), "unexpected EOF"},
		{"another list", body(200, `{"kind":"SecretList","metadata":{"resourceVersion":"1"},"items":[]}`), `a "SecretList" and no PodList with a version`},
		{"an incomplete answer", func(w http.ResponseWriter, r *http.Request) {
			w.Write([]byte(`{"kind":`))
			w.(http.Flusher).Flush()
			<-r.Context().Done()
		}, "no answer in time"},
	} {
		subtest(t, c.name, func(t *testing.T, a *api) {
			a.send("ADDED", podsPath, pod("ml", "train-0", "u-1"))
			a.answer = func(w http.ResponseWriter, r *http.Request) bool {
				c.answer(w, r)
				return true
			}
			w := a.run()
			time.Sleep(40 * time.Second)
			a.state(w, kube.StateAbsent, "list Pods: "+c.reason)
			a.pods(w)
			a.set(func() { a.answer = nil })
			time.Sleep(2 * time.Minute)
			a.state(w, kube.StateFresh, "")
			a.pods(w, "ml/train-0")
		})
	}
}

// TestRetries: a server that has just started refuses all requests for some
// seconds, so the next request follows soon, unless the server requests a wait.
func TestRetries(t *testing.T) {
	for _, c := range []struct {
		after       string
		none, fresh time.Duration // no second request until none; StateFresh at fresh
	}{
		{"", 0, 25 * time.Second},
		{"100", 99 * time.Second, 3 * time.Minute},
		{"9999999999999", 4 * time.Minute, 8 * time.Minute},
	} {
		subtest(t, c.after, func(t *testing.T, a *api) {
			began := time.Now()
			a.answer = func(w http.ResponseWriter, _ *http.Request) bool {
				if time.Since(began) > 10*time.Second {
					return false
				}
				w.Header().Set("Retry-After", c.after)
				refuse(w, 403, "Forbidden", "RBAC: not ready")
				return true
			}
			w := a.run()
			time.Sleep(c.none)
			if got := len(a.requests()); got != 1 {
				t.Errorf("%d requests", got)
			}
			time.Sleep(c.fresh - c.none)
			a.state(w, kube.StateFresh, "")
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
		file := a.write("token", "two\nlines")
		a.endWatches()
		time.Sleep(2 * time.Minute)
		a.state(w, kube.StateStale, "list Pods: token: none in "+file)
		a.write("token", token)
		time.Sleep(time.Minute)
		a.state(w, kube.StateFresh, "")
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
		a.state(w, kube.StateAbsent, "list Pods: certificates: no PEM certificate in "+opts.CAFile)
		a.write("ca.crt", otherCA)
		time.Sleep(time.Minute)
		if s := w.Status().Pods; !strings.Contains(s.Reason, "certificate signed by unknown authority") {
			t.Errorf("%+v", s)
		}
		if len(a.received()) > 0 {
			t.Error("the token was sent")
		}
		a.write("ca.crt", string(good))
		time.Sleep(time.Minute)
		a.state(w, kube.StateFresh, "")
	})
}

// TestOutage: during an outage the data is stale, then dropped. After the outage it is
// read again.
func TestOutage(t *testing.T) {
	for _, c := range []struct {
		name  string
		begin func(*api)
	}{
		{"refused", func(a *api) { a.down = true }},
		{"silent", func(a *api) { a.stuck = true }},
		{"frozen", func(a *api) { a.down, a.frozen = true, true }},
	} {
		subtest(t, c.name, func(t *testing.T, a *api) {
			a.send("ADDED", podsPath, pod("ml", "train-0", "u-1"))
			w := a.run()
			a.set(func() { c.begin(a) })
			if !a.frozen {
				a.server.CloseClientConnections()
			}
			time.Sleep(5 * time.Minute)
			if s := w.Status().Pods; s.State != kube.StateStale || s.Age < 4*time.Minute || s.Reason == "" {
				t.Errorf("%+v", s)
			}
			a.pods(w, "ml/train-0")
			time.Sleep(time.Hour)
			if m := w.Latest(); m.State != kube.StateAbsent || len(m.Pods) > 0 {
				t.Errorf("%+v", m)
			}
			a.set(func() { a.down, a.stuck, a.frozen = false, false, false })
			time.Sleep(2 * time.Minute)
			a.state(w, kube.StateFresh, "")
			a.pods(w, "ml/train-0")
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
		a.state(w, kube.StateStale, "watch Pods: status 403: no")
		a.pods(w, "ml/late")
	})
}

// TestWatchGarbage: a watch with an invalid event ends, and a new watch starts.
func TestWatchGarbage(t *testing.T) {
	for _, c := range []struct{ name, text, reason string }{
		{"no JSON", "<html>", "not JSON"},
		{"not an event", `[]`, `a "" of a "" and no Pod`},
		{"another event", `{"type":"RENAMED","object":{"kind":"Pod"}}`, `an event of type "RENAMED"`},
		{"another kind", `{"type":"ADDED","object":{"kind":"Secret","metadata":{"name":"x","namespace":"y","uid":"z"}}}`, `a "ADDED" of a "Secret" and no Pod`},
		{"an error that repeats the token", `{"type":"ERROR","object":{"kind":"Status","code":500,"message":"no ` + token + `"}}`, "status 500: no [token]"},
		{"an error without a code", `{"type":"ERROR","object":null}`, "status 0"},
	} {
		subtest(t, c.name, func(t *testing.T, a *api) {
			a.send("ADDED", podsPath, pod("ml", "train-0", "u-1"))
			w := a.run()
			a.sendText(podsPath, c.text)
			a.state(w, kube.StateStale, "watch Pods: "+c.reason)
			time.Sleep(time.Minute)
			a.send("ADDED", podsPath, pod("ml", "train-1", "u-2"))
			a.pods(w, "ml/train-0", "ml/train-1")
		})
	}
}

func TestOptions(t *testing.T) {
	good := kube.Options{Pods: true, Server: "https://10.0.0.1:443", TokenFile: "t", CAFile: "c", Node: "node-1.example", Labels: []string{"team", "app.kubernetes.io/*"}}
	for _, c := range []struct {
		name   string
		change func(*kube.Options)
		want   string // part of the error; empty means no error
	}{
		{"good", func(*kube.Options) {}, ""},
		{"no server", func(o *kube.Options) { o.Server = "" }, "no API server"},
		{"no address", func(o *kube.Options) { o.Server = "10.0.0.1" }, "not of the form"},
		{"with a path", func(o *kube.Options) { o.Server += "/api" }, "not of the form"},
		{"with a slash", func(o *kube.Options) { o.Server += "/" }, ""},
		{"with a password", func(o *kube.Options) { o.Server = "https://a:hunter2@b" }, "not of the form"},
		{"token over http", func(o *kube.Options) { o.Server = "http://10.0.0.1" }, `begins with "http"`},
		{"a proxy without a token", func(o *kube.Options) { o.Server, o.TokenFile = "http://127.0.0.1:8001", "" }, ""},
		{"a selector for a node", func(o *kube.Options) { o.Node = "a,spec.nodeName!=b" }, "accepted is the name of a node"},
		{"bad pattern", func(o *kube.Options) { o.Labels = []string{"a["} }, `pattern of labels "a["`},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := good
			c.change(&o)
			_, err := kube.New(o)
			switch {
			case c.want == "" && err != nil:
				t.Error(err)
			case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "hunter2")):
				t.Errorf("%v, want %q", err, c.want)
			}
		})
	}
	if got := kube.InCluster("fd00::1", "6443"); got.Server != "https://[fd00::1]:6443" || got.TokenFile == "" || got.CAFile == "" {
		t.Errorf("%+v", got)
	}
	if got := kube.InCluster("", ""); got.Server != "" {
		t.Errorf("%+v", got)
	}
}

package main

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/accel-exporter/accel-exporter/internal/remediation"
)

const listing = `[{"annotations": {"summary": "gone", "pods": "ml/train-1 ml/train-2"}, "endsAt": "2026-03-01T12:05:00Z", "fingerprint": "1",
  "receivers": [{"name": "x"}], "startsAt": "2026-03-01T12:00:00Z", "updatedAt": "2026-03-01T12:00:01Z",
  "status": {"inhibitedBy": [], "silencedBy": ["s"], "state": "suppressed"}, "labels": {"alertname": "Lost", "node": "n1"}}]`

// serve is an Alertmanager with one answer.
func serve(t *testing.T, code int, answer string) string {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/am/api/v2/alerts" {
			t.Errorf("a request for %s", r.URL)
		}
		if code >= 300 && code < 400 {
			w.Header().Set("Location", "http://192.0.2.1/")
		}
		w.WriteHeader(code)
		w.Write([]byte(answer))
	}))
	t.Cleanup(s.Close)
	return s.URL + "/am/"
}

func list(t *testing.T, urls ...string) []remediation.Answer {
	t.Helper()
	all, err := newAlertmanagers(urls, "")
	if err != nil {
		t.Fatal(err)
	}
	defer all[0].client.CloseIdleConnections()
	return all.List(t.Context())
}

// Each answer is known by its Alertmanager.
func TestAnswers(t *testing.T) {
	answers := list(t, serve(t, 503, ""), serve(t, 200, listing), serve(t, 302, ""))
	for i, want := range []string{"503", "", "302"} {
		if err := answers[i].Err; (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) || answers[i].Alertmanager == "" {
			t.Errorf("%+v", answers[i])
		}
	}
	got := answers[1].Alerts
	want := []remediation.Alert{{
		Labels: map[string]string{"alertname": "Lost", "node": "n1"}, Summary: "gone", Pods: []string{"ml/train-1", "ml/train-2"},
		StartsAt: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC), Suppressed: true,
	}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// An alert that other alerts inhibit, and no silence, is distinguished.
func TestInhibited(t *testing.T) {
	got := list(t, serve(t, 200, strings.NewReplacer(`"inhibitedBy": []`, `"inhibitedBy": ["2"]`, `"silencedBy": ["s"]`, `"silencedBy": []`).Replace(listing)))[0].Alerts
	if len(got) != 1 || !got[0].Suppressed || !got[0].Inhibited {
		t.Errorf("%+v", got)
	}
}

// An incomplete list is an error: its missing alerts would count as resolved.
func TestNoList(t *testing.T) {
	for answer, want := range map[string]string{
		"":                            "found no list",
		"{}":                          "found no list",
		listing[:len(listing)-1]:      "has no end",
		listing[:len(listing)/2]:      "unexpected EOF",
		`[{"labels": {"a": "b"}}]`:    "found an alert without",
		`[{"labels": {"a": 1}}]`:      "cannot unmarshal",
		`[{"startsAt": "yesterday"}]`: "parsing time",
	} {
		if err := list(t, serve(t, 200, answer))[0].Err; err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.80s: %v, want %q", answer, err, want)
		}
	}
}

func TestTooManyAlerts(t *testing.T) {
	one := `{"labels":{"a":"b"},"startsAt":"2026-03-01T12:00:00Z","status":{"state":"active"}}`
	many := strings.Repeat(one+",", maxAlerts-1) + one
	if list, err := decodeAlerts(strings.NewReader("[" + many + "]")); err != nil || len(list) != maxAlerts {
		t.Errorf("%d alerts, %v", len(list), err)
	}
	if _, err := decodeAlerts(strings.NewReader("[" + many + "," + one + "]")); err == nil || !strings.Contains(err.Error(), "more than 100000 alerts") {
		t.Errorf("%v", err)
	}
}

func TestAddresses(t *testing.T) {
	for _, bad := range []string{"alertmanager:9093", "ftp://x", "http://me:secret@x", "http://x?a=b", "http://", "http://%zz"} {
		if _, err := newAlertmanagers([]string{bad}, ""); err == nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v", bad, err)
		}
	}
}

func FuzzAlerts(f *testing.F) {
	f.Add([]byte(listing))
	f.Add([]byte("[]"))
	f.Fuzz(func(t *testing.T, data []byte) {
		list, err := decodeAlerts(strings.NewReader(string(data)))
		if err != nil {
			return
		}
		var all []any
		if err := json.NewDecoder(strings.NewReader(string(data))).Decode(&all); err != nil || len(all) != len(list) {
			t.Errorf("%d alerts of %d, %v", len(list), len(all), err)
		}
		for _, a := range list {
			if len(a.Labels) == 0 || a.StartsAt.IsZero() {
				t.Errorf("%+v", a)
			}
		}
	})
}

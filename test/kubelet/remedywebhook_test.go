package kubelet_test

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// Webhooks are sent to the remediator, with a password that may be wrong, and to
// a listener that receives all of them.
const (
	guardedAlertmanager = `route: {receiver: both, group_by: ['...'], group_wait: 0s, group_interval: 1s, repeat_interval: 2s}
receivers:
  - name: both
    webhook_configs:
      - url: https://` + remediatorAddress + `/webhook
        send_resolved: true
        http_config: {basic_auth: {username: alertmanager, password: %s}, tls_config: {ca_file: %s}}
      - {url: "http://127.0.0.1:8089/", send_resolved: true}
`
	// The password is "open".
	guardedWeb = `tls_server_config: {cert_file: %s, key_file: %s}
basic_auth_users: {alertmanager: $2a$04$.PncDd2iDazq7xF8mtEmCewAxJtT4JZ9sF88ttVRBzwubsqenHPCy}
`
)

// eavesdropper keeps webhooks.
type eavesdropper struct {
	mu    sync.Mutex
	heard [][]byte
}

func eavesdrop(r *remedy) *eavesdropper {
	r.t.Helper()
	e := new(eavesdropper)
	stop, err := r.net.serve(8089, http.HandlerFunc(func(_ http.ResponseWriter, req *http.Request) {
		body, _ := io.ReadAll(req.Body)
		e.mu.Lock()
		defer e.mu.Unlock()
		e.heard = append(e.heard, body)
	}))
	must(r.t, err)
	r.t.Cleanup(stop)
	return e
}

// has returns the webhooks of one status.
func (e *eavesdropper) has(status string) (list [][]byte) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, body := range e.heard {
		if bytes.Contains(body, []byte(`"status":"`+status+`"`)) {
			list = append(list, body)
		}
	}
	return list
}

// ring sends a webhook, and returns the answer's status.
func (r *remedy) ring(password string, body []byte) int {
	r.t.Helper()
	req, err := http.NewRequestWithContext(r.t.Context(), http.MethodPost, "https://"+remediatorAddress+"/webhook", bytes.NewReader(body))
	must(r.t, err)
	req.SetBasicAuth("alertmanager", password)
	resp, err := r.admin.Do(req)
	if err != nil {
		return 0
	}
	resp.Body.Close()
	return resp.StatusCode
}

// configure writes Alertmanager's configuration and has it read.
func (r *remedy) configureGuarded(password string) {
	r.t.Helper()
	must(r.t, os.WriteFile(r.path("alertmanager.yml"), fmt.Appendf(nil, guardedAlertmanager, password, r.path("cert")), 0o600))
	await(r.t, "Alertmanager takes its configuration", r.alertmanager, func() bool {
		return r.post("http://"+alertmanagerAddress+"/-/reload", "") == http.StatusOK
	})
}

// A remediator that looks by itself once an hour looks when Alertmanager's
// webhook comes, by TLS and with the password; without it, nothing happens.
// Webhooks that are replayed in another order start a pass and change nothing
// that the alerts do not require.
func TestRemedyWebhook(t *testing.T) {
	t.Parallel()
	r := newRemedy(t, "node-0", "node-1")
	e := eavesdrop(r)
	r.configureGuarded("shut")
	must(t, os.WriteFile(r.path("web.yml"), fmt.Appendf(nil, guardedWeb, r.path("cert"), r.path("key")), 0o600))
	r.act("--act", "--interval=1h", "--web.config.file="+r.path("web.yml"))
	await(t, "the remediator listens", r.remediator, func() bool { return r.ring("shut", nil) == http.StatusUnauthorized })
	// It looks when it starts, and again since it has just heard of the nodes.
	last := func() string {
		page, _ := r.get("https://alertmanager:open@" + remediatorAddress + "/metrics")
		return lastPass(page)
	}
	var passes []string
	await(t, "it has looked twice", r.remediator, func() bool {
		if at := last(); at != "" && !slices.Contains(passes, at) {
			passes = append(passes, at)
		}
		return len(passes) == 2
	})

	r.fire(time.Now().Add(time.Hour), "node-0")
	await(t, "a webhook with a wrong password is refused", r.remediator, func() bool {
		data, err := r.get("http://" + alertmanagerAddress + "/metrics")
		return err == nil && len(e.has("firing")) > 1 && !strings.Contains(data, "\nalertmanager_notifications_failed_total{integration=\"webhook\"} 0\n")
	})
	for range 5 {
		if code := r.ring("shut", e.has("firing")[0]); code != http.StatusUnauthorized {
			t.Errorf("status %d", code)
		}
	}
	if last() != passes[1] || !r.clean("node-0") {
		t.Error("somebody without the password has made it look")
	}
	r.configureGuarded("open")
	await(t, "the node is marked", r.remediator, func() bool { return r.out("node-0") })

	r.fire(time.Now().Add(-time.Second), "node-0")
	// Two webhooks, the later first, again and again.
	await(t, "there are webhooks of both kinds", r.remediator, func() bool { return len(e.has("resolved")) > 0 })
	replay := func() {
		r.ring("open", e.has("resolved")[0])
		r.ring("open", e.has("firing")[0])
	}
	await(t, "the node is in again", r.remediator, func() bool { replay(); return r.clean("node-0") })
	r.fire(time.Now().Add(time.Hour), "node-1")
	await(t, "the other is marked", r.remediator, func() bool { replay(); return r.out("node-1") })
	if !r.clean("node-0") || r.times("node-0") != 1 || r.notes("default", "node-0", "AcceleratorsUnhealthy") != 1 {
		t.Error("a webhook that was sent again was believed")
	}
}

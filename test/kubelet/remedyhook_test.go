package kubelet_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

const (
	hookPort = 8088
	hookURL  = "http://127.0.0.1:8088/reset"
)

// hook is an external tool that the remediator calls.
type hook struct {
	mu      sync.Mutex
	answers []int // the next ones; the last stays
	called  map[string]int
	took    map[string]int // calls that it answered with 200
	faults  []string
	last    object
}

// newHook returns a hook that listens.
func newHook(r *remedy, answers ...int) *hook {
	r.t.Helper()
	h := &hook{answers: answers, called: map[string]int{}, took: map[string]int{}}
	stop, err := r.net.serve(hookPort, h)
	must(r.t, err)
	r.t.Cleanup(func() {
		stop()
		for _, fault := range h.faults {
			r.t.Error(fault)
		}
	})
	return h
}

func (h *hook) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	h.mu.Lock()
	defer h.mu.Unlock()
	var call object
	if err := json.NewDecoder(req.Body).Decode(&call); err != nil || req.Method != http.MethodPost {
		h.faults = append(h.faults, fmt.Sprintf("a hook was called by %s with %v", req.Method, err))
	}
	key := text(call, "key")
	if key == "" || req.Header.Get("Idempotency-Key") != key {
		h.faults = append(h.faults, fmt.Sprintf("key %q, in the header %q", key, req.Header.Get("Idempotency-Key")))
	}
	code := h.answers[0]
	if len(h.answers) > 1 {
		h.answers = h.answers[1:]
	}
	h.called[key]++
	h.last = call
	if code == http.StatusOK {
		h.took[key]++
	}
	w.WriteHeader(code)
}

// calls returns how often it was called, by key.
func (h *hook) calls() map[string]int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return maps.Clone(h.called)
}

// A hook that is not there, and then fails, is called again, with the same key,
// until it has answered; then no more, whatever process is killed. A Job is made once,
// and bound to its node. That it has succeeded is not believed: the node stays
// out until the alert is gone.
func TestRemedyHooks(t *testing.T) {
	t.Parallel()
	r := newRemedy(t, "node-url", "node-job")
	must(t, os.WriteFile(r.path("job.yml"), []byte(resetJob), 0o600))
	policy := remedyRules + "    call: tool\n" + `  - {match: {alertname: Stuck}, health: failed, call: job}
limits: {share: 1}
breaker: {nodes: 100}
hooks: {tool: {url: "` + hookURL + `"}, job: {job: ` + r.path("job.yml") + `}}
`
	must(t, os.WriteFile(r.path("policy.yml"), []byte(policy), 0o600))
	again := func() {
		r.end(&r.remediator)
		r.act("--act", "--interval=1s")
	}
	again()
	stuck := object{"alertname": "Stuck", "node": "node-job", "device": "GPU-3"}
	r.fireAs(time.Now().Add(time.Hour), object{"alertname": "Lost", "node": "node-url"}, stuck)
	await(t, "a hook that is not there is an error", r.remediator, func() bool {
		return strings.Contains(r.metrics(), `accel_remediator_actions_total{action="call",result="error"} 2`)
	})
	h := newHook(r, 500, 302, 500, 200)
	called := func(node string) bool { return strings.Contains(r.record(node), `"called":[`) }
	await(t, "the hook is called", r.remediator, func() bool { return len(h.calls()) > 0 })
	again()
	await(t, "the hook was called, and the Job created", r.remediator, func() bool { return called("node-url") && called("node-job") })
	again()

	const collection = "/apis/batch/v1/namespaces/" + remediatorUser + "/jobs"
	jobs := r.list(collection)
	if len(jobs) != 1 {
		t.Fatalf("%d Jobs", len(jobs))
	}
	spec := jobs[0].(object)["spec"].(object)
	pod := spec["template"].(object)["spec"].(object)
	env := map[string]string{}
	for _, e := range pod["containers"].([]any)[0].(object)["env"].([]any) {
		env[text(e.(object), "name")] = text(e.(object), "value")
	}
	if text(pod, "nodeName") != "node-job" || env["ACCEL_NODE"] != "node-job" || env["ACCEL_ALERTS"] != "Stuck" || env["ACCEL_DEVICES"] != "GPU-3" ||
		spec["ttlSecondsAfterFinished"] != float64(86400) {
		t.Errorf("the Job is %v", spec)
	}
	at := time.Now().UTC().Format(time.RFC3339)
	r.do(http.MethodPatch, collection+"/"+text(jobs[0].(object), "metadata", "name")+"/status", object{"status": object{
		"succeeded": 1, "startTime": at, "completionTime": at, "conditions": []any{
			object{"type": "SuccessCriteriaMet", "status": "True", "lastTransitionTime": at},
			object{"type": "Complete", "status": "True", "lastTransitionTime": at},
		},
	}})
	r.passes(12) // of a second each, so that what settles would have
	if text(r.node("node-job"), "metadata", "labels", "accel.health") != "failed" {
		t.Error("a Job that claims success was believed")
	}
	if calls := h.calls(); len(calls) != 1 || len(h.took) != 1 {
		t.Errorf("the hook was called for %v", calls)
	}
	for key, n := range h.took {
		if n != 1 {
			t.Errorf("%s was taken %d times", key, n)
		}
	}
	if alerts, _ := h.last["alerts"].([]any); text(h.last, "node") != "node-url" || text(h.last, "hook") != "tool" || len(alerts) != 1 {
		t.Errorf("called with %v", h.last)
	}

	// A mistake in the Job's file is reported, and the previous file stays active.
	must(t, os.WriteFile(r.path("job.yml"), []byte(strings.Replace(resetJob, "image", "imagee", 1)), 0o600))
	await(t, "the mistake is found", r.remediator, func() bool { return r.shows("accel_remediator_policy_last_reload_successful 0") })
	if end := tail(r.path("remediator.log")); !strings.Contains(end, "spec.template.spec.containers[0].imagee") {
		t.Errorf("the log has no such mistake:\n%s", end)
	}
	r.fireAs(time.Now().Add(-time.Second), stuck)
	await(t, "the node whose alert is gone is in again", r.remediator, func() bool { return r.clean("node-job") })
	r.fireAs(time.Now().Add(time.Hour), stuck)
	await(t, "a second Job is made, of the manifest in force", r.remediator, func() bool {
		return len(r.list(collection)) == 2
	})
	r.remediator.signal(syscall.SIGTERM)
	<-r.remediator.done
	if code := r.remediator.cmd.ProcessState.ExitCode(); code != 0 {
		t.Errorf("it has ended with status %d", code)
	}
}

// passes waits for so many passes.
func (r *remedy) passes(n int) {
	r.t.Helper()
	last := ""
	for ; n >= 0; n-- {
		await(r.t, "another pass is made", r.remediator, func() bool {
			now := lastPass(r.metrics())
			if now == "" || now == last {
				return false
			}
			last = now
			return true
		})
	}
}

// lastPass returns the time of the last pass on a page of metrics.
func lastPass(page string) string {
	_, at, _ := strings.Cut(page, "\naccel_remediator_last_pass_timestamp_seconds ")
	at, _, _ = strings.Cut(at, "\n")
	return at
}

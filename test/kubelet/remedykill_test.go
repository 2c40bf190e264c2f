package kubelet_test

import (
	"net/http"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

const (
	proxyPort = 7441
	resetJob  = `apiVersion: batch/v1
kind: Job
spec:
  backoffLimit: 0
  template:
    spec:
      restartPolicy: Never
      containers: [{name: main, image: "scratch.local/reset:1"}]
`
)

// killer kills a remediator before the first change that it asks for, and after
// each change that it has not asked for before.
type killer struct {
	*proxy
	mu    sync.Mutex
	begun bool
	seen  map[string]bool
}

func (k *killer) meet(w http.ResponseWriter, req *request) {
	if !req.changes() {
		req.pass(w)
		return
	}
	k.mu.Lock()
	first, again := !k.begun, k.seen[req.does()]
	k.begun = true
	if !first {
		k.seen[req.does()] = true
	}
	k.mu.Unlock()
	switch {
	case first:
		<-k.strike(syscall.SIGKILL).done
	case again:
		req.pass(w)
	default:
		req.deliver()
		<-k.strike(syscall.SIGKILL).done
	}
}

// step waits until a condition is true, starting the remediator again whenever it
// was killed, and returns after how many changes it was.
func (k *killer) step(what string, done func() bool) int {
	k.r.t.Helper()
	k.mu.Lock()
	k.seen = map[string]bool{}
	k.mu.Unlock()
	await(k.r.t, what, nil, func() bool {
		if k.r.remediator.ended() {
			k.start()
			return false
		}
		return done()
	})
	k.mu.Lock()
	defer k.mu.Unlock()
	for does := range k.seen {
		k.r.t.Logf("%s: killed at %s", what, does)
	}
	return len(k.seen)
}

func (k *killer) start() {
	k.r.remediator = k.r.replica("one", "proxied", remediatorAddress, "--act", "--interval=1s")
	k.watch(k.r.remediator)
}

// The remediator is killed before all and after each of the changes that it makes,
// there and back; in the end everything is as if it had been let, and nothing
// was done twice.
func TestRemedyKilledAtEveryStep(t *testing.T) {
	t.Parallel()
	r := newRemedy(t, "gpu-node")
	r.pod("training", "llm-0", "gpu-node")
	must(t, os.WriteFile(r.path("job.yml"), []byte(resetJob), 0o600))
	must(t, os.WriteFile(r.path("policy.yml"), []byte(remedyRules+"    call: reset\nhooks: {reset: {job: "+r.path("job.yml")+"}}\n"), 0o600))
	k := &killer{proxy: newProxy(r, proxyPort, "proxied"), seen: map[string]bool{}}
	k.set(k.meet)
	k.start()
	lost := object{"alertname": "Lost", "node": "gpu-node", "namespace": "training", "pod": "llm-0"}
	r.fireAs(time.Now().Add(time.Hour), lost)
	jobs := "/apis/batch/v1/namespaces/" + remediatorUser + "/jobs"
	steps := k.step("the node is out", func() bool {
		return r.out("gpu-node") && r.gone("training", "llm-0") && r.noted("default", "gpu-node", "AcceleratorsUnhealthy") &&
			r.noted("training", "llm-0", "AcceleratorFault") && len(r.list(jobs)) > 0 && strings.Contains(r.record("gpu-node"), `"called":["reset"]`)
	})
	if steps != 7 {
		t.Errorf("killed after %d changes; there are 7", steps)
	}
	r.fireAs(time.Now().Add(-time.Second), lost)
	steps = k.step("the node is in again", func() bool {
		return r.clean("gpu-node") && r.noted("default", "gpu-node", "AcceleratorsRecovered")
	})
	if steps != 3 {
		t.Errorf("killed after %d changes; there are 3", steps)
	}
	for reason, where := range map[string][2]string{
		"AcceleratorsUnhealthy": {"default", "gpu-node"}, "AcceleratorFault": {"training", "llm-0"}, "AcceleratorsRecovered": {"default", "gpu-node"},
	} {
		if n := r.notes(where[0], where[1], reason); n != 1 {
			t.Errorf("%d Events of reason %s", n, reason)
		}
	}
	if n := len(r.list(jobs)); n != 1 || r.times("gpu-node") != 1 {
		t.Errorf("%d Jobs, taken out %d times", n, r.times("gpu-node"))
	}
}

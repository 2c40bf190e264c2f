package kubelet_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"
)

// slow is a proxy by which requests are late, many fail, and some are lost on
// their way or the way back.
type slow struct {
	t *testing.T

	mu     sync.Mutex
	random *rand.Rand
	under  int // changes under way
	losses int
	met    map[string]int
}

func (s *slow) draw(n int) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.random.IntN(n)
}

func (s *slow) count(what string, under int) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.met[what]++
	s.under += under
	return s.under
}

// mayLose reports whether another request may be lost; each costs ten seconds.
func (s *slow) mayLose() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.losses++
	return s.losses <= 2
}

func (s *slow) meet(w http.ResponseWriter, req *request) {
	if req.URL.Query().Get("watch") != "" || req.lease() {
		req.pass(w)
		return
	}
	if req.changes() && s.count("changes", 1) > 1 {
		s.t.Errorf("%s while another change is under way", req.does())
	}
	time.Sleep(time.Duration(s.draw(200)) * time.Millisecond)
	done := func() {
		if req.changes() {
			s.count("done", -1)
		}
	}
	draw := s.draw(12)
	if (draw == 3 || draw == 4) && !s.mayLose() {
		draw = 5
	}
	switch draw {
	case 0:
		s.count("429", 0)
		done()
		w.Header().Set("Retry-After", "1")
		refuse(w, http.StatusTooManyRequests, "TooManyRequests")
	case 1:
		s.count("500", 0)
		done()
		refuse(w, http.StatusInternalServerError, "InternalError")
	case 2:
		s.count("409", 0)
		done()
		refuse(w, http.StatusConflict, "Conflict")
	case 3:
		s.count("an answer is lost", 0)
		req.deliver()
		done()
		req.lose()
	case 4:
		s.count("a request is lost", 0)
		done()
		req.lose()
	default:
		answer := req.deliver()
		done()
		for key, values := range answer.Header() {
			w.Header()[key] = values
		}
		w.WriteHeader(answer.Code)
		w.Write(answer.Body.Bytes())
	}
}

func refuse(w http.ResponseWriter, code int, reason string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	json.NewEncoder(w).Encode(object{"apiVersion": "v1", "kind": "Status", "status": "Failure", "reason": reason, "code": code, "message": "in the test"})
}

// The API server is slow, refuses requests, and loses some on their way there or
// back. Each change is asked for after the one before has ended, none waits for
// ever, and in the end each is done, once.
func TestRemedySlow(t *testing.T) {
	t.Parallel()
	var nodes []string
	for i := range 3 {
		nodes = append(nodes, fmt.Sprint("node-", i))
	}
	r := newRemedy(t, nodes...)
	h := newHook(r, http.StatusOK)
	must(t, os.WriteFile(r.path("policy.yml"), []byte(remedyRules+"    call: reset\nlimits: {share: 1}\nbreaker: {nodes: 100}\nhooks: {reset: {url: \""+hookURL+"\"}}\n"), 0o600))
	s := &slow{t: t, random: rand.New(rand.NewPCG(1, 2)), met: map[string]int{}}
	p := newProxy(r, proxyPort, "proxied")
	p.set(s.meet)
	r.remediator = r.replica("one", "proxied", remediatorAddress, "--act", "--interval=1s")
	for _, node := range nodes {
		r.pod("training", "on-"+node, node)
	}
	var lost []object
	for _, node := range nodes {
		lost = append(lost, object{"alertname": "Lost", "node": node, "namespace": "training", "pod": "on-" + node})
	}
	r.fireAs(time.Now().Add(time.Hour), lost...)
	all := func(check func(node string) bool) bool {
		return !slices.ContainsFunc(nodes, func(node string) bool { return !check(node) })
	}
	t.Cleanup(func() {
		for _, node := range nodes {
			if t.Failed() {
				t.Logf("%s: out %t, pod gone %t, record %s, Events %d and %d", node, r.out(node), r.gone("training", "on-"+node), r.record(node),
					r.notes("default", node, "AcceleratorsUnhealthy"), r.notes("training", "on-"+node, "AcceleratorFault"))
			}
		}
		if page, err := r.get("http://" + remediatorAddress + "/debug/plan"); t.Failed() && err == nil {
			t.Logf("the plan: %s", page)
		}
	})
	await(t, "all is done", r.remediator, func() bool {
		return all(func(node string) bool {
			return r.out(node) && r.gone("training", "on-"+node) && r.noted("default", node, "AcceleratorsUnhealthy") &&
				r.noted("training", "on-"+node, "AcceleratorFault") && regexp.MustCompile(`"called":\["reset"\]`).MatchString(r.record(node))
		})
	})
	r.fireAs(time.Now().Add(-time.Second), lost...)
	await(t, "all is undone", r.remediator, func() bool {
		return all(func(node string) bool { return r.clean(node) && r.noted("default", node, "AcceleratorsRecovered") })
	})
	for _, node := range nodes {
		if r.times(node) != 1 || r.notes("default", node, "AcceleratorsUnhealthy") != 1 || r.notes("training", "on-"+node, "AcceleratorFault") != 1 {
			t.Errorf("%s: something was done twice", node)
		}
	}
	if calls := h.calls(); len(calls) != len(nodes) {
		t.Errorf("the hook was called for %v", calls)
	}
	peak := kernelSays(t, r.remediator, "status", "VmHWM")
	s.mu.Lock()
	t.Logf("requests %v, peak of memory %d KiB", s.met, peak)
	s.mu.Unlock()
	if peak > 128<<10 {
		t.Errorf("the process had %d KiB", peak)
	}
}

// kernelSays returns a number from a file of /proc about a process, in KiB.
func kernelSays(t *testing.T, p *process, file, name string) int {
	t.Helper()
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/%s", p.cmd.Process.Pid, file))
	must(t, err)
	found := regexp.MustCompile(`(?m)^` + name + `:\s+(\d+) kB$`).FindSubmatch(data)
	if found == nil {
		t.Fatalf("no %s of the process", name)
	}
	n, err := strconv.Atoi(string(found[1]))
	must(t, err)
	return n
}

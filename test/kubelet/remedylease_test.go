package kubelet_test

import (
	"fmt"
	"net/http"
	"os"
	"sync"
	"syscall"
	"testing"
	"time"
)

// replicas are remediators, each with its own proxy that checks that only the
// leader acts.
type replicas struct {
	*remedy
	proxies []*proxy

	mu     sync.Mutex
	acted  map[string]int      // by node, which replica changed it last
	paused chan *pausedRequest // of the replica that is to be stopped
	stop   bool                // at the next change
}

// pausedRequest is a request under way while its sender is stopped.
type pausedRequest struct {
	replica int
	*request
}

func startReplicas(r *remedy, n int) *replicas {
	s := &replicas{remedy: r, acted: map[string]int{}, paused: make(chan *pausedRequest, 1)}
	for i := range n {
		p := newProxy(r, proxyPort+i, fmt.Sprint("replica", i))
		p.set(func(w http.ResponseWriter, req *request) { s.meet(i, w, req) })
		s.proxies = append(s.proxies, p)
		s.start(i)
	}
	return s
}

func (s *replicas) start(i int) *process {
	p := s.replica(fmt.Sprint("pod", i), fmt.Sprint("replica", i), fmt.Sprintf("127.0.0.1:%d", 19401+i), "--act", "--interval=1s")
	s.proxies[i].watch(p)
	return p
}

func (s *replicas) holder() string {
	code, lease, err := s.ask(http.MethodGet, "/apis/coordination.k8s.io/v1/namespaces/"+remediatorUser+"/leases/accel-remediator", adminToken, nil)
	if err != nil || code != http.StatusOK {
		return ""
	}
	return text(lease, "spec", "holderIdentity")
}

func (s *replicas) meet(i int, w http.ResponseWriter, req *request) {
	if !req.changes() {
		req.pass(w)
		return
	}
	if holder := s.holder(); holder != fmt.Sprint("pod", i) {
		s.t.Errorf("pod%d asks for %s while %q has the lease", i, req.does(), holder)
	}
	s.mu.Lock()
	stop := s.stop
	s.stop = false
	s.mu.Unlock()
	if stop {
		s.proxies[i].strike(syscall.SIGSTOP)
		s.paused <- &pausedRequest{i, req}
		<-req.Context().Done()
		return
	}
	req.pass(w)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.acted[req.URL.Path] = i
}

// marks has a node fail, and returns which replica has marked it.
func (s *replicas) marks(node string) int {
	s.t.Helper()
	s.fire(time.Now().Add(time.Hour), node)
	await(s.t, node+" is marked", nil, func() bool { return s.out(node) })
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.acted["/api/v1/nodes/"+node]
}

// Of three remediators one acts. Where it is killed, ends, or is stopped for so
// long that another has taken over, the others go on. A stopped remediator does
// not make the change that it was about to make, and its request under way has
// no effect.
func TestRemedyLease(t *testing.T) {
	t.Parallel()
	r := newRemedy(t, "node-0", "node-1", "node-2", "node-3", "node-4")
	must(t, os.WriteFile(r.path("policy.yml"), []byte(remedyRules+"limits: {share: 1}\nbreaker: {nodes: 100}\n"), 0o600))
	s := startReplicas(r, 3)
	first := s.marks("node-0")

	killed := time.Now()
	<-s.proxies[first].strike(syscall.SIGKILL).done
	second := s.marks("node-1")
	t.Logf("a takeover after a crash, until the next node is out: %s", time.Since(killed))
	if second == first {
		t.Errorf("pod%d acts although it was killed", first)
	}
	s.start(first)

	<-s.proxies[second].strike(syscall.SIGTERM).done
	third := s.marks("node-2")
	if third == second {
		t.Errorf("pod%d acts although it has ended", second)
	}
	s.start(second)

	s.mu.Lock()
	s.stop = true
	s.mu.Unlock()
	fourth := s.marks("node-3")
	held := <-s.paused
	if held.replica == fourth {
		t.Errorf("pod%d acts although it is stopped", fourth)
	}
	if answer := held.deliver(); answer.Code != http.StatusConflict {
		t.Errorf("%s has arrived late: %d %s", held.does(), answer.Code, answer.Body)
	}
	woken := s.proxies[held.replica].strike(syscall.SIGCONT)
	await(t, "it finds that it has lost the lease, and ends", nil, woken.ended)
	if code := woken.cmd.ProcessState.ExitCode(); code != 2 {
		t.Errorf("it has ended with status %d, not 2", code)
	}
	s.marks("node-4")
	for i := range 4 {
		node := fmt.Sprint("node-", i)
		if n := r.notes("default", node, "AcceleratorsUnhealthy"); n != 1 || r.times(node) != 1 {
			t.Errorf("%s: %d Events, taken out %d times", node, n, r.times(node))
		}
	}
}

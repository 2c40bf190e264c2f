package remediation

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

// cluster is a Kubernetes cluster in memory.
type cluster struct {
	nodes map[string]*Node
	pods  map[string]string // namespace/name: node
	notes map[string]*Note
	calls map[string]int // by key
	jobs  map[string]*Call
	kept  bool // a disruption budget refuses evictions
	stale bool // nodes are listed as they were before their last change
	was   map[string]*Node
	fails func(what string) (before, after bool)

	published []Published
	rules     map[string]*TaintRule // by name
	states    map[string]JobState   // of Jobs, by key
	passes    bool                  // every Job passes
	unlisted  error                 // why published and rules are not known
	since     time.Time             // when published began to be known
	now       func() time.Time
}

var errDown = errors.New("the API server is down")

// do executes a request, which may fail before or after its effect.
func (c *cluster) do(what string, thing func() error) error {
	before, after := false, false
	if c.fails != nil {
		before, after = c.fails(what)
	}
	if before {
		return errDown
	}
	if err := thing(); err != nil {
		return err
	}
	if after {
		return errDown
	}
	return nil
}

func (c *cluster) Nodes() (list []Node) {
	for name, n := range c.nodes {
		if was := c.was[name]; c.stale && was != nil {
			n = was
		}
		list = append(list, *n)
	}
	return list
}

func (c *cluster) change(name string, change func(Node) Node) {
	if c.was == nil {
		c.was = map[string]*Node{}
	}
	c.was[name] = c.nodes[name]
	n := change(*c.nodes[name])
	version, _ := strconv.Atoi(n.Version)
	n.Version = fmt.Sprint(version + 1)
	c.nodes[name] = &n
}

func (c *cluster) Devices(context.Context) *Devices {
	if c.unlisted != nil {
		return &Devices{Err: c.unlisted}
	}
	var rules []TaintRule
	for _, r := range c.rules {
		rules = append(rules, *r)
	}
	d := NewDevices(c.published, rules)
	d.Since = c.since
	return d
}

// patchRule changes the rule of a device as the API server does.
func (c *cluster) patchRule(n *Node, p *Patch) error {
	was := c.rules[n.Device.Rule]
	switch {
	case (was == nil) != (n.UID == "") || was != nil && (was.UID != n.UID || was.Version != p.Version):
		return ErrConflict
	case p.Delete:
		delete(c.rules, n.Device.Rule)
		return nil
	}
	r := TaintRule{Name: n.Device.Rule, UID: "u" + n.Device.Rule, Node: n.Name, Device: n.Device.ID, Selects: n.Device.Place}
	if was != nil {
		r = *was
	}
	version, _ := strconv.Atoi(r.Version)
	r.Version = fmt.Sprint(version + 1)
	r.Labels, r.Annotations = patched(r.Labels, p.Labels), patched(r.Annotations, p.Annotations)
	if p.Selects != nil {
		r.Selects = *p.Selects
	}
	if p.Taints != nil {
		r.Taint, r.Changed, r.Count = Taint{}, c.now(), ""
		for _, t := range *p.Taints {
			r.Taint = t
		}
	}
	c.rules[r.Name] = &r
	return nil
}

func (c *cluster) Patch(_ context.Context, of *Node, p *Patch) error {
	name := of.Name
	return c.do("patch", func() error {
		if of.Device != nil {
			return c.patchRule(of, p)
		}
		if c.nodes[name].Version != p.Version {
			return ErrConflict
		}
		c.change(name, p.Apply)
		return nil
	})
}

func (c *cluster) SetCondition(_ context.Context, name string, to Condition) error {
	return c.do("condition", func() error {
		c.change(name, func(n Node) Node { n.Condition = to; return n })
		return nil
	})
}

func (c *cluster) Note(_ context.Context, n *Note) error {
	return c.do("note", func() error { c.notes[n.Key] = n; return nil })
}

func (c *cluster) Evict(_ context.Context, node string, p *Pod) (how Eviction, err error) {
	err = c.do("evict", func() error {
		key := p.Namespace + "/" + p.Name
		switch {
		case c.pods[key] != node:
			how = EvictGone
		case c.kept:
			how = EvictBudget
		default:
			how = Evicted
			delete(c.pods, key)
		}
		return nil
	})
	return how, err
}

func (c *cluster) Job(_ context.Context, call *Call) (state JobState, err error) {
	err = c.do("get job", func() error {
		if c.jobs[call.Key] != nil {
			state = c.states[call.Key]
			state.Name, state.Passed = call.Key, state.Passed || c.passes
		}
		return nil
	})
	return state, err
}

func (c *cluster) MakeJob(_ context.Context, _ string, call *Call) error {
	return c.do("job", func() error { c.jobs[call.Key] = call; return nil })
}

// listed is the answer of one Alertmanager, and of a second one if it is not nil.
type listed struct {
	alerts []Alert
	err    error
	second *listed
}

func (l *listed) List(context.Context) []Answer {
	answers := []Answer{{"am-0", l.alerts, l.err}}
	if l.second != nil {
		answers = append(answers, Answer{"am-1", l.second.alerts, l.second.err})
	}
	return answers
}

// exporters are the exporters of all nodes.
type exporters struct {
	proof Proof
	err   error
}

func (e *exporters) Prove(context.Context, string) (*Proof, error) { return &e.proof, e.err }

// rig is a Controller of a cluster in memory, with a clock that the test sets.
type rig struct {
	*cluster
	alerts *listed
	proves *exporters
	now    time.Time
	c      *Controller
	act    bool
	policy *Policy
	taken  atomic.Pointer[map[string]time.Time] // the lease
}

func newRig(t testing.TB, nodes int) *rig {
	r := &rig{
		cluster: &cluster{nodes: map[string]*Node{}, pods: map[string]string{}, notes: map[string]*Note{}, calls: map[string]int{}, jobs: map[string]*Call{}, rules: map[string]*TaintRule{}, states: map[string]JobState{}},
		alerts:  &listed{}, now: noon, act: true, policy: policy(t),
		proves: &exporters{proof: Proof{Devices: map[string]string{"GPU-0": "healthy", "GPU-7": "healthy"}}},
	}
	r.cluster.now = func() time.Time { return r.now }
	for i := range nodes {
		name := fmt.Sprintf("n%02d", i)
		r.nodes[name] = &Node{
			Name: name, UID: name, Version: "1", Labels: map[string]string{"pool": "a", "other": "x"}, Taints: []Taint{{"nvidia.com/gpu", "", "NoSchedule"}},
		}
		r.pods["ml/train-"+fmt.Sprint(i)] = name
	}
	r.restart()
	return r
}

// restart starts a Controller without state.
func (r *rig) restart() {
	r.c = New(Options{
		Cluster: r.cluster, Alerts: r.alerts, Prover: r.proves, Policy: r.policy, Taken: &r.taken, Act: r.act, Log: slog.New(slog.DiscardHandler),
		Now: func() time.Time { return r.now },
		Call: func(_ context.Context, _ string, c *Call) error {
			return r.do("call", func() error { r.calls[c.Key]++; return nil })
		},
	})
	r.c.alerts = NewAlerts(r.policy.Settle, r.now)
	r.c.clear()
}

// pass lets time pass in steps of the interval, with a constant list of alerts.
func (r *rig) pass(t testing.TB, d time.Duration, listed ...Alert) *Plan {
	r.alerts.alerts = listed
	for end := r.now.Add(d); r.now.Before(end); {
		r.now = r.now.Add(min(15*time.Second, end.Sub(r.now)))
		r.c.pass(t.Context())
	}
	return r.c.Plan()
}

// step is the part of the last plan for a node.
func (r *rig) step(node int) Step {
	for _, s := range r.c.Plan().Nodes {
		if s.Node.Name == fmt.Sprintf("n%02d", node) {
			return s
		}
	}
	return Step{}
}

func lostOn(node int, since time.Time) Alert {
	return alert("Lost", node, since, "namespace", "ml", "pod", fmt.Sprintf("train-%d", node), "device", "GPU-0")
}

// A dry run changes nothing and reports its plan.
func TestDryRun(t *testing.T) {
	r := newRig(t, 4)
	r.act = false
	r.restart()
	p := r.pass(t, time.Minute, lostOn(1, noon))
	if n := r.nodes["n01"]; n.Version != "1" || len(r.notes) > 0 || len(r.calls) > 0 || r.pods["ml/train-1"] == "" {
		t.Errorf("%+v, %v, %v, %v", n, r.notes, r.calls, r.pods)
	}
	if len(p.Nodes) != 1 || !p.Nodes[0].Begins {
		t.Errorf("%+v", p)
	}
}

// The node is marked, its pod evicted, Events created and the hook called once.
// Then everything is reverted.
func TestActs(t *testing.T) {
	r := newRig(t, 4)
	r.pass(t, time.Minute, lostOn(1, noon))
	n := r.nodes["n01"]
	if n.Labels[HealthLabel] != "failed" || n.Condition.Status != "False" || r.pods["ml/train-1"] != "" || len(r.pods) != 3 {
		t.Errorf("%+v, %v", n, r.pods)
	}
	var reasons []string
	for _, note := range r.notes {
		reasons = append(reasons, note.Reason+" "+note.Pod.Name)
	}
	slices.Sort(reasons)
	if diff := cmp.Diff([]string{"AcceleratorFault train-1", "AcceleratorsUnhealthy "}, reasons); diff != "" {
		t.Error(diff)
	}
	if len(r.calls) != 1 || slices.Max([]int{r.calls[fmt.Sprintf("n01-%d-reset", n.record().Since.Unix())]}) != 1 {
		t.Errorf("calls: %v", r.calls)
	}
	r.pass(t, 2*time.Minute)
	if n := r.nodes["n01"]; n.Labels[HealthLabel] != "" || n.Unschedulable || n.Condition.Status != "True" || n.record() != nil {
		t.Errorf("%+v", n)
	}
}

// A summary of any length gives an Event that Kubernetes accepts.
func TestLongSummary(t *testing.T) {
	r := newRig(t, 4)
	lost := lostOn(1, noon)
	lost.Summary = strings.Repeat("Ü", 2000)
	r.pass(t, time.Minute, lost)
	if len(r.notes) != 2 {
		t.Errorf("%d notes", len(r.notes))
	}
	for _, n := range r.notes {
		if len(n.Message) > 1024 || !utf8.ValidString(n.Message) {
			t.Errorf("a message of %d bytes", len(n.Message))
		}
	}
}

// While no Alertmanager answers, nodes are neither taken out nor let in, and the wait
// of a rule does not end. An Alertmanager that returns and lists no alerts may not
// have received them yet: its list counts after settle.
func TestForgetfulAlertmanager(t *testing.T) {
	r := newRig(t, 4)
	r.pass(t, time.Minute, lostOn(1, noon), alert("Slow", 2, noon))
	version := r.nodes["n01"].Version
	r.alerts.err = errDown
	r.pass(t, time.Hour)
	if n := r.nodes["n01"]; n.Version != version || n.Labels[HealthLabel] != "failed" || r.nodes["n02"].Version != "1" {
		t.Errorf("%+v, %+v", n, r.nodes["n02"])
	}
	r.alerts.err = nil
	r.pass(t, 45*time.Second)
	if n := r.nodes["n01"]; n.Labels[HealthLabel] != "failed" {
		t.Fatalf("reverted %v after its return: %+v", 45*time.Second, n)
	}
	r.pass(t, time.Minute)
	if n := r.nodes["n01"]; n.Labels[HealthLabel] != "" {
		t.Errorf("%+v", n)
	}
}

// A hook is called once, even if nodes are listed late, with every device that an
// alert names.
func TestCallsOnce(t *testing.T) {
	r := newRig(t, 4)
	listed := []Alert{lostOn(1, noon), alert("Lost", 1, noon, "device", "GPU-7")}
	r.pass(t, 15*time.Second, listed...)
	var got *Call
	r.c.o.Call = func(_ context.Context, _ string, c *Call) error {
		got = c
		r.calls[c.Key]++
		r.stale = true
		return nil
	}
	r.pass(t, 5*time.Minute, listed...)
	if len(r.calls) != 1 || r.calls[got.Key] != 1 {
		t.Errorf("calls: %v", r.calls)
	}
	if diff := cmp.Diff([]string{"GPU-0", "GPU-7"}, got.Devices); diff != "" {
		t.Error(diff)
	}
}

// A summary with a changing measured value causes no further Event and no further
// write of the condition.
func TestMeasuredSummary(t *testing.T) {
	r := newRig(t, 4)
	for i := range 20 {
		a := lostOn(1, noon)
		a.Summary = fmt.Sprintf("%d °C", 80+i)
		r.pass(t, 15*time.Second, a)
	}
	if n := r.nodes["n01"]; len(r.notes) != 2 || n.Version != "4" { // taken out, condition set, call recorded
		t.Errorf("%d notes, version %s", len(r.notes), n.Version)
	}
}

// An Event that cannot be created at the moment of a take-out or a return is created later,
// once, also by a process that has started since.
func TestEventsLate(t *testing.T) {
	for _, devices := range []bool{false, true} {
		r := newRig(t, 4)
		if devices {
			r = deviceRig(t, 4, "NoSchedule")
		}
		refused := true
		r.fails = func(what string) (bool, bool) { return what == "note" && refused, false }
		made := func(want ...string) {
			t.Helper()
			r.restart()
			r.pass(t, 30*time.Second)
			var reasons []string
			for _, n := range r.notes {
				reasons = append(reasons, n.Reason)
			}
			slices.Sort(reasons)
			if diff := cmp.Diff(want, reasons); diff != "" {
				t.Errorf("devices %v: %s", devices, diff)
			}
		}
		r.pass(t, time.Minute, alert("Lost", 1, noon, "device", "GPU-0"))
		made()
		refused = false
		made("AcceleratorsUnhealthy")
		refused = true
		r.pass(t, 3*time.Minute)
		made("AcceleratorsUnhealthy")
		refused = false
		made("AcceleratorsRecovered", "AcceleratorsUnhealthy")
		made("AcceleratorsRecovered", "AcceleratorsUnhealthy")
	}
}

// State for logs, notes and calls is dropped in the end.
func TestForgets(t *testing.T) {
	r := newRig(t, 4)
	r.kept = true
	for i := range 50 {
		a := lostOn(1, noon)
		a.Labels["pod"] = fmt.Sprintf("train-%d", i)
		r.pods["ml/train-"+fmt.Sprint(i)] = "n01"
		r.pass(t, 15*time.Second, a)
	}
	if len(r.c.logged) > 3 {
		t.Errorf("%d log entries", len(r.c.logged))
	}
	r.pass(t, 3*time.Hour, r.alerts.alerts...)
	if len(r.c.noted) > 2 || len(r.c.called) > 0 {
		t.Errorf("%d notes, %d calls", len(r.c.noted), len(r.c.called))
	}
}

// Requests fail before or after their effect, and processes restart in between.
// In the end each node is as the alerts require, each pod is evicted, no call has
// two keys, and everything can be reverted.
func TestFailures(t *testing.T) {
	for seed := range uint64(100) {
		r := newRig(t, 6)
		random := rand.New(rand.NewPCG(seed, 2))
		r.policy.Breaker.Nodes = 100
		trouble := true
		r.fails = func(string) (bool, bool) {
			if trouble && random.IntN(12) == 0 {
				r.restart() // another process takes over
			}
			return trouble && random.IntN(3) == 0, trouble && random.IntN(3) == 0
		}
		lost := []Alert{lostOn(1, noon), lostOn(2, noon)}
		r.pass(t, 5*time.Minute, lost...)
		trouble = false
		r.pass(t, time.Minute, lost...)
		for _, name := range []string{"n01", "n02"} {
			n := r.nodes[name]
			if n.Labels[HealthLabel] != "failed" || n.Condition.Status != "False" || !n.Unschedulable || len(n.Taints) != 2 || len(n.history()) != 1 {
				t.Fatalf("seed %d: %+v", seed, n)
			}
		}
		if len(r.pods) != 4 || len(r.calls) != 2 {
			t.Fatalf("seed %d: pods %v, calls %v", seed, r.pods, r.calls)
		}
		trouble = true
		r.pass(t, 10*time.Minute)
		trouble = false
		r.pass(t, 5*time.Minute)
		for _, n := range r.nodes {
			if n.Labels[HealthLabel] != "" || n.Unschedulable || len(n.Taints) != 1 || n.Condition.Status == "False" {
				t.Fatalf("seed %d: %+v", seed, n)
			}
		}
	}
}

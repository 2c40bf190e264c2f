package remediation

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

const policyText = `
node_label: node
pool_label: pool
settle: 1m
limits: {share: 0.5, per_hour: 4}
breaker: {share: 0.5, window: 5m, nodes: 3}
repeat: {count: 3, within: 24h}
hooks: {reset: {url: "http://reset.example/"}}
rules:
  - match: {alertname: Lost}
    health: failed
    taints: [{key: accel.health, value: failed, effect: NoSchedule}]
    cordon: true
    condition: true
    evict: true
    call: reset
  - match: {alertname: Slow, severity: "warning|critical"}
    wait: 2m
    health: degraded
    taints: [{key: accel.health, value: degraded, effect: PreferNoSchedule}]
  - match: {alertname: Pod}
    evict: true
`

func policy(t testing.TB) *Policy {
	t.Helper()
	p, err := ParsePolicy("policy.yml", []byte(policyText))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// world is a cluster whose nodes change by the plans.
type world struct {
	t      testing.TB
	policy *Policy
	nodes  []Node
	alerts *Alerts
	now    time.Time
}

func newWorld(t testing.TB, nodes int) *world {
	w := &world{t: t, policy: policy(t), now: noon}
	for i := range nodes {
		w.nodes = append(w.nodes, Node{
			Name: fmt.Sprintf("n%02d", i), Version: "1", Labels: map[string]string{"pool": "a", "other": "x"},
			Taints: []Taint{{"nvidia.com/gpu", "", "NoSchedule"}},
		})
	}
	w.restart()
	return w
}

// restart drops all state but the nodes.
func (w *world) restart() { w.alerts = NewAlerts(w.policy.Settle, w.now) }

func alert(name string, node int, since time.Time, labels ...string) Alert {
	a := Alert{Labels: map[string]string{"alertname": name, "node": fmt.Sprintf("n%02d", node), "severity": "critical"}, StartsAt: since, Summary: name}
	for i := 0; i < len(labels); i += 2 {
		a.Labels[labels[i]] = labels[i+1]
	}
	return a
}

// pass lets time pass, with a constant list of alerts.
func (w *world) pass(d time.Duration, listed ...Alert) *Plan {
	for end := w.now.Add(d); w.now.Before(end); {
		w.now = w.now.Add(min(10*time.Second, end.Sub(w.now)))
		w.alerts.Listed(w.now, listed)
	}
	return w.plan()
}

func (w *world) plan() *Plan {
	return w.policy.Plan(w.nodes, w.alerts, w.now)
}

// do executes a plan.
func (w *world) do(p *Plan) {
	for _, s := range p.Nodes {
		i := slices.IndexFunc(w.nodes, func(n Node) bool { return n.Name == s.Node.Name })
		if !s.Patch.Empty() {
			w.nodes[i] = s.Patch.Apply(w.nodes[i])
		}
		if s.Condition != (Condition{}) {
			w.nodes[i].Condition = s.Condition
		}
		if len(s.Call) > 0 {
			w.nodes[i] = recordCalls(&w.nodes[i], s.Call).Apply(w.nodes[i])
		}
	}
}

func (w *world) step(p *Plan, node int) Step {
	for _, s := range p.Nodes {
		if s.Node.Name == fmt.Sprintf("n%02d", node) {
			return s
		}
	}
	return Step{}
}

// A node is taken out and let in, and is then as before.
func TestThereAndBack(t *testing.T) {
	w := newWorld(t, 4)
	before := slices.Clone(w.nodes)
	lost := alert("Lost", 1, noon, "namespace", "ml", "pod", "train-0", "device", "GPU-1")
	p := w.pass(10*time.Second, lost)
	s := w.step(p, 1)
	if !s.Begins || s.Withheld != "" || len(p.Nodes) != 1 {
		t.Fatalf("%+v", p)
	}
	want := []Pod{{"ml", "train-0", "Lost", "GPU-1", noon}}
	if diff := cmp.Diff(want, s.Evict); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"reset"}, s.Call); diff != "" {
		t.Error(diff)
	}
	w.do(p)
	n := w.nodes[1]
	if n.Labels[HealthLabel] != "failed" || !n.Unschedulable || n.Condition.Status != "False" ||
		!slices.Contains(n.Taints, Taint{"accel.health", "failed", "NoSchedule"}) || len(n.Taints) != 2 {
		t.Errorf("%+v", n)
	}
	p = w.pass(10*time.Second, lost)
	if s := w.step(p, 1); !s.Patch.Empty() || len(s.Call) > 0 || s.Condition != (Condition{}) {
		t.Errorf("an action is left: %+v", s)
	}
	if s := w.step(w.pass(50*time.Second), 1); s.Ends {
		t.Error("let in before settle")
	}
	p = w.pass(20 * time.Second)
	if s := w.step(p, 1); !s.Ends || s.Condition.Status != "True" {
		t.Fatalf("not let in again: %+v", s)
	}
	w.do(p)
	after := w.nodes[1]
	after.Annotations, after.Condition = nil, Condition{}
	if diff := cmp.Diff(before[1], after); diff != "" {
		t.Errorf("not as before (-before +after):\n%s", diff)
	}
	if p := w.plan(); len(p.Nodes) > 0 {
		t.Errorf("%+v", p.Nodes)
	}
}

// Changes by a person stay when the alert is resolved.
func TestPersonalChanges(t *testing.T) {
	w := newWorld(t, 4)
	w.nodes[1].Unschedulable = true
	lost := alert("Lost", 1, noon)
	w.do(w.pass(10*time.Second, lost))
	w.nodes[1].Taints = append(w.nodes[1].Taints, Taint{"maintenance", "", "NoSchedule"})
	w.do(w.pass(2 * time.Minute))
	n := w.nodes[1]
	if !n.Unschedulable || len(n.Taints) != 2 || n.Labels[HealthLabel] != "" {
		t.Errorf("%+v", n)
	}
}

// An exempt node is not changed.
func TestExempt(t *testing.T) {
	w := newWorld(t, 4)
	lost := alert("Lost", 1, noon)
	w.do(w.pass(10*time.Second, lost))
	w.nodes[1].Annotations[HoldAnnotation] = "until the weekend"
	w.nodes[2].Annotations = map[string]string{HoldAnnotation: ""}
	p := w.pass(10*time.Minute, alert("Lost", 2, noon))
	for _, node := range []int{1, 2} {
		s := w.step(p, node)
		if !s.Patch.Empty() || len(s.Evict) > 0 || s.Withheld != WithheldHold {
			t.Errorf("%+v", s)
		}
	}
	w.nodes[1].Annotations[HoldAnnotation] = "false"
	if s := w.step(w.plan(), 1); !s.Ends {
		t.Errorf("%+v", s)
	}
}

// A silenced alert takes out no node and lets none in.
func TestSilence(t *testing.T) {
	w := newWorld(t, 4)
	lost := alert("Lost", 1, noon)
	silenced := lost
	silenced.Suppressed = true
	if s := w.step(w.pass(10*time.Minute, silenced), 1); s.Begins || s.Withheld != WithheldSuppressed {
		t.Errorf("%+v", s)
	}
	w.do(w.pass(10*time.Second, lost))
	if s := w.step(w.pass(10*time.Minute, silenced), 1); s.Ends || !s.Patch.Empty() || len(s.Evict) > 0 {
		t.Errorf("%+v", s)
	}
}

// An inhibited alert takes out no node. It does not stop what was begun: the cordon
// itself inhibits the alerts of its node. A silence stops it.
func TestInhibition(t *testing.T) {
	w := newWorld(t, 4)
	lost := alert("Lost", 1, noon)
	inhibited, silenced := lost, lost
	inhibited.Suppressed, inhibited.Inhibited, silenced.Suppressed = true, true, true
	if s := w.step(w.pass(10*time.Minute, inhibited), 1); s.Begins || s.Withheld != WithheldSuppressed {
		t.Errorf("%+v", s)
	}
	w.do(w.pass(10*time.Second, lost))
	if s := w.step(w.pass(10*time.Minute, inhibited), 1); s.Withheld != "" {
		t.Errorf("%+v", s)
	}
	for _, list := range [][]Alert{{inhibited, silenced}, {silenced, inhibited}} {
		if s := w.step(w.pass(10*time.Second, list...), 1); s.Withheld != WithheldSuppressed {
			t.Errorf("%+v", s)
		}
	}
}

// A silence that one Alertmanager knows applies, whichever list comes first.
func TestSilenceHalfHeard(t *testing.T) {
	silenced := alert("Lost", 1, noon)
	silenced.Suppressed = true
	for _, list := range [][]Alert{{silenced, alert("Lost", 1, noon)}, {alert("Lost", 1, noon), silenced}} {
		w := newWorld(t, 4)
		if s := w.step(w.pass(time.Minute, list...), 1); s.Begins || s.Withheld != WithheldSuppressed {
			t.Errorf("%+v", s)
		}
	}
}

// A restarted process reverts nothing before it knows which alerts fire.
func TestRestart(t *testing.T) {
	w := newWorld(t, 4)
	lost := alert("Lost", 1, noon)
	w.do(w.pass(10*time.Second, lost))
	w.restart()
	w.now = w.now.Add(10 * time.Minute)
	if p := w.plan(); w.step(p, 1).Ends {
		t.Error("undone although no Alertmanager has answered")
	}
	w.restart()
	if p := w.pass(30 * time.Second); w.step(p, 1).Ends {
		t.Error("undone although an Alertmanager may not have heard yet")
	}
	if s := w.step(w.pass(time.Minute), 1); !s.Ends {
		t.Errorf("%+v", s)
	}
}

// One alert waits by its rule. A worse alert raises the label until it is
// resolved.
func TestWorse(t *testing.T) {
	w := newWorld(t, 4)
	slow, lost := alert("Slow", 1, noon), alert("Lost", 1, noon)
	if p := w.pass(time.Minute, slow); len(p.Nodes) > 0 {
		t.Errorf("%+v", p)
	}
	w.do(w.pass(2*time.Minute, slow))
	if got := w.nodes[1].Labels[HealthLabel]; got != "degraded" {
		t.Errorf("health %q", got)
	}
	w.do(w.pass(10*time.Second, slow, lost))
	if n := w.nodes[1]; n.Labels[HealthLabel] != "failed" || !n.Unschedulable || len(n.Taints) != 3 {
		t.Errorf("%+v", n)
	}
	w.do(w.pass(2*time.Minute, slow))
	if got := w.nodes[1].Labels[HealthLabel]; got != "degraded" {
		t.Errorf("health %q", got)
	}
	w.do(w.pass(2 * time.Minute))
	if n := w.nodes[1]; n.Labels[HealthLabel] != "" || n.Unschedulable || len(n.Taints) != 1 {
		t.Errorf("%+v", n)
	}
}

// The limits bound the nodes of a pool that are out, and those per hour.
func TestLimits(t *testing.T) {
	w := newWorld(t, 20)
	var listed []Alert
	for i := range 6 { // far apart in time, so that they are no crowd
		listed = append(listed, alert("Lost", i, noon.Add(time.Duration(i-12)*time.Hour)))
	}
	p := w.pass(10*time.Second, listed...)
	begun := 0
	for _, s := range p.Nodes {
		if s.Begins {
			begun++
		} else if s.Withheld != WithheldHour {
			t.Errorf("%s: %q", s.Node.Name, s.Withheld)
		}
	}
	if begun != 4 {
		t.Errorf("%d begun, want 4 an hour", begun)
	}
	w.do(p)
	if p := w.pass(30*time.Minute, listed...); len(p.Nodes) != 6 || w.step(p, 4).Withheld != WithheldHour {
		t.Errorf("%+v", p)
	}
	w.do(w.pass(time.Hour, listed...))
	if n := w.nodes[5]; n.Labels[HealthLabel] != "failed" {
		t.Errorf("%+v", n)
	}
	w.policy.Limits.Share = 0.3 // six of twenty
	if s := w.step(w.pass(10*time.Second, append(listed, alert("Lost", 7, noon))...), 7); s.Withheld != WithheldShare {
		t.Errorf("%+v", s)
	}
}

// While many nodes of a pool fail at once, no further node is taken out.
func TestBreaker(t *testing.T) {
	w := newWorld(t, 4)
	w.nodes = append(w.nodes, Node{Name: "n10", Labels: map[string]string{"pool": "b"}})
	var listed []Alert
	for i := range 3 {
		listed = append(listed, alert("Lost", i, noon, "namespace", "ml", "pod", "p"))
	}
	listed = append(listed, alert("Lost", 10, noon))
	for range 20 { // also long after the window
		p := w.pass(time.Minute, listed...)
		for i := range 3 {
			if s := w.step(p, i); s.Begins || s.Withheld != WithheldBreaker || len(s.Evict) > 0 {
				t.Fatalf("%+v", s)
			}
		}
		if !p.Pools[0].Open || p.Pools[1].Open {
			t.Fatalf("%+v", p.Pools)
		}
		w.do(p)
	}
	if w.nodes[4].Labels[HealthLabel] != "failed" {
		t.Error("the breaker affects another pool")
	}
	p := w.pass(2*time.Minute, listed[1:]...)
	if p.Pools[0].Open || !w.step(p, 1).Begins {
		t.Errorf("%+v", p)
	}
}

// A node that is taken out for the third time in a day requires an inspection: no
// hook is called, and it stays out.
func TestRepeat(t *testing.T) {
	w := newWorld(t, 4)
	for i := range 3 {
		p := w.pass(2*time.Hour, alert("Lost", 1, w.now))
		s := w.step(p, 1)
		if s.Inspect != (i == 2) || (len(s.Call) == 0) != (i == 2) {
			t.Fatalf("time %d: %+v", i, s)
		}
		w.do(p)
		w.do(w.pass(2 * time.Minute))
	}
	if n := w.nodes[1]; n.Labels[HealthLabel] != "failed" || n.Annotations[InspectAnnotation] == "" {
		t.Errorf("%+v", n)
	}
	delete(w.nodes[1].Annotations, InspectAnnotation)
	w.do(w.plan())
	if n := w.nodes[1]; n.Labels[HealthLabel] != "" || n.Unschedulable {
		t.Errorf("%+v", n)
	}
}

// A rule without marks evicts the pod only.
func TestPodOnly(t *testing.T) {
	w := newWorld(t, 4)
	s := w.step(w.pass(10*time.Second, alert("Pod", 1, noon, "namespace", "ml", "pod", "p")), 1)
	if len(s.Evict) != 1 || !s.Patch.Empty() || s.Begins {
		t.Errorf("%+v", s)
	}
}

// An alert on a node that does not exist is reported.
func TestUnknownNode(t *testing.T) {
	w := newWorld(t, 1)
	p := w.pass(10*time.Second, alert("Lost", 7, noon))
	if diff := cmp.Diff([]string{"n07"}, p.Unknown); diff != "" || len(p.Nodes) > 0 {
		t.Errorf("%+v", p)
	}
}

// In random sequences, an executed plan leaves no action, limits apply, a restart
// loses nothing, and in the end every node is as before.
func TestRandomSequences(t *testing.T) {
	for seed := range uint64(60) {
		r := rand.New(rand.NewPCG(seed, 1))
		w := newWorld(t, 3+r.IntN(10))
		w.policy.Repeat.Count = 100 // what stays out is another test's
		before := slices.Clone(w.nodes)
		firing := map[int]Alert{}
		for range 40 {
			node := r.IntN(len(w.nodes))
			switch r.IntN(4) {
			case 0:
				delete(firing, node)
			case 1:
				a := alert([]string{"Lost", "Slow"}[r.IntN(2)], node, w.now)
				a.Suppressed = r.IntN(4) == 0
				firing[node] = a
			case 2:
				w.restart()
			}
			p := w.pass(time.Duration(r.IntN(900))*time.Second+time.Second, slices.Collect(maps.Values(firing))...)
			w.do(p)
			for _, s := range w.plan().Nodes {
				done := slices.ContainsFunc(p.Nodes, func(d Step) bool { return d.Node.Name == s.Node.Name && !d.Patch.Empty() })
				// One that was let in makes room for another.
				more := !s.Patch.Empty() || s.Begins || s.Ends || s.Condition != (Condition{}) || len(s.Call) > 0
				if more && (done || !s.Begins) {
					t.Fatalf("seed %d: an action is left: %+v", seed, s)
				}
			}
			out, hour := 0, 0
			for i := range w.nodes {
				if w.nodes[i].record() != nil {
					out++
				}
				for _, at := range w.nodes[i].history() {
					if w.now.Sub(at) < time.Hour {
						hour++
					}
				}
			}
			if most := max(1, len(w.nodes)/2); out > most || hour > w.policy.Limits.PerHour {
				t.Fatalf("seed %d: %d of %d nodes are out, %d within the hour", seed, out, len(w.nodes), hour)
			}
		}
		w.do(w.pass(10 * time.Minute))
		for i := range w.nodes {
			w.nodes[i].Annotations, w.nodes[i].Condition = nil, Condition{}
		}
		if diff := cmp.Diff(before, w.nodes); diff != "" {
			t.Fatalf("seed %d: not as before (-before +after):\n%s", seed, diff)
		}
	}
}

// Apply returns the node with the patch applied.
func (p *Patch) Apply(n Node) Node {
	n.Labels, n.Annotations = patched(n.Labels, p.Labels), patched(n.Annotations, p.Annotations)
	if p.Taints != nil {
		n.Taints = *p.Taints
	}
	if p.Unschedulable != nil {
		n.Unschedulable = *p.Unschedulable
	}
	return n
}

func patched(m map[string]string, change map[string]*string) map[string]string {
	m = maps.Clone(m)
	for key, value := range change {
		if value == nil {
			delete(m, key)
			continue
		}
		if m == nil {
			m = map[string]string{}
		}
		m[key] = *value
	}
	return m
}

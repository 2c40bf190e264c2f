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
alerts: [Lost, Slow]
pool_label: pool
settle: 1m
limits: {share: 0.5, per_hour: 4, returns_per_hour: 100}
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
`

func policy(t testing.TB) *Policy {
	t.Helper()
	p, err := ParsePolicy("policy.yml", []byte(policyText), nil)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func alert(name string, node int, since time.Time, labels ...string) Alert {
	a := Alert{Labels: map[string]string{"alertname": name, "node": fmt.Sprintf("n%02d", node), "severity": "critical"}, StartsAt: since, Summary: name}
	for i := 0; i < len(labels); i += 2 {
		a.Labels[labels[i]] = labels[i+1]
	}
	return a
}

// A node is taken out and let in, and is then as before.
func TestThereAndBack(t *testing.T) {
	r := newRig(t, 4)
	before := *r.nodes["n01"]
	lost := lostOn(1, noon)
	p := r.pass(t, 10*time.Second, lost)
	s := r.step(1)
	if !s.Begins || s.Withheld != "" || len(p.Nodes) != 1 {
		t.Fatalf("%+v", p)
	}
	want := []Pod{{"ml", "train-1", "Lost", "GPU-0", noon}}
	if diff := cmp.Diff(want, s.Evict); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"reset"}, s.Call); diff != "" {
		t.Error(diff)
	}
	n := r.nodes["n01"]
	if n.Labels[HealthLabel] != "failed" || !n.Unschedulable || n.Condition.Status != "False" ||
		!slices.Contains(n.Taints, Taint{"accel.health", "failed", "NoSchedule"}) || len(n.Taints) != 2 {
		t.Errorf("%+v", n)
	}
	r.pass(t, 10*time.Second, lost) // calls the hook
	r.pass(t, 10*time.Second, lost)
	if s := r.step(1); !s.Patch.Empty() || len(s.Call) > 0 || s.Condition != (Condition{}) {
		t.Errorf("an action is left: %+v", s)
	}
	r.pass(t, 50*time.Second)
	if r.step(1).Ends {
		t.Error("let in before settle")
	}
	r.pass(t, 20*time.Second)
	if s := r.step(1); !s.Ends || r.nodes["n01"].Condition.Status != "True" {
		t.Fatalf("not let in again: %+v", s)
	}
	after := *r.nodes["n01"]
	after.Annotations, after.Condition, after.Version = nil, Condition{}, before.Version
	if diff := cmp.Diff(before, after); diff != "" {
		t.Errorf("not as before (-before +after):\n%s", diff)
	}
	if p := r.pass(t, 10*time.Second); len(p.Nodes) > 0 {
		t.Errorf("%+v", p.Nodes)
	}
}

// The pods of an alert are the pods of its annotation and of its labels, once each.
func TestPodsOfAlert(t *testing.T) {
	for name, c := range map[string]struct {
		annotation []string
		labels     []string
		want       []Pod
	}{
		"annotation": {annotation: []string{"ml/train-1", "ml/train-2"}, want: []Pod{{"ml", "train-1", "Lost", "GPU-0", noon}, {"ml", "train-2", "Lost", "GPU-0", noon}}},
		"both":       {annotation: []string{"ml/train-1"}, labels: []string{"namespace", "ml", "pod", "train-1"}, want: []Pod{{"ml", "train-1", "Lost", "GPU-0", noon}}},
		"no pod":     {annotation: []string{"", "ml/", "/train-1", "train-1"}, labels: []string{"namespace", "ml"}},
	} {
		r := newRig(t, 4)
		a := alert("Lost", 1, noon, append(c.labels, "device", "GPU-0")...)
		a.Pods = c.annotation
		r.pass(t, 10*time.Second, a)
		s := r.step(1)
		if diff := cmp.Diff(c.want, s.Evict); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
		if diff := cmp.Diff(c.want, s.Hurt); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

// Changes by a person stay when the alert is resolved.
func TestPersonalChanges(t *testing.T) {
	r := newRig(t, 4)
	r.nodes["n01"].Unschedulable = true
	r.pass(t, 10*time.Second, alert("Lost", 1, noon))
	n := r.nodes["n01"]
	n.Taints = append(n.Taints, Taint{"maintenance", "", "NoSchedule"})
	r.pass(t, 2*time.Minute)
	if n := r.nodes["n01"]; !n.Unschedulable || len(n.Taints) != 2 || n.Labels[HealthLabel] != "" {
		t.Errorf("%+v", n)
	}
}

// An exempt node is not changed.
func TestExempt(t *testing.T) {
	r := newRig(t, 4)
	r.pass(t, 10*time.Second, alert("Lost", 1, noon))
	r.nodes["n01"].Annotations[HoldAnnotation] = "until the weekend"
	r.nodes["n02"].Annotations = map[string]string{HoldAnnotation: ""}
	r.pass(t, 10*time.Minute, alert("Lost", 2, noon))
	for _, node := range []int{1, 2} {
		s := r.step(node)
		if !s.Patch.Empty() || len(s.Evict) > 0 || s.Withheld != WithheldHold {
			t.Errorf("%+v", s)
		}
	}
	r.nodes["n01"].Annotations[HoldAnnotation] = "false"
	r.pass(t, 10*time.Second)
	if s := r.step(1); !s.Ends {
		t.Errorf("%+v", s)
	}
}

// A silenced or inhibited alert takes out no node. A silence lets none in and stops
// what was begun, whichever Alertmanager knows of it. An inhibition does not: the
// cordon itself inhibits the alerts of its node.
func TestSuppression(t *testing.T) {
	fires := lostOn(1, noon)
	silenced, inhibited := fires, fires
	silenced.Suppressed = true
	inhibited.Suppressed, inhibited.Inhibited = true, true
	for name, c := range map[string]struct {
		listed []Alert
		stops  bool // what was begun
	}{
		"silenced":                    {[]Alert{silenced}, true},
		"inhibited":                   {[]Alert{inhibited}, false},
		"inhibited, then silenced":    {[]Alert{inhibited, silenced}, true},
		"silenced, then inhibited":    {[]Alert{silenced, inhibited}, true},
		"silenced by the first only":  {[]Alert{silenced, fires}, true},
		"silenced by the second only": {[]Alert{fires, silenced}, true},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, 4)
			r.pass(t, 10*time.Minute, c.listed...)
			if s := r.step(1); s.Begins || s.Withheld != WithheldSuppressed || r.nodes["n01"].Version != "1" {
				t.Errorf("%+v", s)
			}
			r.kept = true
			r.pass(t, 30*time.Second, fires)
			r.pass(t, 10*time.Minute, c.listed...)
			if s := r.step(1); s.Ends || !s.Patch.Empty() || s.Withheld != map[bool]string{true: WithheldSuppressed}[c.stops] || (len(s.Evict) == 0) != c.stops {
				t.Errorf("on a node that is out: %+v", s)
			}
		})
	}
}

// A restarted process reverts nothing before it knows which alerts fire.
func TestRestart(t *testing.T) {
	r := newRig(t, 4)
	r.pass(t, 10*time.Second, alert("Lost", 1, noon))
	r.restart()
	r.alerts.err = errDown
	r.pass(t, 10*time.Minute)
	if r.step(1).Ends {
		t.Error("undone although no Alertmanager has answered")
	}
	r.restart()
	r.alerts.err = nil
	r.pass(t, 30*time.Second)
	if r.step(1).Ends {
		t.Error("undone although an Alertmanager may not have heard yet")
	}
	r.pass(t, 2*time.Minute)
	if n := r.nodes["n01"]; n.Labels[HealthLabel] != "" {
		t.Errorf("%+v", n)
	}
}

// One alert waits by its rule. A worse alert raises the label until it is
// resolved.
func TestWorse(t *testing.T) {
	r := newRig(t, 4)
	slow, lost := alert("Slow", 1, noon), alert("Lost", 1, noon)
	if p := r.pass(t, time.Minute, slow); len(p.Nodes) > 0 {
		t.Errorf("%+v", p)
	}
	for _, c := range []struct {
		after  time.Duration
		listed []Alert
		health string
		cordon bool
		taints int
	}{
		{2 * time.Minute, []Alert{slow}, "degraded", false, 2},
		{10 * time.Second, []Alert{slow, lost}, "failed", true, 3},
		{2 * time.Minute, []Alert{slow}, "degraded", true, 3},
		{2 * time.Minute, nil, "", false, 1},
	} {
		r.pass(t, c.after, c.listed...)
		if n := r.nodes["n01"]; n.Labels[HealthLabel] != c.health || n.Unschedulable != c.cordon || len(n.Taints) != c.taints {
			t.Errorf("%+v, want %+v", n, c)
		}
	}
}

// The limits bound the nodes of a pool that are out, and those per hour.
func TestLimits(t *testing.T) {
	r := newRig(t, 20)
	var listed []Alert
	for i := range 6 { // far apart in time, so that they are no crowd
		listed = append(listed, alert("Lost", i, noon.Add(time.Duration(i-12)*time.Hour)))
	}
	begun := 0
	for _, s := range r.pass(t, 10*time.Second, listed...).Nodes {
		if s.Begins {
			begun++
		} else if s.Withheld != WithheldHour {
			t.Errorf("%s: %q", s.Node.Name, s.Withheld)
		}
	}
	if begun != 4 {
		t.Errorf("%d begun, want 4 an hour", begun)
	}
	if p := r.pass(t, 30*time.Minute, listed...); len(p.Nodes) != 6 || r.step(4).Withheld != WithheldHour {
		t.Errorf("%+v", p)
	}
	r.pass(t, time.Hour, listed...)
	if n := r.nodes["n05"]; n.Labels[HealthLabel] != "failed" {
		t.Errorf("%+v", n)
	}
	r.policy.Limits.Share = 0.3 // six of twenty
	r.pass(t, 10*time.Second, append(listed, alert("Lost", 7, noon))...)
	if s := r.step(7); s.Withheld != WithheldShare {
		t.Errorf("%+v", s)
	}
}

// While many nodes of a pool fail at once, no further node is taken out and no pod
// evicted.
func TestBreaker(t *testing.T) {
	r := newRig(t, 4)
	r.nodes["n10"] = &Node{Name: "n10", Version: "1", Labels: map[string]string{"pool": "b"}}
	listed := []Alert{alert("Lost", 3, noon.Add(-time.Hour))}
	r.pass(t, time.Minute, listed...)
	listed = append(listed, lostOn(3, noon)) // of a node that is out
	for i := range 3 {
		listed = append(listed, lostOn(i, noon))
	}
	listed = append(listed, alert("Lost", 10, noon))
	for range 20 { // also long after the window
		p := r.pass(t, time.Minute, listed...)
		for i := range 3 {
			if s := r.step(i); s.Begins || s.Withheld != WithheldBreaker || len(s.Evict) > 0 || s.Node.Version != "1" {
				t.Fatalf("%+v", s)
			}
		}
		if !p.Pools[0].Open || p.Pools[1].Open {
			t.Fatalf("%+v", p.Pools)
		}
	}
	if r.nodes["n10"].Labels[HealthLabel] != "failed" {
		t.Error("the breaker affects another pool")
	}
	if s := r.step(3); s.Withheld != WithheldBreaker || r.pods["ml/train-3"] == "" {
		t.Errorf("a pod is evicted: %+v", s)
	}
	if p := r.pass(t, 2*time.Minute, listed[3:]...); p.Pools[0].Open || r.nodes["n01"].Labels[HealthLabel] != "failed" {
		t.Errorf("%+v", p)
	}
}

// A node that is taken out for the third time in a day requires an inspection: no
// hook is called, and it stays out.
func TestRepeat(t *testing.T) {
	r := newRig(t, 4)
	for i := range 3 {
		r.pass(t, 2*time.Hour)
		r.pass(t, 10*time.Second, alert("Lost", 1, r.now))
		if s := r.step(1); !s.Begins || s.Inspect != (i == 2) || (len(s.Call) == 0) != (i == 2) {
			t.Fatalf("time %d: %+v", i, s)
		}
	}
	r.pass(t, 2*time.Minute)
	if n := r.nodes["n01"]; n.Labels[HealthLabel] != "failed" || n.Annotations[InspectAnnotation] == "" {
		t.Errorf("%+v", n)
	}
	delete(r.nodes["n01"].Annotations, InspectAnnotation)
	r.pass(t, 30*time.Second)
	if n := r.nodes["n01"]; n.Labels[HealthLabel] != "" || n.Unschedulable {
		t.Errorf("%+v", n)
	}
}

// A node that is out returns only on knowledge: as long as an Alertmanager that may know
// its alert is silent, or the policy does not cover it, the node stays out.
func TestReturnsOnKnowledge(t *testing.T) {
	lost := lostOn(1, noon)
	for name, c := range map[string]struct {
		before, after func(r *rig)
		want          string
		returns       bool // once the cause has ended
	}{
		"the Alertmanager with the alert is away, the other never received it": {
			before: func(r *rig) { r.alerts.second = &listed{} },
			after:  func(r *rig) { r.alerts.err = errDown },
			want:   WithheldUnknown, returns: true,
		},
		"the same, and the remediator has restarted": {
			before: func(r *rig) { r.alerts.second = &listed{} },
			after:  func(r *rig) { r.alerts.err = errDown; r.restart() },
			want:   WithheldUnknown, returns: true,
		},
		"the other is away, and never listed the alert": {
			before:  func(r *rig) { r.alerts.second = &listed{} },
			after:   func(r *rig) { r.alerts.alerts, r.alerts.second.err = nil, errDown },
			returns: true,
		},
		"no rule matches": {
			after: func(r *rig) { r.policy.Rules = r.policy.Rules[1:] },
			want:  WithheldPolicy,
		},
		"the label of the node is mistyped": {
			after: func(r *rig) { r.policy.NodeLabel = "nod" },
			want:  WithheldPolicy,
		},
		"the alert has ended, and the policy cannot set the taint": {
			after: func(r *rig) { r.policy.Rules[0].Taints, r.alerts.alerts = nil, nil },
			want:  WithheldPolicy,
		},
		"the same, and a person lets it in": {
			after: func(r *rig) {
				r.policy.Rules[0].Taints, r.alerts.alerts = nil, nil
				r.nodes["n01"].Annotations[AdmitAnnotation] = "repaired"
			},
			returns: true,
		},
		"the alert has ended with its exporter": {
			after: func(r *rig) { r.alerts.alerts, r.proves.err = nil, errDown },
			want:  WithheldExporter, returns: true,
		},
		"the alert has ended with a restart of the exporter, which remembers nothing": {
			after: func(r *rig) {
				r.alerts.alerts, r.proves.proof.Before = nil, map[string]time.Time{"GPU-7": noon.Add(time.Minute)}
			},
			want: WithheldExporter,
		},
		"the exporter has forgotten the fault before the node was taken out": {
			after: func(r *rig) {
				r.alerts.alerts, r.proves.proof.Before = nil, map[string]time.Time{"GPU-0": noon.Add(5 * time.Second)}
			},
			want: WithheldExporter,
		},
		"the same, and a person lets it in although the exporter has forgotten": {
			after: func(r *rig) {
				r.alerts.alerts, r.proves.proof.Before = nil, map[string]time.Time{"GPU-7": noon.Add(time.Minute)}
				r.nodes["n01"].Annotations[AdmitAnnotation] = ""
			},
			returns: true,
		},
		"a source of the exporter is down": {
			after: func(r *rig) { r.alerts.alerts, r.proves.proof.Sources = nil, map[string]string{"nvidia": "timeout"} },
			want:  WithheldSource,
		},
		"the device is unknown": {
			after: func(r *rig) { r.alerts.alerts, r.proves.proof.Devices["GPU-0"] = nil, "unknown" },
			want:  WithheldDevice,
		},
		"the device is not on the node": {
			after: func(r *rig) { r.alerts.alerts = nil; delete(r.proves.proof.Devices, "GPU-0") },
			want:  WithheldDevice,
		},
		"another device has failed": {
			after: func(r *rig) { r.alerts.alerts, r.proves.proof.Devices["GPU-7"] = nil, "failed" },
			want:  WithheldDevice,
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, 4)
			if c.before != nil {
				c.before(r)
			}
			r.pass(t, 10*time.Second, lost)
			if !r.step(1).Begins {
				t.Fatal("not taken out")
			}
			listed := r.alerts.alerts
			c.after(r)
			if r.alerts.alerts == nil {
				listed = nil
			}
			for range 20 {
				r.pass(t, time.Minute, listed...)
			}
			if c.want != "" && (r.nodes["n01"].record() == nil || r.step(1).Withheld != c.want) {
				t.Fatalf("%+v, want %q", r.step(1), c.want)
			}
			if !c.returns {
				return
			}
			r.alerts.err, r.proves.err = nil, nil
			for range 3 {
				r.pass(t, time.Minute)
			}
			if r.nodes["n01"].record() != nil {
				t.Errorf("stays out: %+v", r.step(1))
			}
		})
	}
}

// A node whose alert fired all along, while a slip of the policy or a person let it in,
// has not failed again.
func TestSlipIsNoRepeat(t *testing.T) {
	r := newRig(t, 4)
	for range 4 {
		r.pass(t, time.Minute, lostOn(1, noon))
		if s := r.step(1); s.Inspect || s.Node.record() == nil || len(s.Node.history()) != 1 {
			t.Fatalf("%+v", s)
		}
		r.policy.NodeLabel = "nod"
		r.nodes["n01"].Annotations[AdmitAnnotation] = "yes"
		r.pass(t, 10*time.Minute, lostOn(1, noon))
		if n := r.nodes["n01"]; n.record() != nil || n.admitted() {
			t.Fatalf("%+v", n)
		}
		r.policy.NodeLabel = "node"
	}
}

// A node that is taken out and deleted still counts for an hour, whichever process leads.
func TestDeletedNodesCount(t *testing.T) {
	r := newRig(t, 20)
	var all []Alert
	for i := range 10 {
		all = append(all, alert("Lost", i, noon.Add(time.Duration(i-12)*time.Hour)))
	}
	out := map[string]bool{}
	for range 40 {
		r.pass(t, time.Minute, all...)
		r.restart()
		for name, n := range r.nodes {
			if n.record() != nil {
				out[name] = true
				delete(r.nodes, name)
			}
		}
	}
	if len(out) != r.policy.Limits.PerHour {
		t.Errorf("%d nodes were taken out, want %d", len(out), r.policy.Limits.PerHour)
	}
}

// A node that is out counts also while the list of nodes is late, and if the clock of the
// former leader was ahead.
func TestListedLate(t *testing.T) {
	r := newRig(t, 20)
	r.policy.Limits.PerHour = 1
	for r.nodes["n01"].record() == nil {
		r.pass(t, 15*time.Second, alert("Slow", 1, noon))
	}
	for _, stale := range []bool{true, false} {
		r.stale = stale
		r.pass(t, time.Minute, alert("Slow", 1, noon), alert("Slow", 2, noon.Add(-time.Hour)))
		if r.nodes["n01"].record() == nil || r.nodes["n02"].record() != nil || r.step(2).Withheld != WithheldHour {
			t.Errorf("stale %v: %+v", stale, r.step(2))
		}
		r.restart()
		r.now = r.now.Add(-30 * time.Minute)
	}
}

// An alert of a node whose clock is ahead counts from when it was listed first.
func TestClockAhead(t *testing.T) {
	r := newRig(t, 4)
	later := noon.Add(time.Hour)
	all := []Alert{alert("Lost", 1, later), alert("Slow", 2, later)}
	r.pass(t, 10*time.Second, all...)
	if r.nodes["n01"].record() == nil || r.nodes["n02"].record() != nil {
		t.Errorf("%+v, %+v", r.nodes["n01"], r.nodes["n02"])
	}
	r.pass(t, 3*time.Minute, all...)
	for range 60 { // also when the clock has reached the start
		r.pass(t, time.Minute, all...)
		if s := r.step(2); r.nodes["n02"].record() == nil || s.Withheld != "" {
			t.Fatalf("%s: %+v", r.now, s)
		}
	}
}

// Nodes are let in at a bounded pace.
func TestReturnsPerHour(t *testing.T) {
	r := newRig(t, 20)
	r.policy.Limits.ReturnsPerHour = 2
	var all []Alert
	for i := range 4 {
		all = append(all, alert("Lost", i, noon.Add(time.Duration(i-12)*time.Hour)))
	}
	r.pass(t, 10*time.Second, all...)
	out := func() (n int) {
		for _, node := range r.nodes {
			if node.record() != nil {
				n++
			}
		}
		return n
	}
	for i, want := range []int{4, 2, 2, 2, 0} {
		r.pass(t, []time.Duration{time.Second, 2 * time.Minute, time.Minute, 50 * time.Minute, 10 * time.Minute}[i])
		if out() != want {
			t.Errorf("step %d: %d are out, want %d", i, out(), want)
		}
	}
}

// A kubelet may write the annotations of its node: a forged record undoes no taint that
// the policy cannot set, and a forged history withholds no other node.
func TestForgedAnnotations(t *testing.T) {
	r := newRig(t, 20)
	for i := 10; i < 20; i++ {
		r.nodes[fmt.Sprintf("n%02d", i)].Annotations = map[string]string{HistoryAnnotation: text([]time.Time{noon.AddDate(8000-2026, 0, 0)})}
	}
	foreign := Taint{"node.kubernetes.io/unreachable", "", "NoExecute"}
	r.nodes["n00"].Taints = []Taint{foreign}
	r.nodes["n00"].Annotations = map[string]string{
		RecordAnnotation:  text(Record{Since: noon, Taints: []Taint{foreign}}),
		HistoryAnnotation: text(slices.Repeat([]time.Time{noon.AddDate(8000-2026, 0, 0), noon}, 10)),
	}
	for range 10 {
		r.pass(t, time.Minute, alert("Lost", 1, noon))
	}
	if n := r.nodes["n00"]; !slices.Contains(n.Taints, foreign) {
		t.Errorf("%+v", n)
	}
	if n := r.nodes["n01"]; n.record() == nil {
		t.Errorf("%+v", r.step(1))
	}
	r.nodes["n00"].Annotations[AdmitAnnotation] = "yes"
	r.pass(t, time.Minute)
	if n := r.nodes["n00"]; n.record() != nil || !slices.Contains(n.Taints, foreign) {
		t.Errorf("admitted by a person: %+v", n)
	}
}

// Nodes that others took out of service count, and the breaker's clock starts at the
// alert that requires the present action, also where a node is out for a mild one.
func TestOneBudget(t *testing.T) {
	r := newRig(t, 10)
	r.policy.Limits.Share = 0.3
	r.nodes["n08"].Unschedulable, r.nodes["n09"].NotReady = true, true
	r.pass(t, 10*time.Second, alert("Lost", 0, noon.Add(-time.Hour)), alert("Lost", 1, noon))
	if s := r.step(1); s.Withheld != WithheldShare {
		t.Errorf("%+v", s)
	}

	for _, out := range []bool{false, true} { // for the mild alerts
		r = newRig(t, 10)
		r.policy.Limits, r.policy.Breaker.Share = Limits{1, 10000, 100}, 0.3
		var mild, all []Alert
		for i := range 10 {
			mild = append(mild, alert("Slow", i, noon.Add(time.Duration(i-100)*time.Hour)))
			all = append(all, alert("Lost", i, noon.Add(time.Hour)))
		}
		if r.now = noon.Add(time.Hour); out {
			r.pass(t, time.Minute, mild...)
		}
		r.pass(t, time.Minute, append(mild, all...)...)
		for i := range 10 {
			if s := r.step(i); s.Withheld != WithheldBreaker || r.nodes[s.Node.Name].Unschedulable {
				t.Errorf("out %t: %+v", out, s)
			}
		}
	}
}

// An alert on a node that does not exist, or on none, is reported.
func TestUnknownNode(t *testing.T) {
	nameless := alert("Lost", 0, noon)
	delete(nameless.Labels, "node")
	p := newRig(t, 1).pass(t, 10*time.Second, alert("Lost", 7, noon), nameless)
	if diff := cmp.Diff([]string{"n07"}, p.Unknown); diff != "" || len(p.Nodes) > 0 || !slices.Equal(p.WithoutNode, []string{"Lost"}) {
		t.Errorf("%+v", p)
	}
}

// In random sequences, an executed plan leaves no action, limits apply, a restart
// loses nothing, and in the end every node is as before.
func TestRandomSequences(t *testing.T) {
	for seed := range uint64(30) {
		random := rand.New(rand.NewPCG(seed, 1))
		r := newRig(t, 3+random.IntN(10))
		r.policy.Repeat.Count = 100 // what stays out is another test's
		before := maps.Clone(r.nodes)
		firing := map[int]Alert{}
		for range 40 {
			node := random.IntN(len(r.nodes))
			switch random.IntN(4) {
			case 0:
				delete(firing, node)
			case 1:
				a := alert([]string{"Lost", "Slow"}[random.IntN(2)], node, r.now)
				a.Suppressed = random.IntN(4) == 0
				firing[node] = a
			case 2:
				r.restart()
			}
			r.now = r.now.Add(time.Duration(random.IntN(750)) * time.Second)
			r.pass(t, time.Duration(random.IntN(150))*time.Second+time.Second, slices.Collect(maps.Values(firing))...)
			for range 4 { // a node that was let in makes room for another
				r.c.pass(t.Context())
			}
			for _, s := range r.c.Plan().Nodes {
				if !s.Patch.Empty() || s.Begins || s.Ends || s.Condition != (Condition{}) || len(s.Call) > 0 {
					t.Fatalf("seed %d: an action is left: %+v", seed, s)
				}
			}
			out, hour := 0, 0
			for _, n := range r.nodes {
				if n.record() != nil {
					out++
				}
				for _, at := range n.history() {
					if r.now.Sub(at) < time.Hour {
						hour++
					}
				}
			}
			if most := max(1, len(r.nodes)/2); out > most || hour > r.policy.Limits.PerHour {
				t.Fatalf("seed %d: %d of %d nodes are out, %d within the hour", seed, out, len(r.nodes), hour)
			}
		}
		r.pass(t, 10*time.Minute)
		for name, n := range r.nodes {
			n.Annotations, n.Condition, n.Version = nil, Condition{}, before[name].Version
		}
		if diff := cmp.Diff(before, r.nodes); diff != "" {
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
	after := map[string]string{}
	maps.Copy(after, m)
	for key, value := range change {
		if value == nil {
			delete(after, key)
		} else {
			after[key] = *value
		}
	}
	return after
}

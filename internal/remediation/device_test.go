package remediation

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"
)

// deviceRig has a DRA driver on each node, which publishes GPU-0 as gpu-0 and GPU-7 as
// gpu-7, and a policy that takes single devices out with an effect.
func deviceRig(t testing.TB, nodes int, effect string) *rig {
	t.Helper()
	r := newRig(t, nodes)
	text := strings.Replace(policyText, "    health: failed\n", "    health: failed\n    device: "+effect+"\n", 1)
	var err error
	if r.policy, err = ParsePolicy("policy.yml", []byte(text), nil); err != nil {
		t.Fatal(err)
	}
	for name := range r.nodes {
		r.published = append(r.published, gpu(name, "GPU-0", "gpu-0"), gpu(name, "GPU-7", "gpu-7"))
	}
	r.restart()
	return r
}

func gpu(node, id, name string) Published {
	return Published{Place: Place{"gpu.example.com", node, name}, Node: node, UUID: id}
}

// rule returns the rule of a device, a zero rule if there is none.
func (r *rig) rule(node int, id string) TaintRule {
	for _, rule := range r.rules {
		if rule.Node == fmt.Sprintf("n%02d", node) && rule.Device == id {
			return *rule
		}
	}
	return TaintRule{}
}

// device returns the step of the last plan for a device.
func (r *rig) device(node int, id string) Step {
	for _, s := range r.c.Plan().Devices {
		if s.Node.Name == fmt.Sprintf("n%02d", node) && s.Node.Device.ID == id {
			return s
		}
	}
	return Step{}
}

// One device is taken out and let in. Its node stays as it is, another failed device does
// not delay the return, and the rule is deleted when its history does not count any more.
func TestDevice(t *testing.T) {
	r := deviceRig(t, 4, "NoSchedule")
	lost, other := lostOn(1, noon), alert("Lost", 1, noon, "device", "GPU-7")
	r.pass(t, time.Minute, lost, other)
	rule := r.rule(1, "GPU-0")
	if rule.Taint != (Taint{"accel.health", "failed", "NoSchedule"}) || rule.Selects != (Place{"gpu.example.com", "n01", "gpu-0"}) || len(r.rules) != 2 {
		t.Errorf("%+v", r.rules)
	}
	if n := r.nodes["n01"]; n.Version != "1" {
		t.Errorf("the node is changed: %+v", n)
	}
	if r.pods["ml/train-1"] != "" || len(r.calls) != 2 {
		t.Errorf("%v, %v", r.pods, r.calls)
	}
	if p := r.c.Plan().Pools[0]; p.Out != 0 || p.Devices != 2 {
		t.Errorf("%+v", p)
	}
	r.proves.proof.Devices["GPU-7"] = "failed"
	r.pass(t, 2*time.Minute, other)
	rule = r.rule(1, "GPU-0")
	if rule.Taint != (Taint{}) || rule.Annotations[RecordAnnotation] != "" || rule.Annotations[HistoryAnnotation] == "" || r.rule(1, "GPU-7").Taint == (Taint{}) {
		t.Errorf("%+v", r.rules)
	}
	r.pass(t, 2*time.Minute)
	if s := r.device(1, "GPU-7"); s.Withheld != WithheldDevice || s.Missing != "device GPU-7: failed" {
		t.Errorf("%+v", s)
	}
	r.now = r.now.Add(25 * time.Hour)
	r.pass(t, 15*time.Second)
	if len(r.rules) != 1 || r.rule(1, "GPU-0").Name != "" {
		t.Errorf("%+v", r.rules)
	}
}

// The rule follows its device. It has no effect while the driver publishes another device
// in the place, and keeps it while the driver publishes nothing.
func TestDeviceMoves(t *testing.T) {
	r := deviceRig(t, 4, "NoSchedule")
	lost := lostOn(1, noon)
	r.pass(t, time.Minute, lost)
	for _, c := range []struct {
		name      string
		published []Published
		selects   string
		taint     Taint
	}{
		{"published elsewhere", []Published{gpu("n01", "GPU-0", "gpu-3"), gpu("n01", "GPU-7", "gpu-0")}, "gpu-3", Taint{"accel.health", "failed", "NoSchedule"}},
		{"nothing is published", nil, "gpu-3", Taint{"accel.health", "failed", "NoSchedule"}},
		{"another device in the place", []Published{gpu("n01", "GPU-7", "gpu-3")}, "gpu-3", Taint{}},
		{"the device is back", []Published{gpu("n01", "GPU-0", "gpu-3")}, "gpu-3", Taint{"accel.health", "failed", "NoSchedule"}},
	} {
		r.published = c.published
		r.pass(t, 30*time.Second, lost)
		if rule := r.rule(1, "GPU-0"); rule.Selects.Name != c.selects || rule.Taint != c.taint || r.nodes["n01"].Version != "1" {
			t.Errorf("%s: %+v", c.name, rule)
		}
	}
	r.published = []Published{gpu("n01", "GPU-7", "gpu-3")}
	r.pass(t, 15*time.Second) // before settle
	if rule := r.rule(1, "GPU-0"); rule.Taint != (Taint{}) || rule.Annotations[RecordAnnotation] == "" {
		t.Errorf("without an alert: %+v", rule)
	}
}

// A device that a device plug-in serves now is taken out with its node, whatever rule it has
// from before.
func TestDeviceLeavesDriver(t *testing.T) {
	r := deviceRig(t, 4, "NoSchedule")
	r.pass(t, time.Minute, lostOn(1, noon))
	r.pass(t, 3*time.Minute)
	r.published = nil
	r.pass(t, time.Minute, lostOn(1, r.now))
	if rule := r.rule(1, "GPU-0"); rule.Name == "" || r.nodes["n01"].Labels[HealthLabel] != "failed" {
		t.Errorf("%+v, %+v", rule, r.nodes["n01"])
	}
}

// Devices return at a bounded pace, also devices that were out for longer than their history
// counts. Then their rules are deleted.
func TestDevicePace(t *testing.T) {
	r := deviceRig(t, 4, "NoSchedule")
	r.policy.Limits.ReturnsPerHour, r.policy.Repeat.Within = 1, time.Hour
	listed := []Alert{lostOn(1, noon), alert("Lost", 1, noon, "device", "GPU-7")}
	r.pass(t, 15*time.Second, listed...)
	r.now = r.now.Add(2 * time.Hour)
	r.pass(t, time.Minute, listed...)
	r.pass(t, 10*time.Minute)
	if r.rule(1, "GPU-0").Taint != (Taint{}) || r.device(1, "GPU-7").Withheld != WithheldPace {
		t.Errorf("%+v", r.rules)
	}
	for range 3 {
		r.pass(t, time.Hour)
	}
	if len(r.rules) > 0 {
		t.Errorf("%+v", r.rules)
	}
}

// NoExecute comes after Kubernetes has counted the pods, and only if the alerts name as
// many. Else the device has NoSchedule, with the reason.
func TestDeviceNoExecute(t *testing.T) {
	for count, want := range map[string]string{
		"1 published device selected. 1 allocated device selected. 1 pod would be evicted in 1 namespace if the effect was NoExecute.": "NoExecute ",
		"1 published device selected. 0 allocated devices selected. 0 pods would be evicted in 0 different namespaces if":              "NoExecute ",
		"2 pods would be evicted in 2 different namespaces":                                                                            "NoSchedule NoExecute would evict 2 pods, and the alerts name 1",
		"other words": `NoSchedule Kubernetes does not count the pods that NoExecute would evict ("other words")`,
		"":            `NoSchedule Kubernetes does not count the pods that NoExecute would evict ("")`,
	} {
		r := deviceRig(t, 4, "NoExecute")
		lost := lostOn(1, noon)
		r.pass(t, 15*time.Second, lost)
		rule := r.rule(1, "GPU-0")
		if rule.Taint.Effect != "None" {
			t.Fatalf("%+v", rule)
		}
		r.rules[rule.Name].Count = count
		r.pass(t, 90*time.Second, lost)
		s := r.device(1, "GPU-0")
		if got := r.rule(1, "GPU-0").Taint.Effect + " " + s.Missing; got != want || (s.Withheld == WithheldEviction) != (s.Missing != "") {
			t.Errorf("%s: %s", got, s.Withheld)
		}
	}
}

// A device that no driver publishes, or not exactly once, is taken out with its node.
// While the devices are not known, neither is.
func TestDeviceOfPlugin(t *testing.T) {
	for name, change := range map[string]func(r *rig){
		"not published":            func(r *rig) { r.published = nil },
		"published at two places":  func(r *rig) { r.published = append(r.published, gpu("n01", "GPU-0", "gpu-vfio-0")) },
		"the alert names none":     func(*rig) {},
		"devices of another node":  func(r *rig) { r.published = []Published{gpu("n02", "GPU-0", "gpu-0")} },
		"a policy without devices": func(r *rig) { r.policy.Rules[0].Device = "" },
	} {
		r := deviceRig(t, 4, "NoSchedule")
		change(r)
		lost := lostOn(1, noon)
		if name == "the alert names none" {
			delete(lost.Labels, "device")
		}
		r.unlisted = errDown
		r.pass(t, time.Minute, lost)
		if n := r.nodes["n01"]; (n.Version != "1") != (name == "the alert names none" || name == "a policy without devices") {
			t.Errorf("%s, while the devices are not known: %+v, %+v", name, n, r.step(1))
		}
		r.unlisted = nil
		r.pass(t, time.Minute, lost)
		if n := r.nodes["n01"]; n.Labels[HealthLabel] != "failed" || len(r.rules) > 0 {
			t.Errorf("%s: %+v, %+v", name, n, r.rules)
		}
	}
}

// A process that starts while a driver has not published the devices of a node waits for
// them before it takes the node out, for a while.
func TestDeviceNotYetPublished(t *testing.T) {
	for _, published := range []bool{true, false} {
		r := deviceRig(t, 4, "NoSchedule")
		later := r.published
		r.published, r.since = []Published{gpu("n02", "GPU-0", "gpu-0")}, noon
		r.pass(t, time.Minute, lostOn(1, noon))
		if s := r.step(1); s.Withheld != WithheldUnknown || !strings.Contains(s.Missing, "by 2026-") || s.Node.Version != "1" {
			t.Fatalf("%+v", s)
		}
		if published {
			r.published = later
		}
		r.pass(t, 5*time.Minute, lostOn(1, noon))
		if n := r.nodes["n01"]; (n.Labels[HealthLabel] == "failed") == published || (len(r.rules) == 1) != published {
			t.Errorf("published %t: %+v, %+v", published, n, r.rules)
		}
	}
}

// Nodes and single devices have one budget. A node of which several devices are out
// counts once, and many nodes of which a device fails open the breaker.
func TestDeviceBudget(t *testing.T) {
	r := deviceRig(t, 10, "NoSchedule")
	r.policy.Limits.Share, r.policy.Limits.PerHour, r.policy.Breaker.Nodes = 0.2, 100, 100
	r.nodes["n09"].NotReady = true
	listed := []Alert{lostOn(1, noon), alert("Lost", 1, noon, "device", "GPU-7"), lostOn(2, noon.Add(time.Second)), alert("Lost", 2, noon.Add(time.Second), "device", "GPU-7")}
	r.pass(t, time.Minute, listed...)
	if len(r.rules) != 2 || r.device(2, "GPU-0").Withheld != WithheldShare {
		t.Errorf("%+v, %+v", r.rules, r.device(2, "GPU-0"))
	}
	r.policy.Breaker = Breaker{Share: 0.1, Window: time.Hour, Nodes: 3}
	r.pass(t, time.Minute, listed...)
	if p := r.c.Plan().Pools[0]; p.Open {
		t.Errorf("two nodes with four devices open the breaker: %+v", p)
	}
	r.policy.Breaker.Nodes = 2
	r.pass(t, time.Minute, listed...)
	if s := r.device(2, "GPU-0"); s.Withheld != WithheldBreaker || !r.c.Plan().Pools[0].Open {
		t.Errorf("%+v", s)
	}
}

// A rule that was deleted within the hour counts, as a node that was.
func TestDeviceDeleted(t *testing.T) {
	r := deviceRig(t, 10, "NoSchedule")
	r.policy.Limits.PerHour = 2
	r.pass(t, time.Minute, lostOn(1, noon))
	clear(r.rules)
	r.pass(t, time.Minute, lostOn(2, noon), lostOn(3, noon.Add(time.Second)))
	if len(r.rules) != 1 || r.device(3, "GPU-0").Withheld != WithheldHour {
		t.Errorf("%+v, %+v", r.rules, r.device(3, "GPU-0"))
	}
}

// A person holds a device by its node, and admits it by its rule.
func TestDeviceByHand(t *testing.T) {
	r := deviceRig(t, 4, "NoSchedule")
	r.nodes["n02"].Annotations = map[string]string{HoldAnnotation: "yes"}
	r.pass(t, time.Minute, lostOn(1, noon), lostOn(2, noon))
	if s := r.device(2, "GPU-0"); s.Withheld != WithheldHold || len(r.rules) != 1 {
		t.Errorf("%+v", s)
	}
	r.proves.err = errDown
	r.pass(t, 3*time.Minute)
	if s := r.device(1, "GPU-0"); s.Withheld != WithheldExporter || s.Missing != errDown.Error() {
		t.Errorf("%+v", s)
	}
	rule := r.rule(1, "GPU-0")
	delete(r.rules[rule.Name].Annotations, RecordAnnotation)
	r.pass(t, 30*time.Second)
	if len(r.rules) > 0 {
		t.Errorf("a rule without a record has an effect: %+v", r.rules)
	}
	r.pass(t, 2*time.Minute, lostOn(1, r.now)) // waits for the evidence of an exporter that is down
	r.pass(t, 3*time.Minute)
	r.rules[rule.Name].Annotations[AdmitAnnotation] = "tested"
	r.pass(t, 30*time.Second)
	if rule := r.rule(1, "GPU-0"); rule.Taint != (Taint{}) || rule.Annotations[AdmitAnnotation] != "" {
		t.Errorf("%+v", rule)
	}
}

// Requests fail before or after their effect, and processes restart in between. In the
// end each device has one rule, which has its effect once. With every other seed a test
// comes before the return.
func TestDeviceFailures(t *testing.T) {
	for seed := range uint64(40) {
		r := deviceRig(t, 6, "NoSchedule")
		if seed%2 == 1 {
			r = testRig(t, 6, true)
			r.passes = true
		}
		random := rand.New(rand.NewPCG(seed, 2))
		r.policy.Breaker.Nodes = 100
		trouble := true
		r.fails = func(string) (bool, bool) {
			if trouble && random.IntN(12) == 0 {
				r.restart()
			}
			return trouble && random.IntN(3) == 0, trouble && random.IntN(3) == 0
		}
		lost := []Alert{lostOn(1, noon), lostOn(2, noon)}
		r.pass(t, 5*time.Minute, lost...)
		trouble = false
		r.pass(t, time.Minute, lost...)
		for node := 1; node <= 2; node++ {
			rule := r.rule(node, "GPU-0")
			n := Node{Annotations: rule.Annotations}
			if rule.Taint.Effect != "NoSchedule" || n.record() == nil || len(n.history()) != 1 {
				t.Fatalf("seed %d: %+v", seed, rule)
			}
		}
		if len(r.pods) != 4 || len(r.calls) != 2 || len(r.rules) != 2 {
			t.Fatalf("seed %d: pods %v, calls %v", seed, r.pods, r.calls)
		}
		trouble = true
		r.pass(t, 10*time.Minute)
		trouble = false
		r.pass(t, 5*time.Minute)
		for _, rule := range r.rules {
			if rule.Taint != (Taint{}) || rule.Annotations[RecordAnnotation] != "" {
				t.Fatalf("seed %d: %+v", seed, rule)
			}
		}
		if seed%2 == 1 && len(r.jobs) < 2 {
			t.Fatalf("seed %d: tests %v", seed, r.jobs)
		}
		for _, n := range r.nodes {
			if n.Version != "1" {
				t.Fatalf("seed %d: %+v", seed, n)
			}
		}
	}
}

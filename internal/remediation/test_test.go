package remediation

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"
)

// testRig has a policy with a test before the return, of single devices or of nodes.
func testRig(t testing.TB, nodes int, devices bool) *rig {
	t.Helper()
	r := deviceRig(t, nodes, "NoSchedule")
	text := strings.Replace(policyText, "    health: failed\n", "    health: failed\n    test: burn\n", 1)
	if devices {
		text = strings.Replace(text, "    health: failed\n", "    health: failed\n    device: NoSchedule\n", 1)
	}
	text = strings.Replace(text, "hooks: {", "hooks: {burn: {job: burn.yaml, class: gpu}, ", 1)
	p, err := ParsePolicy("policy.yml", []byte(text), nil)
	if err != nil {
		t.Fatal(err)
	}
	r.policy = p
	r.restart()
	return r
}

// job returns the key of the Job of the latest test, empty if there are not that many.
func (r *rig) job(tests int) string {
	if len(r.jobs) != tests {
		return ""
	}
	return slices.Max(slices.Collect(maps.Keys(r.jobs)))
}

// A node or device returns after its test has passed. A test that fails, or during which
// the device does not stay healthy, keeps it out until a person requests another.
func TestReturnAfterTest(t *testing.T) {
	for _, devices := range []bool{false, true} {
		r := testRig(t, 4, devices)
		step := func() Step {
			if devices {
				return r.device(1, "GPU-0")
			}
			return r.step(1)
		}
		annotations := func() map[string]string {
			if devices {
				return r.rule(1, "GPU-0").Annotations
			}
			return r.nodes["n01"].Annotations
		}
		r.pass(t, time.Minute, lostOn(1, noon))
		r.pass(t, 2*time.Minute)
		s := step()
		if s.Withheld != WithheldTest || r.job(1) == "" || annotations()[RecordAnnotation] == "" || s.Missing != "Job "+r.job(1)+" runs" {
			t.Fatalf("devices %v: %+v, %v", devices, s, r.jobs)
		}
		if claim := r.jobs[r.job(1)].Claim; (claim != nil) != devices || devices && (claim.Class != "gpu" || claim.Device.ID != "GPU-0") {
			t.Errorf("devices %v: %+v", devices, claim)
		}
		r.states[r.job(1)] = JobState{Failed: true, Text: "BackoffLimitExceeded"}
		r.restart()
		r.pass(t, 10*time.Minute)
		if s := step(); annotations()[InspectAnnotation] == "" || annotations()[RecordAnnotation] == "" || s.Missing != "Job "+r.job(1)+": BackoffLimitExceeded" || r.job(1) == "" {
			t.Errorf("devices %v, failed: %+v", devices, s)
		}
		delete(annotations(), InspectAnnotation)
		r.pass(t, time.Minute)
		if r.job(2) == "" {
			t.Fatalf("devices %v: no second test: %+v", devices, step())
		}
		r.proves.proof.Devices["GPU-0"] = "degraded"
		r.pass(t, time.Minute)
		if s := step(); annotations()[InspectAnnotation] == "" || s.Missing != "device GPU-0: degraded" {
			t.Errorf("devices %v, not healthy meanwhile: %+v", devices, s)
		}
		r.proves.proof.Devices["GPU-0"] = "healthy"
		delete(annotations(), InspectAnnotation)
		r.pass(t, time.Minute)
		r.states[r.job(3)] = JobState{Passed: true}
		if r.pass(t, time.Minute); annotations()[RecordAnnotation] != "" {
			t.Errorf("devices %v, passed: %+v", devices, step())
		}
	}
}

// Alerts that require different tests require all of them.
func TestEachTest(t *testing.T) {
	r := testRig(t, 4, false)
	r.policy.Hooks["links"], r.policy.Rules[1].Test = Hook{Job: "links.yaml"}, "links"
	r.passes = true
	r.pass(t, 3*time.Minute, alert("Slow", 1, noon), lostOn(1, noon))
	r.pass(t, time.Minute, lostOn(1, noon))
	r.pass(t, 5*time.Minute)
	var hooks []string
	for _, job := range r.jobs {
		hooks = append(hooks, job.Hook)
	}
	if slices.Sort(hooks); !slices.Equal(hooks, []string{"burn", "links"}) || r.nodes["n01"].record() != nil {
		t.Errorf("%v, %+v", hooks, r.step(1))
	}
}

// A device that stays slower under load than the other busy devices of its node does not pass
// its test, unless its power limit explains it.
func TestSlowInTest(t *testing.T) {
	fast, slow := Clock{Share: 0.98}, Clock{Share: 0.6}
	for name, c := range map[string]struct {
		own    []Clock // one for each minute
		others map[string]Clock
		want   string
	}{
		"slow":                    {[]Clock{slow, slow}, map[string]Clock{"GPU-6": slow, "GPU-7": fast}, "GPU-0 had 60 % of its highest SM clock under load, the other busy devices of the node 98 %"},
		"as the others":           {[]Clock{slow, slow}, map[string]Clock{"GPU-7": {Share: 0.62}}, ""},
		"no other device is busy": {[]Clock{slow, slow}, nil, ""},
		"not all the time":        {[]Clock{slow, fast, slow}, map[string]Clock{"GPU-7": fast}, ""},
		"at its power limit":      {[]Clock{{0.6, true}, {0.6, true}}, map[string]Clock{"GPU-7": fast}, ""},
	} {
		r := testRig(t, 4, true)
		r.pass(t, time.Minute, lostOn(1, noon))
		for r.job(1) == "" {
			r.pass(t, 15*time.Second)
		}
		for _, own := range c.own {
			r.proves.proof.Clocks = map[string]Clock{"GPU-0": own}
			maps.Copy(r.proves.proof.Clocks, c.others)
			r.pass(t, time.Minute)
		}
		r.proves.proof.Clocks = nil // idle
		r.states[r.job(1)] = JobState{Passed: true}
		r.pass(t, time.Minute)
		if failed := strings.TrimPrefix(r.device(1, "GPU-0").Missing, "Job "+r.job(1)+": "); failed != c.want || (r.rule(1, "GPU-0").Annotations[RecordAnnotation] != "") != (c.want != "") {
			t.Errorf("%s: %q, %+v", name, failed, r.rule(1, "GPU-0"))
		}
	}
}

// A test from before the alert, also a silenced one, proves nothing. Without the test in the policy the node
// stays out, until a person admits it.
func TestTestIsRequired(t *testing.T) {
	r := testRig(t, 4, false)
	r.pass(t, time.Minute, lostOn(1, noon))
	r.pass(t, 2*time.Minute)
	for i, silenced := range []bool{false, true} {
		r.states[r.job(i+1)] = JobState{Passed: true}
		lost := lostOn(1, noon)
		lost.Suppressed = silenced
		r.pass(t, time.Minute, lost)
		r.pass(t, 3*time.Minute)
		if s := r.step(1); s.Withheld != WithheldTest || r.job(i+2) == "" {
			t.Fatalf("silenced %v: %+v, %v", silenced, s, r.jobs)
		}
	}
	delete(r.policy.Hooks, "burn")
	r.pass(t, 5*time.Minute)
	if s := r.step(1); s.Withheld != WithheldPolicy {
		t.Errorf("%+v", s)
	}
	r.nodes["n01"].Annotations[AdmitAnnotation] = "yes"
	if r.pass(t, time.Minute); r.nodes["n01"].record() != nil {
		t.Errorf("%+v", r.step(1))
	}
}

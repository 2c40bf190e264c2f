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

// A test from before the alert proves nothing. Without the test in the policy the node
// stays out, until a person admits it.
func TestTestIsRequired(t *testing.T) {
	r := testRig(t, 4, false)
	r.pass(t, time.Minute, lostOn(1, noon))
	r.pass(t, 2*time.Minute)
	r.states[r.job(1)] = JobState{Passed: true}
	r.pass(t, time.Minute, lostOn(1, noon))
	r.pass(t, 3*time.Minute)
	if s := r.step(1); s.Withheld != WithheldTest || r.job(2) == "" {
		t.Errorf("%+v, %v", s, r.jobs)
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

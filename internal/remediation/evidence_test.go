package remediation

import (
	"errors"
	"strings"
	"testing"
	"time"
)

// TestEvidence: nothing is done to a node, its pods and its hooks until the evidence of its
// fault is saved, but not longer than the policy says, and the Event has what became of it.
func TestEvidence(t *testing.T) {
	const place = "https://evidence.example/accel-n01.tar.gz, SHA-256 0f"
	for name, c := range map[string]struct {
		evidence Evidence
		err      error
		after    time.Duration // the evidence is sent
		want     time.Duration // when the node is taken out
		text     string
	}{
		"no recorder":             {want: 15 * time.Second},
		"sent in time":            {evidence: Evidence{State: "recording"}, after: time.Minute, want: 75 * time.Second, text: "Evidence sent: " + place + "."},
		"never sent":              {evidence: Evidence{State: "unsent"}, want: 90 * time.Second, text: "was not saved in time: it is unsent."},
		"not written":             {evidence: Evidence{State: "failed"}, want: 15 * time.Second, text: "The evidence of GPU-0 could not be written."},
		"exporter does not reply": {err: errors.New("timeout"), want: 90 * time.Second, text: "No evidence: the exporter does not answer."},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, 4)
			r.proves.proof.Evidence = map[string]Evidence{}
			if c.evidence.State != "" {
				r.proves.proof.Evidence["GPU-0"] = c.evidence
			}
			r.proves.err = c.err
			for elapsed := time.Duration(0); elapsed < 3*time.Minute; elapsed += 15 * time.Second {
				if c.after > 0 && elapsed >= c.after {
					r.proves.proof.Evidence["GPU-0"] = Evidence{"sent", place}
				}
				plan := r.pass(t, 15*time.Second, lostOn(1, noon))
				out := r.nodes["n01"].Labels[HealthLabel] != ""
				if acted := out || r.pods["ml/train-1"] == "" || len(r.calls) > 0; acted != (elapsed+15*time.Second >= c.want) {
					t.Fatalf("after %s: out %t, pods %v, calls %v, %+v", elapsed+15*time.Second, out, r.pods, r.calls, plan.Nodes)
				}
				if !out && plan.Nodes[0].Withheld != WithheldEvidence {
					t.Errorf("withheld by %q", plan.Nodes[0].Withheld)
				}
			}
			for _, note := range r.notes {
				if note.Reason == "AcceleratorsUnhealthy" && (!strings.Contains(note.Message, c.text) || c.text == "" && strings.Contains(note.Message, "vidence")) {
					t.Errorf("the Event has %q; wanted is %q", note.Message, c.text)
				}
			}
		})
	}
}

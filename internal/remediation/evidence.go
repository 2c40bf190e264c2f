package remediation

import (
	"cmp"
	"context"
	"fmt"
	"time"
)

// Evidence is the state of the bundle of evidence of a failed device.
type Evidence struct {
	// State is the label state of accel_device_bundle_timestamp_seconds.
	State string
	// Place is its path or its URL, with its hash.
	Place string
}

// waits reports whether the bundle is being written or sent.
func (e Evidence) waits() bool { return e.State == "recording" || e.State == "unsent" }

// evidenceAge is the age of an alert from which its evidence is not asked for any more:
// limits may withhold an action for days.
const evidenceAge = 10 * time.Minute

// failing returns the nodes and devices that would be taken out as failed, by the times
// since when. A hook may reboot a node, so their evidence is saved first.
func (p *Policy) failing(s *Situation) map[string]*want {
	all, list := p.subjects(s), map[string]*want{}
	wants := p.wants(s, all)
	for i := range all {
		n := &all[i]
		if w := wants[n.key()]; w != nil && w.worsens(n) && s.Now.Sub(w.since) < evidenceAge && p.Evidence > 0 {
			list[n.key()] = w
		}
	}
	return list
}

// worsens reports whether a node is to be failed and is not yet.
func (w *want) worsens(n *Node) bool {
	r := n.record()
	return w.firing && w.health == failed && !n.exempt() && (r == nil || r.Health != failed)
}

// evidence asks the exporters of failing nodes for their evidence, and returns what each
// lacks, by key: text for an Event, and whether to wait.
func (c *Controller) evidence(ctx context.Context, p *Policy, failing map[string]*want, now time.Time) map[string]EvidenceOf {
	nodes := map[string]bool{}
	for _, w := range failing {
		nodes[w.node] = true
	}
	proofs, all := c.ask(ctx, nodes), map[string]EvidenceOf{}
	for key, w := range failing {
		e := proofs[w.node].evidence(w.devices)
		if e.Wait = e.Wait && now.Sub(w.since) < p.Evidence; !e.Wait && e.late != "" {
			e.Text = e.late
		}
		all[key] = e
	}
	return all
}

// EvidenceOf is the evidence of a node or device that is about to be taken out.
type EvidenceOf struct {
	// Wait: it is not saved yet, and may be soon.
	Wait bool
	// Text is for the Event, empty where the exporter keeps no evidence.
	Text string

	late string // the text where there is no more time
}

func (a answer) evidence(devices []string) EvidenceOf {
	if a.err != nil {
		return EvidenceOf{Wait: true, Text: "it is not known whether the evidence is saved: " + a.err.Error(), late: "No evidence: the exporter does not answer."}
	}
	var out EvidenceOf
	for _, id := range devices {
		switch e := a.proof.Evidence[id]; {
		case e.waits():
			return EvidenceOf{Wait: true, Text: fmt.Sprintf("the evidence of %s is %s", id, e.State), late: fmt.Sprintf("The evidence of %s was not saved in time: it is %s.", id, e.State)}
		case e.State == "failed":
			out.Text = fmt.Sprintf("The evidence of %s could not be written.", id)
		case e.State != "":
			out.Text = cmp.Or(out.Text, fmt.Sprintf("Evidence %s: %s.", e.State, e.Place))
		}
	}
	return out
}

package remediation

import (
	"cmp"
	"encoding/json"
	"maps"
	"math"
	"slices"
	"strings"
	"time"
)

// The reasons for which a required action is withheld.
const (
	WithheldHold       = "hold"       // the annotation of a person
	WithheldSuppressed = "suppressed" // the alert is silenced, inhibited, or not listed any more
	WithheldShare      = "share"      // limits.share
	WithheldHour       = "hour"       // limits.per_hour
	WithheldPace       = "pace"       // limits.returns_per_hour
	WithheldBreaker    = "breaker"    // much of the pool fails at once
	WithheldUnknown    = "unknown"    // an Alertmanager that may know the alert does not answer
	WithheldPolicy     = "policy"     // the policy has changed and does not cover what the node is out for
	WithheldExporter   = "exporter"   // the exporter of the node does not answer, or has forgotten the fault
	WithheldSource     = "source"     // a source of the exporter does not answer
	WithheldDevice     = "device"     // a device that the alerts named is not healthy, or another has failed
	WithheldTest       = "test"       // the test before the return has not passed yet
	WithheldEviction   = "eviction"   // NoExecute would evict pods that the alerts do not name
	WithheldEvidence   = "evidence"   // the exporter is writing or sending the evidence of the fault
)

// Withheld lists those reasons.
var Withheld = []string{
	WithheldHold, WithheldSuppressed, WithheldShare, WithheldHour, WithheldPace, WithheldBreaker, WithheldUnknown, WithheldPolicy,
	WithheldExporter, WithheldSource, WithheldDevice, WithheldTest, WithheldEviction, WithheldEvidence,
}

// Plan lists the actions that are due now. As JSON it is the page /debug/plan.
type Plan struct {
	// Time is when it was made.
	Time time.Time `json:"time"`
	// Alertmanagers are whether each Alertmanager answered.
	Alertmanagers map[string]bool `json:"alertmanagers"`
	// Nodes are the nodes that are out or have alerts, by name.
	Nodes []Step `json:"nodes"`
	// Devices are the single devices that are out or have alerts, by node and ID.
	Devices []Step `json:"devices"`
	// Pools are all pools, by name.
	Pools []Pool `json:"pools"`
	// Unknown are the nodes that alerts name and that the cluster does not have.
	Unknown []string `json:"unknown"`
	// WithoutNode are the names of the firing alerts that a rule matches and that have no
	// label with the node.
	WithoutNode []string `json:"withoutNode"`
}

// Step is the part of a plan for one node, or for one device of it.
type Step struct {
	Node Node `json:"node"`
	// Pool is the node's pool, empty for nodes without one.
	Pool string `json:"pool"`
	// Alerts are the names of the alerts that require it.
	Alerts  []string `json:"alerts"`
	Summary string   `json:"summary"`
	// Patch changes the node; it may be empty.
	Patch Patch `json:"patch"`
	// Begins and Ends: the patch takes the node out, or lets it in again.
	Begins bool `json:"begins"`
	Ends   bool `json:"ends"`
	// Failed is when the test before the return failed, zero if it did not.
	Failed time.Time `json:"failed,omitzero"`
	// Inspect: the node was taken out too often.
	Inspect bool `json:"inspect"`
	// Condition is the new condition of the node; zero leaves it.
	Condition Condition `json:"condition,omitzero"`
	// Evict are the pods to evict, Hurt the pods that the alerts name.
	Evict []Pod `json:"evict"`
	Hurt  []Pod `json:"hurt"`
	// Evidence is whether the evidence of the fault is saved, for the Event.
	Evidence string `json:"-"`
	// Devices are the devices that the alerts name.
	Devices []string `json:"devices"`
	// Call are the hooks to call.
	Call []string `json:"call"`
	// Test is the hook whose Job is to be created as the test before the return.
	Test string `json:"test,omitempty"`
	// Since is when the node was taken out.
	Since time.Time `json:"since,omitzero"`
	// Withheld is why an action is withheld, empty if none is. Missing has more of it.
	Withheld string `json:"withheld"`
	Missing  string `json:"missing,omitempty"`
}

// Pool is the state of a pool.
type Pool struct {
	Name string `json:"name"`
	// Nodes counts all nodes, Out the nodes that are out, Down the other nodes that are
	// cordoned or not ready.
	Nodes int `json:"nodes"`
	Out   int `json:"out"`
	Down  int `json:"down"`
	// Devices counts the devices that are out.
	Devices int `json:"devices"`
	// Open: the breaker is open; no further node is taken out.
	Open bool `json:"open"`

	ours map[string]bool // the nodes that are out or have a device out
}

// Situation is what a plan is made from.
type Situation struct {
	Nodes  []Node
	Alerts *Alerts
	// Devices are the devices of DRA drivers, nil if the policy has no rule for them.
	Devices *Devices
	// Deleted counts nodes and devices that were taken out within the last hour and do not
	// show it, because they are deleted.
	Deleted int
	// Missing is what is missing for the return of what Policy.Returning lists, by key.
	Missing map[string]Missing
	// Jobs are the Jobs of the tests that were begun, by key.
	Jobs map[string]JobState
	// Evidence is the evidence of nodes and devices that are about to be taken out as failed,
	// by key.
	Evidence map[string]EvidenceOf
	Now      time.Time
}

// Returning returns the nodes and devices that may return if their exporters prove that
// they are healthy.
func (p *Policy) Returning(s *Situation) (list []Node) {
	subjects := p.subjects(s)
	wants := p.wants(s, subjects)
	for i := range subjects {
		n := &subjects[i]
		if r := n.record(); r != nil && wants[n.key()] == nil && !n.exempt() && p.keeps(n, r, s) == "" && !p.waits(n, s) && !n.admitted() {
			list = append(list, *n)
		}
	}
	return list
}

// Plan returns the actions that are due. Once they are done, the next plan has
// none.
func (p *Policy) Plan(in *Situation) *Plan {
	plan := &Plan{Time: in.Now, Alertmanagers: map[string]bool{}, WithoutNode: p.withoutNode(in.Alerts)}
	subjects := p.subjects(in)
	wants := p.wants(in, subjects)
	sortByAlert(subjects, wants)
	c := p.count(subjects, wants, in.Now)
	c.hour += in.Deleted
	for i := range subjects {
		n := &subjects[i]
		w, r := wants[n.key()], n.record()
		if w == nil && r == nil && !p.forgets(n, in.Now) {
			continue
		}
		s := p.step(n, w, r, in, c)
		if s.Begins {
			c.begin(p.pool(n), n)
		}
		if n.Device == nil {
			plan.Nodes = append(plan.Nodes, s)
		} else {
			plan.Devices = append(plan.Devices, s)
		}
	}
	for _, list := range [][]Step{plan.Nodes, plan.Devices} {
		slices.SortFunc(list, func(a, b Step) int { return strings.Compare(a.Node.key(), b.Node.key()) })
	}
	plan.Pools = c.list()
	for _, w := range wants {
		if !slices.ContainsFunc(in.Nodes, func(n Node) bool { return n.Name == w.node }) {
			plan.Unknown = insert(plan.Unknown, w.node, math.MaxInt)
		}
	}
	return plan
}

// sortByAlert sorts nodes by the time at which their alerts began. Within the limits,
// the first are taken out.
func sortByAlert(nodes []Node, wants map[string]*want) {
	since := func(n *Node) (t time.Time) {
		if w := wants[n.key()]; w != nil {
			t = w.since
		}
		return t
	}
	slices.SortFunc(nodes, func(a, b Node) int {
		return cmp.Or(since(&a).Compare(since(&b)), strings.Compare(a.key(), b.key()))
	})
}

func (p *Policy) pool(n *Node) string { return n.Labels[p.PoolLabel] }

// step decides for one node or device.
func (p *Policy) step(n *Node, w *want, r *Record, in *Situation, c *counts) Step {
	now := in.Now
	s := Step{Node: *n, Pool: p.pool(n)}
	if w != nil {
		s.Alerts, s.Summary, s.Hurt, s.Devices = w.alerts, w.summary, w.hurt, w.devices
	}
	if r != nil {
		s.Since = r.Since
	}
	evidence := in.Evidence[n.key()]
	s.Evidence = evidence.Text
	switch {
	case n.exempt():
		s.Withheld = WithheldHold
	case w == nil && r == nil:
		s.Patch = Patch{Version: n.Version, Delete: true}
	case w == nil:
		p.release(&s, n, r, in, c)
	case !w.firing && w.unknown != "":
		s.Withheld, s.Missing = WithheldUnknown, w.unknown
	case !w.firing:
		if s.Withheld = WithheldSuppressed; r != nil && r.testing() {
			r.Tested = time.Time{} // a silenced alert voids the test too
			s.setRecord(n, r, "")
		}
	case r != nil && rank[w.health] > rank[r.Health] && c.open(p.pool(n)):
		s.Withheld = WithheldBreaker
	case evidence.Wait:
		s.Withheld, s.Missing = WithheldEvidence, evidence.Text
	case r == nil:
		if s.Withheld = c.refuses(p.pool(n), n); s.Withheld == "" {
			p.begin(&s, n, w, now)
			p.act(&s, n, w, nil, c)
		}
	default:
		p.mark(&s, n, w, *r, n.history(), now)
		p.act(&s, n, w, r, c)
	}
	if n.Device != nil && r != nil && s.Patch.Empty() && !n.exempt() {
		s.follow(n, r)
	}
	return s
}

// forgets reports whether the rule of a device that is in is deleted: neither its history
// nor its return counts any more, or it has an effect, because a person has removed its
// record.
func (p *Policy) forgets(n *Node, now time.Time) bool {
	counts := func(t time.Time) bool { return now.Sub(t) <= p.Repeat.Within }
	return n.Device != nil && n.UID != "" && (len(n.Taints) > 0 || !slices.ContainsFunc(n.history(), counts) && !inHour(n.returned(), now))
}

// release decides on a node without an alert.
func (p *Policy) release(s *Step, n *Node, r *Record, in *Situation, c *counts) {
	missing := in.Missing[n.key()]
	switch s.Withheld = p.keeps(n, r, in); {
	case s.Withheld == WithheldUnknown:
		s.Missing = in.Alerts.unheard()
	case s.Withheld != "":
	case p.waits(n, in):
		if s.Missing = r.Failed; r.Failed != "" {
			s.Failed = r.Tested
		}
	case n.admitted():
		p.end(s, n, r, in.Now)
	case missing.Reason == WithheldDevice && r.testing():
		s.failTest(n, r, missing.Text, in.Now)
	case missing.Reason != "":
		s.Withheld, s.Missing = missing.Reason, missing.Text
	case r.Test != "" && !s.tested(n, r, in):
		s.Withheld = WithheldTest
	case c.back >= p.Limits.ReturnsPerHour:
		s.Withheld = WithheldPace
	default:
		p.end(s, n, r, in.Now)
		c.back++
	}
}

// keeps returns why a node without an alert stays out, or "".
func (p *Policy) keeps(n *Node, r *Record, in *Situation) string {
	switch {
	case in.Alerts.unheard() != "":
		return WithheldUnknown
	case (in.Alerts.fires(r.Alerts, n) || n.Device == nil && !p.covers(r) || r.Test != "" && p.Hooks[r.Test].Job == "") && !n.admitted():
		return WithheldPolicy
	}
	return ""
}

// waits reports whether a node without an alert is not considered yet.
func (p *Policy) waits(n *Node, in *Situation) bool {
	return !in.Alerts.settled(in.Now) || n.inspected()
}

// covers reports whether the policy can set every mark of a record. A kubelet can write
// the annotation, so no other mark is undone.
func (p *Policy) covers(r *Record) bool {
	return !slices.ContainsFunc(r.Taints, func(t Taint) bool { return !p.taints(t) }) && (!r.Cordoned || p.cordons())
}

func (p *Policy) taints(t Taint) bool {
	return slices.ContainsFunc(p.Rules, func(rule Rule) bool { return slices.Contains(rule.Taints, t) })
}

func (p *Policy) cordons() bool {
	return slices.ContainsFunc(p.Rules, func(rule Rule) bool { return rule.Cordon })
}

// begin takes a node out.
func (p *Policy) begin(s *Step, n *Node, w *want, now time.Time) {
	s.Begins, s.Since = true, now.UTC().Truncate(time.Second)
	history := slices.DeleteFunc(n.history(), func(t time.Time) bool { return now.Sub(t) > p.Repeat.Within })
	if len(history) > 0 && !w.since.After(n.returned()) {
		// The alert fired all along, such as after a slip of the policy: the same fault.
		history = history[:len(history)-1]
	}
	history = append(history, s.Since)
	s.Inspect = len(history) >= p.Repeat.Count
	p.mark(s, n, w, Record{Since: s.Since, Fired: w.since}, history, now)
}

// mark brings the marks of a node up to date. While any alert remains, it removes
// no mark of a resolved alert. The label alone follows the current alerts.
func (p *Policy) mark(s *Step, n *Node, w *want, r Record, history []time.Time, now time.Time) {
	after := *n
	after.Labels, after.Annotations = maps.Clone(n.Labels), maps.Clone(n.Annotations)
	after.Taints = slices.Clone(n.Taints)
	put(&after.Labels, HealthLabel, w.health)
	r.Alerts, r.Health = w.alerts, w.health
	r.Tested, r.Failed = time.Time{}, "" // a test from before the alert proves nothing
	for _, test := range w.tests {
		r.Tests = insert(r.Tests, test, maxNames)
	}
	if len(r.Tests) > 0 {
		r.Test = r.Tests[0]
	}
	for _, id := range w.devices { // also of an alert that is resolved before the others
		r.Devices = insert(r.Devices, id, maxDevices)
	}
	if n.Device != nil {
		r.Taints = s.deviceTaint(n, w, &r, now)
		after.Taints = r.Taints
	}
	for _, t := range append(slices.Clone(r.Taints), w.taints...) {
		if !slices.ContainsFunc(after.Taints, t.same) {
			after.Taints = append(after.Taints, t)
			if !slices.ContainsFunc(r.Taints, t.same) {
				r.Taints = append(r.Taints, t)
			}
		}
	}
	if (w.cordon || r.Cordoned) && !n.Unschedulable {
		after.Unschedulable, r.Cordoned = true, true
	}
	if w.condition || r.Condition {
		r.Condition = true
		s.Condition = Condition{"False", strings.Join(w.alerts, "And"), w.summary}
	}
	put(&after.Annotations, RecordAnnotation, text(r))
	if len(history) == 0 { // a person removed the annotation
		history = []time.Time{r.Since}
	}
	put(&after.Annotations, HistoryAnnotation, text(history))
	if s.Inspect {
		put(&after.Annotations, InspectAnnotation, "required")
	}
	s.change(n, &after)
}

// end lets a node in again. It undoes the changes of the record and leaves the changes
// of people.
func (p *Policy) end(s *Step, n *Node, r *Record, now time.Time) {
	after := *n
	after.Labels, after.Annotations = maps.Clone(n.Labels), maps.Clone(n.Annotations)
	s.Ends = true
	if after.Labels[HealthLabel] == r.Health {
		delete(after.Labels, HealthLabel)
	}
	after.Taints = slices.DeleteFunc(slices.Clone(n.Taints), func(t Taint) bool {
		return n.Device != nil || slices.Contains(r.Taints, t) && p.taints(t)
	})
	if r.Cordoned && p.cordons() {
		after.Unschedulable = false
	}
	if r.Condition {
		s.Condition = Condition{"True", "NoAlert", "No alert requires an action."}
	}
	delete(after.Annotations, RecordAnnotation)
	delete(after.Annotations, AdmitAnnotation)
	put(&after.Annotations, ReturnedAnnotation, text(now.UTC().Truncate(time.Second)))
	s.change(n, &after)
}

// act plans evictions and calls. There are no calls for a node that fails
// repeatedly, and neither for a pool whose breaker is open: a person decides.
func (p *Policy) act(s *Step, n *Node, w *want, r *Record, c *counts) {
	if c.open(p.pool(n)) {
		if len(w.evict) > 0 || len(w.calls) > 0 {
			s.Withheld = cmp.Or(s.Withheld, WithheldBreaker)
		}
		return
	}
	s.Evict = w.evict
	if s.Inspect || n.inspected() {
		return
	}
	for _, hook := range w.calls {
		if r == nil || !slices.Contains(r.Called, hook) {
			s.Call = append(s.Call, hook)
		}
	}
}

// recordCalls returns the patch that records calls of hooks, nil if the node has
// no record.
func recordCalls(n *Node, hooks []string) *Patch {
	r := n.record()
	if r == nil {
		return nil
	}
	for _, hook := range hooks {
		if !slices.Contains(r.Called, hook) {
			r.Called = append(r.Called, hook)
		}
	}
	record := text(r)
	return &Patch{Version: n.Version, Annotations: map[string]*string{RecordAnnotation: &record}}
}

// change sets the patch of the step to the difference.
func (s *Step) change(was, is *Node) {
	if was.Device != nil && was.Device.Another {
		is.Taints = nil
	}
	s.Patch = Patch{
		Version:     was.Version,
		Labels:      difference(was.Labels, is.Labels, HealthLabel),
		Annotations: difference(was.Annotations, is.Annotations, RecordAnnotation, HistoryAnnotation, InspectAnnotation, ReturnedAnnotation, AdmitAnnotation),
	}
	if !slices.Equal(was.Taints, is.Taints) {
		s.Patch.Taints = &is.Taints
	}
	if was.Device != nil && was.Device.Selects != was.Device.Place {
		s.Patch.Selects = &was.Device.Place
	}
	if was.Unschedulable != is.Unschedulable {
		s.Patch.Unschedulable = &is.Unschedulable
	}
	// A message may contain a measured value, which changes all the time.
	if was.Condition.Status == s.Condition.Status && was.Condition.Reason == s.Condition.Reason {
		s.Condition = Condition{}
	}
}

func put(m *map[string]string, key, value string) {
	if *m == nil {
		*m = map[string]string{}
	}
	(*m)[key] = value
}

// text returns a value as the content of an annotation.
func text(v any) string {
	data, err := json.Marshal(v)
	if err != nil {
		panic(err) // cannot happen for the types of this package
	}
	return string(data)
}

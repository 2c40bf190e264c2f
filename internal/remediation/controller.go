package remediation

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Source lists the firing alerts.
type Source interface {
	// List returns the answer of each Alertmanager, in the same order in each pass.
	List(ctx context.Context) []Answer
}

// Options make a Controller.
type Options struct {
	Cluster Cluster
	Alerts  Source
	Policy  *Policy
	Prover  Prover
	// Taken is when nodes and devices were taken out within the last hour, by their IDs.
	// The next leader continues with it, because a deleted node has no annotations.
	Taken *atomic.Pointer[map[string]time.Time]
	// Call calls a hook that has a URL.
	Call func(ctx context.Context, url string, c *Call) error
	// Act enables changes. Without it, the plan is only reported.
	Act bool
	// Interval is the longest time between two passes.
	Interval time.Duration
	Log      *slog.Logger
	// Now is the clock, by default time.Now.
	Now func() time.Time
}

// Controller keeps the nodes in the state that the alerts require. It runs in
// one process of the cluster at a time.
type Controller struct {
	o       Options
	alerts  *Alerts
	trigger chan struct{}
	plan    atomic.Pointer[Plan]
	policy  atomic.Pointer[Policy]
	noted   map[string]time.Time // keys of created notes, with their times
	called  map[string]time.Time // keys of calls that succeeded, with their times
	logged  map[string]logEntry  // the last message, by its subject
	took    map[string]time.Time // Options.Taken, of this pass
	slow    map[string]slow      // by test and device
	passes  int
	actions *prometheus.CounterVec
}

// New returns a Controller that does nothing yet.
func New(o Options) *Controller {
	if o.Now == nil {
		o.Now = time.Now
	}
	c := &Controller{o: o, trigger: make(chan struct{}, 1), actions: newActions()}
	c.policy.Store(o.Policy)
	return c
}

// Trigger starts a pass soon, because something may have changed. It never
// blocks; several calls may cause one pass.
func (c *Controller) Trigger() {
	select {
	case c.trigger <- struct{}{}:
	default:
	}
}

// Apply puts another policy into force.
func (c *Controller) Apply(p *Policy) {
	c.policy.Store(p)
	c.Trigger()
}

// Plan returns the latest plan, nil before the first.
func (c *Controller) Plan() *Plan { return c.plan.Load() }

// pause is the shortest time between two passes. It bounds the load on the API
// server under constant triggers.
const pause = time.Second

// Run makes passes until ctx is done. It drops the state of an earlier Run,
// because no alerts were listed while another process led.
func (c *Controller) Run(ctx context.Context) {
	c.alerts = NewAlerts(c.policy.Load().Settle, c.o.Now())
	c.clear()
	tick := time.NewTicker(c.o.Interval)
	defer tick.Stop()
	for {
		c.pass(ctx)
		rest := time.NewTimer(pause)
		select {
		case <-rest.C:
		case <-ctx.Done():
			rest.Stop()
			return
		}
		select {
		case <-c.trigger:
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

func (c *Controller) clear() {
	c.noted, c.called, c.took = map[string]time.Time{}, map[string]time.Time{}, map[string]time.Time{}
	c.logged, c.slow = map[string]logEntry{}, map[string]slow{}
	if taken := c.o.Taken.Load(); taken != nil {
		maps.Copy(c.took, *taken)
	}
}

// passTimeout bounds each pass.
const passTimeout = time.Minute

// pass lists alerts and nodes, makes a plan and executes it.
func (c *Controller) pass(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, passTimeout)
	defer cancel()
	c.passes++
	began := c.o.Now()
	policy := c.policy.Load()
	c.alerts.settle = policy.Settle
	answers := c.o.Alerts.List(ctx)
	c.alerts.Listed(began, answers)
	for _, a := range answers {
		if a.Err != nil {
			c.o.Log.Warn("Cannot list alerts; nodes whose alerts only this Alertmanager knows stay out", "alertmanager", a.Alertmanager, "err", a.Err)
		}
	}
	now := &Situation{Nodes: c.o.Cluster.Nodes(), Alerts: c.alerts, Now: began}
	if policy.devices() {
		if now.Devices = c.o.Cluster.Devices(ctx); now.Devices.Err != nil {
			c.o.Log.Warn("Devices of DRA drivers are not known; nothing is done for alerts of rules with device", "err", now.Devices.Err)
		}
		c.done("devices", map[bool]string{true: "done", false: "error"}[now.Devices.Err == nil])
	}
	subjects := policy.subjects(now)
	now.Deleted = c.deleted(subjects, began)
	returning := policy.Returning(now)
	now.Jobs = c.testJobs(ctx, returning) // before the proofs, which cover the whole test then
	now.Missing = c.prove(ctx, returning, now.Jobs)
	now.Evidence = c.evidence(ctx, policy, policy.failing(now), began)
	plan := policy.Plan(now)
	for _, a := range answers {
		plan.Alertmanagers[a.Alertmanager] = a.Err == nil
	}
	c.plan.Store(plan)
	for _, s := range plan.steps() {
		c.logStep(s)
		if c.o.Act && ctx.Err() == nil {
			c.do(ctx, policy, s)
		}
	}
	for i := range subjects {
		if c.o.Act && ctx.Err() == nil {
			c.noteReturn(ctx, &subjects[i])
		}
	}
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		c.o.Log.Warn("The pass was cut off; the next one goes on", "timeout", passTimeout)
	}
	if len(plan.WithoutNode) > 0 {
		c.logOnce("without node", "Alerts have no label with their node; nothing is done for them", "label", policy.NodeLabel, "alerts", plan.WithoutNode)
	}
	for _, node := range plan.Unknown {
		c.logOnce(node, "Alerts name a node that does not exist", "node", node)
	}
	c.forget(began)
}

// deleted counts the nodes and devices that were taken out within the last hour and do not
// show it: they are deleted, as by an autoscaler that replaces them, or were listed before.
func (c *Controller) deleted(nodes []Node, now time.Time) int {
	gone := maps.Clone(c.took)
	for i := range nodes {
		n := &nodes[i]
		if times := n.history(); len(times) > 0 && !times[len(times)-1].Before(c.took[n.id()]) {
			c.took[n.id()] = times[len(times)-1]
			delete(gone, n.id())
		}
	}
	old := func(_ string, t time.Time) bool { return !inHour(t, now) }
	maps.DeleteFunc(c.took, old)
	maps.DeleteFunc(gone, old)
	taken := maps.Clone(c.took)
	c.o.Taken.Store(&taken)
	return len(gone)
}

// do executes the plan of one node. The next pass plans again what fails.
func (c *Controller) do(ctx context.Context, p *Policy, s *Step) {
	if s.Ends {
		c.end(ctx, s)
		return
	}
	if !c.patch(ctx, s) || !c.condition(ctx, s) {
		return
	}
	c.note(ctx, s)
	for i := range s.Evict {
		how, err := c.o.Cluster.Evict(ctx, s.Node.Name, &s.Evict[i])
		c.evicted(s, &s.Evict[i], how, err)
	}
	if s.Test != "" {
		c.test(ctx, p, s)
	}
	if s.Patch.Empty() { // else the version for the record of a call is out of date
		c.call(ctx, p, s)
	} else if len(s.Call) > 0 {
		c.Trigger()
	}
}

// end lets a node in. The record is written before everything that it describes
// and removed after it, so that an interrupted process can go on.
func (c *Controller) end(ctx context.Context, s *Step) {
	if s.Condition != (Condition{}) {
		if c.condition(ctx, s) {
			c.Trigger() // the node has a new version
		}
		return
	}
	c.patch(ctx, s)
}

// patch reports whether the node is as planned.
func (c *Controller) patch(ctx context.Context, s *Step) bool {
	if s.Patch.Empty() {
		return true
	}
	err := c.o.Cluster.Patch(ctx, &s.Node, &s.Patch)
	c.result(s, action(s), err)
	if err == nil && s.Begins {
		c.took[s.Node.id()] = s.Since
	}
	return err == nil
}

func (c *Controller) condition(ctx context.Context, s *Step) bool {
	if s.Condition == (Condition{}) {
		return true
	}
	err := c.o.Cluster.SetCondition(ctx, s.Node.Name, s.Condition)
	c.result(s, "condition", err)
	return err == nil
}

// action returns the label value for a patch.
func action(s *Step) string {
	switch {
	case s.Begins:
		return "take_out"
	case s.Ends:
		return "let_in"
	case s.Patch.Delete:
		return "forget"
	}
	return "mark"
}

func (c *Controller) result(s *Step, action string, err error) {
	switch {
	case err == nil:
		c.done(action, "done")
		c.o.Log.Info("Action done", "action", action, "node", s.Node.Name, "device", s.Node.device(), "alerts", s.Alerts)
	case errors.Is(err, ErrConflict):
		c.done(action, "conflict")
		c.logOnce(s.Node.key()+"/conflict", "Action not done: the node or device has changed since it was read", "action", action, "node", s.Node.Name, "device", s.Node.device())
		c.Trigger()
	default:
		c.done(action, "error")
		c.o.Log.Error("Action failed", "action", action, "node", s.Node.Name, "device", s.Node.device(), "err", err)
	}
}

func (c *Controller) evicted(s *Step, p *Pod, how Eviction, err error) {
	switch {
	case err != nil:
		c.done("evict", "error")
		c.o.Log.Error("Eviction failed", "namespace", p.Namespace, "pod", p.Name, "node", s.Node.Name, "err", err)
	case how == Evicted:
		c.done("evict", "done")
		c.o.Log.Info("Pod evicted", "namespace", p.Namespace, "pod", p.Name, "node", s.Node.Name, "alert", p.Alert)
	case how == EvictBudget:
		c.done("evict", "refused")
		c.logOnce(s.Node.Name+"/"+p.Namespace+"/"+p.Name, "A disruption budget refuses the eviction of a pod", "namespace", p.Namespace, "pod", p.Name)
	case how == EvictKept:
		c.logOnce(s.Node.Name+"/"+p.Namespace+"/"+p.Name, "A pod is not evicted because it would be restarted on the node", "namespace", p.Namespace, "pod", p.Name)
	}
}

// call calls the hooks and then records that on the node. A call that could not
// be recorded may be repeated, with the same key.
func (c *Controller) call(ctx context.Context, p *Policy, s *Step) {
	var called []string
	for _, name := range s.Call {
		call := &Call{
			Key:  fmt.Sprintf("%s-%d-%s", s.Node.callKey(), s.Since.Unix(), name),
			Hook: name, Node: s.Node.Name, Since: s.Since, Alerts: s.Alerts, Devices: s.Devices,
		}
		if _, ok := c.called[call.Key]; !ok { // the listed node may lack the record
			err := c.callHook(ctx, p.Hooks[name], call)
			c.result(s, "call", err)
			if err != nil {
				continue
			}
			c.called[call.Key] = c.o.Now()
		}
		called = append(called, name)
	}
	if len(called) == 0 {
		return
	}
	if patch := recordCalls(&s.Node, called); patch != nil {
		if err := c.o.Cluster.Patch(ctx, &s.Node, patch); err != nil {
			c.logOnce(s.Node.key()+"/called", "The call of a hook is not recorded on the node yet", "node", s.Node.Name, "err", err)
		}
	}
}

func (c *Controller) callHook(ctx context.Context, h Hook, call *Call) error {
	if h.Job != "" {
		return c.o.Cluster.MakeJob(ctx, h.Job, call)
	}
	return c.o.Call(ctx, h.URL, call)
}

package remediation

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"
)

// Source lists the alerts that fire.
type Source interface {
	// List returns the alerts of all that answered, and an error where none did.
	List(ctx context.Context) ([]Alert, error)
}

// Options make a Controller.
type Options struct {
	Cluster Cluster
	Alerts  Source
	Policy  *Policy
	// Call tells a hook that has a URL.
	Call func(ctx context.Context, url string, c *Call) error
	// Act is whether anything is done. Where it is not, the plan is told only.
	Act bool
	// Interval is the time between two passes without a reason, 15 s where zero.
	Interval time.Duration
	// Timeout bounds each pass, a minute where zero.
	Timeout time.Duration
	Log     *slog.Logger
	// Now is the clock; time.Now where nil.
	Now func() time.Time
}

// Controller keeps the nodes in the state that the alerts ask for. It runs in
// one process of the cluster at a time.
type Controller struct {
	o      Options
	alerts *Alerts
	bell   chan struct{}
	plan   atomic.Pointer[Plan]
	policy atomic.Pointer[Policy]
	noted  map[string]time.Time // keys of notes, and when they were made
	owed   map[string]*Note     // notes that could not be made yet, by key
	told   map[string]time.Time // keys of calls, and when they were made
	said   map[string]saying    // by node or pod, what was said of it last
	passes int
	m      *metrics
}

// New returns a Controller that does nothing yet.
func New(o Options) *Controller {
	if o.Interval <= 0 {
		o.Interval = 15 * time.Second
	}
	if o.Timeout <= 0 {
		o.Timeout = time.Minute
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	c := &Controller{o: o, bell: make(chan struct{}, 1), m: newMetrics(o.Act)}
	c.policy.Store(o.Policy)
	return c
}

// Ring has a pass begin soon: something may have changed. It never blocks, and
// many rings are one.
func (c *Controller) Ring() {
	select {
	case c.bell <- struct{}{}:
	default:
	}
}

// Apply puts another policy into force.
func (c *Controller) Apply(p *Policy) {
	c.policy.Store(p)
	c.Ring()
}

// Plan returns the latest plan, nil before the first.
func (c *Controller) Plan() *Plan { return c.plan.Load() }

// pause is the least time between two passes: what rings all the time must not
// make the API server sweat.
const pause = time.Second

// Run makes passes until ctx is done. It forgets what an earlier Run knew: as
// long as another process led, alerts were not listed here.
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
		case <-c.bell:
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

func (c *Controller) clear() {
	c.noted, c.owed = map[string]time.Time{}, map[string]*Note{}
	c.told, c.said = map[string]time.Time{}, map[string]saying{}
}

// pass lists, plans and does.
func (c *Controller) pass(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, c.o.Timeout)
	defer cancel()
	c.passes++
	began := c.o.Now()
	policy := c.policy.Load()
	c.alerts.settle = policy.Settle
	list, err := c.o.Alerts.List(ctx)
	c.m.listed(err == nil)
	if err != nil {
		c.o.Log.Warn("Alerts cannot be listed; nothing is begun and nothing undone", "err", err)
		c.alerts.Missed()
	} else {
		c.alerts.Listed(began, list)
	}
	nodes, err := c.o.Cluster.Nodes(ctx)
	if err != nil {
		c.o.Log.Warn("Nodes cannot be listed", "err", err)
		c.m.failed.WithLabelValues().Inc()
		return
	}
	plan := policy.Plan(nodes, c.alerts, began)
	if !c.o.Act {
		c.foresee(ctx, plan)
	}
	c.plan.Store(plan)
	c.m.planned(plan)
	c.repay(ctx)
	for i := range plan.Nodes {
		c.tell(&plan.Nodes[i])
		if c.o.Act && ctx.Err() == nil {
			c.do(ctx, policy, &plan.Nodes[i])
		}
	}
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		c.o.Log.Warn("The pass took too long; what it has not done is left to the next", "timeout", c.o.Timeout)
	}
	for _, node := range plan.Unknown {
		c.once(node, "Alerts name a node that the cluster does not have", "node", node)
	}
	c.forget(began)
	c.m.passed(began, c.o.Now())
}

// foresee finds out which pods of a dry run a disruption budget would keep.
func (c *Controller) foresee(ctx context.Context, plan *Plan) {
	for i := range plan.Nodes {
		s := &plan.Nodes[i]
		for _, pod := range s.Evict {
			how, err := c.o.Cluster.Evict(ctx, s.Node.Name, &pod, true)
			if err != nil {
				c.once(s.Node.Name+"/dry", "Whether a pod could be evicted is not known", "node", s.Node.Name, "err", err)
				return
			}
			if how == EvictBudget {
				s.Refused = append(s.Refused, pod)
			}
		}
	}
}

// do does what is planned for one node. What fails is planned again.
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
		how, err := c.o.Cluster.Evict(ctx, s.Node.Name, &s.Evict[i], false)
		c.evicted(s, &s.Evict[i], how, err)
	}
	if s.Patch.Empty() { // the record of a call goes onto the node as it is now
		c.call(ctx, p, s)
	} else if len(s.Call) > 0 {
		c.Ring()
	}
}

// end lets a node in. The record goes onto the node before all that it speaks
// of, and off it after: whoever is ended in between finds it and goes on.
func (c *Controller) end(ctx context.Context, s *Step) {
	if s.Condition != (Condition{}) {
		if c.condition(ctx, s) {
			c.Ring() // the node has another version now
		}
		return
	}
	c.note(ctx, s)
	c.patch(ctx, s)
}

// patch reports whether the node's record is as planned.
func (c *Controller) patch(ctx context.Context, s *Step) bool {
	if s.Patch.Empty() {
		return true
	}
	err := c.o.Cluster.Patch(ctx, s.Node.Name, &s.Patch)
	c.result(s, action(s), err)
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

// action names what a patch does.
func action(s *Step) string {
	switch {
	case s.Begins:
		return "take_out"
	case s.Ends:
		return "let_in"
	}
	return "mark"
}

func (c *Controller) result(s *Step, action string, err error) {
	switch {
	case err == nil:
		c.m.done(action, "done")
		c.o.Log.Info("Done", "action", action, "node", s.Node.Name, "alerts", s.Alerts)
	case errors.Is(err, ErrConflict):
		c.m.done(action, "conflict")
		c.once(s.Node.Name+"/conflict", "Not done, since the node has changed meanwhile", "action", action, "node", s.Node.Name)
		c.Ring()
	default:
		c.m.done(action, "error")
		c.o.Log.Error("Not done", "action", action, "node", s.Node.Name, "err", err)
	}
}

func (c *Controller) evicted(s *Step, p *Pod, how Eviction, err error) {
	switch {
	case err != nil:
		c.m.done("evict", "error")
		c.o.Log.Error("Not evicted", "namespace", p.Namespace, "pod", p.Name, "node", s.Node.Name, "err", err)
	case how == Evicted:
		c.m.done("evict", "done")
		c.o.Log.Info("Evicted", "namespace", p.Namespace, "pod", p.Name, "node", s.Node.Name, "alert", p.Alert)
	case how == EvictBudget:
		c.m.done("evict", "refused")
		c.once(s.Node.Name+"/"+p.Namespace+"/"+p.Name, "A disruption budget keeps a pod on the node", "namespace", p.Namespace, "pod", p.Name)
	case how == EvictKept:
		c.once(s.Node.Name+"/"+p.Namespace+"/"+p.Name, "A pod is left alone that would be started there again", "namespace", p.Namespace, "pod", p.Name)
	}
}

// call tells the hooks, and then writes down that they were told. One that is
// told again, since that could not be written down, sees the same key.
func (c *Controller) call(ctx context.Context, p *Policy, s *Step) {
	var told []string
	for _, name := range s.Call {
		call := &Call{
			Key:  fmt.Sprintf("%s-%d-%s", s.Node.Name, s.Since.Unix(), name),
			Hook: name, Node: s.Node.Name, Since: s.Since, Alerts: s.Alerts, Devices: s.Devices,
		}
		if _, ok := c.told[call.Key]; !ok { // the node may still be listed as it was before
			err := c.tellHook(ctx, p.Hooks[name], call)
			c.result(s, "call", err)
			if err != nil {
				continue
			}
			c.told[call.Key] = c.o.Now()
		}
		told = append(told, name)
	}
	if len(told) == 0 {
		return
	}
	if patch := Told(&s.Node, told); patch != nil {
		if err := c.o.Cluster.Patch(ctx, s.Node.Name, patch); err != nil {
			c.once(s.Node.Name+"/told", "A hook was told, and that could not be written down yet", "node", s.Node.Name, "err", err)
		}
	}
}

func (c *Controller) tellHook(ctx context.Context, h Hook, call *Call) error {
	if h.Job != "" {
		return c.o.Cluster.MakeJob(ctx, h.Job, call)
	}
	return c.o.Call(ctx, h.URL, call)
}

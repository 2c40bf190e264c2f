//go:build linux && cgo

package dcgm

import (
	"context"

	"github.com/NVIDIA/go-dcgm/pkg/dcgm"

	"github.com/accel-exporter/accel-exporter/collector"
)

// policies are DCGM's conditions with the events that report them.
var policies = []struct {
	condition dcgm.PolicyCondition
	event     collector.EventKind
}{
	{dcgm.XidPolicy, collector.EventXid},
	{dcgm.DbePolicy, collector.EventPolicyDBE},
	{dcgm.PCIePolicy, collector.EventPolicyPCIe},
	{dcgm.NvlinkPolicy, collector.EventPolicyNVLink},
	{dcgm.MaxRtPgPolicy, collector.EventPolicyPages},
	{dcgm.ThermalPolicy, collector.EventPolicyThermal},
	{dcgm.PowerPolicy, collector.EventPolicyPower},
}

// policy subscribes to policy violations.
type policy struct {
	group  dcgm.GroupHandle
	cancel context.CancelFunc
	done   chan struct{}
	// left is the group of an earlier registration, which go-dcgm ends
	// asynchronously. It is destroyed at the next start.
	left *dcgm.GroupHandle
}

// start subscribes for the current GPUs. Policies that are set at the host
// engine are left as they are: a condition that is added would get their
// action, which may be a reset.
func (p *policy) start(e *engine) code {
	p.close()
	if p.left != nil {
		e.destroyGroup(*p.left)
		p.left = nil
	}
	if !e.options.Policy || len(e.there.gpus) == 0 {
		return ok
	}
	for _, symbol := range []string{"dcgmPolicyGet", "dcgmPolicySet", "dcgmPolicyRegister_v2", "dcgmPolicyUnregister", "dcgmGroupGetInfo"} {
		if !has(symbol) {
			e.calls.count(symbol, functionNotFound)
			return ok
		}
	}
	g, taken, c := e.makeGroup(e.there.gpus)
	if c != ok {
		return only(c)
	}
	conditions, c := p.conditions(e, g)
	if c == ok && len(conditions) > 0 {
		var violations <-chan dcgm.PolicyViolation
		ctx, cancel := context.WithCancel(context.Background())
		var err error
		violations, err = dcgm.WatchPolicyViolationsForGroup(ctx, g, conditions...)
		if c = e.lib.code(err); e.calls.count("dcgmPolicyRegister_v2", c) {
			*p = policy{group: g, cancel: cancel, done: make(chan struct{})}
			go forward(violations, e.names(taken), e.emit, p.done)
			return ok
		}
		cancel()
	}
	e.destroyGroup(g)
	return only(c)
}

// only returns c where it ends the connection. The failure of a policy does not
// end the round.
func only(c code) code {
	if c.gone() {
		return c
	}
	return ok
}

// conditions returns the conditions to subscribe to: those that are set, else
// those that the exporter sets.
func (p *policy) conditions(e *engine, g dcgm.GroupHandle) ([]dcgm.PolicyCondition, code) {
	status, err := dcgm.GetPolicyForGroup(g)
	c := e.lib.code(err)
	if c != ok && c != notConfigured && c != insufficientSize {
		e.calls.count("dcgmPolicyGet", c)
		return nil, c
	}
	var list []dcgm.PolicyCondition
	if c == ok {
		for condition := range status.Conditions {
			list = append(list, condition)
		}
	}
	if len(list) > 0 {
		return list, ok
	}
	configs := e.policyConfigs()
	c = e.lib.code(dcgm.SetPolicyForGroup(g, configs...))
	if !e.calls.count("dcgmPolicySet", c) {
		return nil, c
	}
	for _, config := range configs {
		list = append(list, config.Condition)
	}
	return list, ok
}

// policyConfigs are the policies for a host engine that has none: no action;
// the limits are the lowest slowdown temperature and the highest power limit of
// the boards plus a tenth.
func (e *engine) policyConfigs() []dcgm.PolicyConfig {
	list := []dcgm.PolicyConfig{{Condition: dcgm.XidPolicy}, {Condition: dcgm.DbePolicy}, {Condition: dcgm.PCIePolicy}, {Condition: dcgm.NvlinkPolicy}, {Condition: dcgm.MaxRtPgPolicy}}
	slowdown, limit := 0.0, 0.0
	for _, g := range e.there.gpus {
		d := e.devices[g]
		if d == nil {
			continue
		}
		if d.slowdown > 0 && (slowdown == 0 || d.slowdown < slowdown) {
			slowdown = d.slowdown
		}
		limit = max(limit, d.powerLimit)
	}
	if slowdown > 0 {
		celsius := uint32(slowdown)
		list = append(list, dcgm.PolicyConfig{Condition: dcgm.ThermalPolicy, MaxTemperature: &celsius})
	}
	if limit > 0 {
		watts := uint32(limit * 1.1)
		list = append(list, dcgm.PolicyConfig{Condition: dcgm.PowerPolicy, MaxPower: &watts})
	}
	return list
}

// names returns the IDs of GPUs by the host engine's number.
func (e *engine) names(list []entity) map[uint]string {
	ids := map[uint]string{}
	for _, x := range list {
		if d := e.devices[x]; d != nil {
			ids[uint(x.id)] = d.identity.ID
		}
	}
	return ids
}

// forward turns violations into events until the channel ends.
func forward(violations <-chan dcgm.PolicyViolation, ids map[uint]string, emit func(collector.Event), done chan<- struct{}) {
	defer close(done)
	for v := range violations {
		if ev := event(v); ev.Kind != "" && ids[v.GPU] != "" {
			ev.Device = ids[v.GPU]
			emit(ev)
		}
	}
}

// event converts a violation. Code is the number of an Xid, else the value that
// DCGM counted or measured.
func event(v dcgm.PolicyViolation) collector.Event {
	e := collector.Event{Source: Name, Time: v.Timestamp}
	for _, p := range policies {
		if p.condition == v.Condition {
			e.Kind = p.event
		}
	}
	switch data := v.Data.(type) {
	case dcgm.XidPolicyCondition:
		e.Code = uint64(data.ErrNum)
	case dcgm.DbePolicyCondition:
		e.Code = uint64(data.NumErrors)
	case dcgm.PciPolicyCondition:
		e.Code = uint64(data.ReplayCounter)
	case dcgm.NvlinkPolicyCondition:
		e.Code = uint64(data.Counter)
	case dcgm.RetiredPagesPolicyCondition:
		e.Code = uint64(data.SbePages) + uint64(data.DbePages)
	case dcgm.ThermalPolicyCondition:
		e.Code = uint64(data.ThermalViolation)
	case dcgm.PowerPolicyCondition:
		e.Code = uint64(data.PowerViolation)
	}
	return e
}

// close ends the registration.
func (p *policy) close() {
	if p.cancel == nil {
		return
	}
	p.cancel()
	<-p.done
	group := p.group
	*p = policy{left: &group}
}

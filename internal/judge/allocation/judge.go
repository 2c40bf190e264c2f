package allocation

import (
	"slices"
	"sync"

	"github.com/accel-exporter/accel-exporter/collector"
	"github.com/accel-exporter/accel-exporter/podmap"
)

// Judge adds the families accel_allocation_*, accel_podmap_* and related ones
// to every Snapshot. It implements collector.Judge and comes after the judge
// of health, whose verdicts its Report repeats. Its methods may be called at
// any time by any goroutine.
type Judge struct {
	options Options

	mu        sync.Mutex // guards the fields below
	node      node
	join      *join     // who has a device
	activity  activity  // the use of devices by pods
	publisher publisher // the series of both
	meta      podMeta   // the series of the API server's data
}

// New returns a Judge.
func New(o Options, s Settings) *Judge {
	j := &Judge{options: o, node: node{devices: map[string]*device{}}}
	j.join = newJoin(&j.node, &j.options)
	j.activity = activity{
		node: &j.node, join: j.join, uses: podUses{of: map[podmap.Pod]int{}},
		owners: owners{proc: o.Proc, dirs: o.PodDirs, meta: o.Meta, known: map[int]*process{}},
	}
	j.publisher = publisher{node: &j.node, join: j.join, options: &j.options}
	j.Apply(s)
	return j
}

// Apply replaces the settings from the next Snapshot on. Counters and idle
// periods continue.
func (j *Judge) Apply(s Settings) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if s.MaxHolders <= 0 {
		s.MaxHolders = DefaultSettings().MaxHolders
	}
	j.node.settings = s
	j.join.apply(s)
}

// Judge implements collector.Judge.
func (j *Judge) Judge(s *collector.Snapshot) {
	j.mu.Lock()
	defer j.mu.Unlock()
	n := &j.node
	n.previous, n.now = n.now, s.Time
	n.round++
	n.released = slices.ContainsFunc(s.Sources, func(x collector.Status) bool { return x.Released })
	refresh := j.join.follow(n.updateDevices(s))
	for i := range s.News {
		refresh = n.event(&s.News[i]) || refresh
	}
	if refresh && j.options.Refresh != nil {
		j.options.Refresh()
	}
	for i := range s.Devices {
		d := &s.Devices[i]
		if st := n.devices[d.ID]; st != nil && st.at == i {
			j.activity.update(st, d)
			j.publisher.publish(st, d)
		}
	}
	j.activity.uses.update(n.order)
	j.publisher.publishNode(s, j.activity.uses.list)
	j.meta.publish(s, n, &j.options)
	j.activity.owners.tidy(n.now)
}

// Resources returns the names of the resources by which the device is
// allocated, nil if it is not, or if that is unknown. The list must not be
// changed.
func (j *Judge) Resources(device string) []string {
	j.mu.Lock()
	defer j.mu.Unlock()
	if st := j.node.devices[device]; st != nil {
		return st.resources
	}
	return nil
}

package allocation

import (
	"slices"
	"sync"
	"time"

	"github.com/accel-exporter/accel-exporter/collector"
	"github.com/accel-exporter/accel-exporter/podmap"
	"github.com/accel-exporter/accel-exporter/podmap/kube"
	"github.com/accel-exporter/accel-exporter/podmap/proc"
)

// Options are the inputs of a Judge beside the Snapshot. A nil input is
// unknown. None of the functions may block, except PodDirs.
type Options struct {
	// Map returns the allocations, and Status the state of their Watcher.
	Map    func() *podmap.Map
	Status func() podmap.Status
	// Refresh requests a new list from the kubelet, because devices have
	// changed.
	Refresh func()
	// Gone reports that the devices with these kubelet ids do not exist any
	// more.
	Gone func(ids ...string)
	// Claimed returns what a DRA driver publishes of a device, if its
	// ResourceSlice is known.
	Claimed func(driver, pool, device string) podmap.SliceDevice
	// Meta returns the pods of the API server, and MetaStatus the state of
	// their Watcher, if it is configured.
	Meta       func() *kube.Map
	MetaStatus func() kube.Status
	// Proc finds the pods of processes. Only the Judge uses it.
	Proc *proc.Map
	// PodDirs lists the names below /var/log/pods, which map UIDs to pods. It
	// is called in a separate goroutine, at most every two seconds and only
	// while there is a pod without a name.
	PodDirs func() ([]string, error)
}

// Judge adds the families accel_allocation_*, accel_podmap_* and related ones
// to every Snapshot. It implements collector.Judge and comes after the judge
// of health, whose verdicts its Report repeats. Its methods may be called at
// any time by any goroutine.
type Judge struct {
	options Options
	owners  owners

	mu       sync.Mutex // guards what follows
	settings Settings
	resolver *podmap.Resolver

	now      time.Time // of the latest Snapshot, and of the one before
	previous time.Time
	round    uint64
	devices  map[string]*device
	order    []*device // of the latest Snapshot

	index   *podmap.Index
	stale   bool // index or joins are of before a change
	pods    *podmap.Map
	status  podmap.Status
	join    join
	firsts  []*firstActivity // in order of their resources
	meta    meta
	summary summary
	uses    []podUse // by pod, in order of the devices
	useOf   map[podmap.Pod]int
	// released: a source has released its devices.
	released bool
}

// New returns a Judge.
func New(o Options, s Settings) *Judge {
	j := &Judge{options: o, devices: map[string]*device{}, useOf: map[podmap.Pod]int{}}
	j.join.placed, j.summary.byName = map[idKey]*device{}, map[string]*resource{}
	j.owners = owners{proc: o.Proc, list: o.PodDirs, known: map[int]*process{}}
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
	j.settings, j.resolver, j.stale, j.index = s, s.resolver(), true, nil
}

// Judge implements collector.Judge.
func (j *Judge) Judge(s *collector.Snapshot) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.previous, j.now = j.now, s.Time
	j.round++
	j.released = slices.ContainsFunc(s.Sources, func(x collector.Status) bool { return x.Released })
	changed := j.updateDevices(s)
	refresh := j.follow(changed)
	for i := range s.News {
		refresh = j.event(&s.News[i]) || refresh
	}
	if refresh && j.options.Refresh != nil {
		j.options.Refresh()
	}
	for i := range s.Devices {
		d := &s.Devices[i]
		if st := j.devices[d.ID]; st != nil && st.at == i {
			j.judge(st, d)
		}
	}
	if len(j.join.ambiguous) > 0 && j.placeByProcesses() {
		j.stale = true // joined with the next Snapshot
	}
	j.usePods()
	j.publishNode(s)
	j.publishMeta(s)
	j.owners.tidy(j.now)
}

// follow takes the latest Map and joins it with the devices if either has
// changed. It reports whether the kubelet should be called again.
func (j *Judge) follow(changed bool) bool {
	m := noMap
	if j.options.Map != nil {
		if latest := j.options.Map(); latest != nil {
			m = latest
		}
	}
	first := j.pods == nil
	if changed || j.index == nil {
		known := make([]podmap.Known, 0, len(j.order))
		for _, d := range j.order {
			known = append(known, d.known())
		}
		j.index = j.resolver.Index(known)
		j.join.ids = map[idKey]found{} // those were among other devices
		j.stale = true
	}
	if m != j.pods || j.stale {
		if m != j.pods && j.options.Status != nil {
			j.status = j.options.Status()
		}
		j.pods, j.stale = m, false
		j.rejoin()
	}
	return changed && !first
}

// noMap is the Map without a kubelet.
var noMap = &podmap.Map{State: podmap.StateAbsent}

// judge adds the series of one device.
func (j *Judge) judge(st *device, d *collector.Device) {
	st.readUse(d, j.now)
	j.attribute(st, d)
	st.chargeEnergy()
	for _, a := range st.allocations {
		j.account(a)
	}
	st.fit()
	j.publish(st, d)
}

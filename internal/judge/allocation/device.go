package allocation

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/accel-exporter/accel-exporter/collector"
	"github.com/accel-exporter/accel-exporter/podmap"
)

// device is the memory of a device between Snapshots.
type device struct {
	id, parent string
	class      collector.Class
	vendor     string
	model      string
	pci        string
	functions  []string
	kubeIDs    []string
	info       []string // labels of accel_device_info
	index      string
	profile    string

	at    int    // in the Snapshot
	round uint64 // in which it was last there
	parts int    // partitions that it is cut into

	// Of the latest sample.
	sampled      time.Time
	use          use
	lastCounters counters
	interval     time.Duration // between the last two samples
	values       deviceValues
	// knownFrom is the time since which its activity is known without a gap;
	// zero while it is unknown.
	knownFrom time.Time
	// processesKnown: its processes are listed and procfs shows their owners.
	processesKnown      bool
	processesAttributed bool // each of them is in a named pod, or in none
	outsiders           int  // processes without an allocation of the device
	processes           []deviceProcess
	listed              processUse // of all of them
	unattributedBy      [numberOfReasons]int
	meter               meter

	allocations []*allocation // in order of namespace and pod
	omitted     int           // further ones beyond the limit
	ended       []*allocation // the latest last
	resources   []string      // by which it is allocated
	pending     []Fault       // without a known allocation yet
	// offered counts the ids by which it is allocated or allocatable, by
	// resource.
	offered map[string]int
	// replicas counts the ids under which device plugins offer it, 0 if that is
	// unknown.
	replicas int
	// offers are the resources under which it is allocatable, or was.
	offers []offer
	// byDRA: a DRA driver publishes it, or it was allocated by a claim. No device
	// plugin offers it.
	byDRA bool

	down      string
	up        bool // its source reports that it answers
	reportsUp bool // its source reports whether it answers
	verdict   collector.Verdict
}

// deviceValues are the latest values of the device itself.
type deviceValues struct {
	utilization, sm     quantity // 0 to 1
	memory, memoryTotal quantity // bytes
	power               quantity // watts
	energy              quantity // joules since the driver was loaded
}

// meter follows the energy counter of a device.
type meter struct {
	known  bool
	joules float64
	only   *allocation // the only allocation since it was read
}

// offer is a resource under which a device is allocatable, or was.
type offer struct {
	resource string
	now      bool
	labels   []string
	// missing is since when the kubelet does not list the device as allocatable.
	missing time.Time
	// unlisted: it was allocated since, so that the kubelet's list does not have it
	// whether it is allocatable or not. A device plugin may report an empty topology.
	unlisted bool
}

// identify takes the names of the device, and reports whether they changed.
func (st *device) identify(d *collector.Device) bool {
	info := collector.Reading{Metric: collector.DeviceInfo}
	if i := slices.IndexFunc(d.Readings, func(r collector.Reading) bool { return r.Metric == collector.DeviceInfo }); i >= 0 {
		info = d.Readings[i]
	}
	if st.parent == d.Parent && st.class == d.Class && st.vendor == d.Vendor && st.model == d.Model && st.pci == d.PCI &&
		slices.Equal(st.functions, d.Functions) && slices.Equal(st.kubeIDs, d.KubeIDs) && slices.Equal(st.info, info.Labels) {
		return false
	}
	st.parent, st.class, st.vendor, st.model, st.pci = d.Parent, d.Class, d.Vendor, d.Model, d.PCI
	st.functions, st.kubeIDs, st.info = slices.Clone(d.Functions), slices.Clone(d.KubeIDs), slices.Clone(info.Labels)
	st.index, st.profile = info.Label("index"), info.Label("profile")
	return true
}

// known returns the names by which the kubelet may know the device.
func (st *device) known() podmap.Known {
	k := podmap.Known{
		ID: st.id, Parent: st.parent, Vendor: st.vendor, PCI: st.pci, Functions: st.functions,
		Profile: st.profile, KubeIDs: st.kubeIDs,
	}
	if st.parent == "" {
		k.Index = st.index
	} else if parts := strings.Split(st.index, ":"); len(parts) == 3 {
		k.GI, k.CI = parts[1], parts[2]
	}
	return k
}

// kind returns what the price of the device depends on.
func (st *device) kind() kind {
	return kind{class: string(st.class), model: st.model, profile: st.profile, partition: st.parent != ""}
}

// allocationOf returns the pod's allocation of the device, or nil.
func (st *device) allocationOf(pod podmap.Pod) *allocation {
	i, ok := slices.BinarySearchFunc(st.allocations, pod, func(a *allocation, pod podmap.Pod) int { return comparePods(a.pod, pod) })
	if !ok {
		return nil
	}
	return st.allocations[i]
}

// begin creates an allocation. Nothing is known of the time before previous.
func (st *device) begin(p *podmap.Allocation, previous time.Time) *allocation {
	a := &allocation{device: st, pod: p.Pod, since: p.Since, idleness: idleness{unknownBefore: latest(p.Since, previous)}}
	at, _ := slices.BinarySearchFunc(st.allocations, p.Pod, func(a *allocation, pod podmap.Pod) int { return comparePods(a.pod, pod) })
	st.allocations = slices.Insert(st.allocations, at, a)
	return a
}

func comparePods(a, b podmap.Pod) int {
	return cmp.Or(strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name))
}

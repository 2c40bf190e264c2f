package allocation

import (
	"github.com/accel-exporter/accel-exporter/collector"
	"github.com/accel-exporter/accel-exporter/podmap"
)

// podUse is the use of all devices of a pod.
type podUse struct {
	labels  []string // namespace, pod
	devices int
	// Over the devices whose value is known.
	utilization, sm, memory, memoryTotal, power sum
}

// podUses are the uses of all pods, in order of the devices.
type podUses struct {
	list []podUse
	of   map[podmap.Pod]int
}

// update adds up the allocations of the devices by pod.
func (u *podUses) update(devices []*device) {
	u.list = u.list[:0]
	clear(u.of)
	for _, st := range devices {
		for _, a := range st.allocations {
			i, ok := u.of[a.pod]
			if !ok {
				i = len(u.list)
				u.of[a.pod] = i
				// The first two of holderLabels.
				u.list = append(u.list, podUse{labels: a.labels[:2:2]})
			}
			u.list[i].take(a)
		}
	}
}

func (u *podUse) take(a *allocation) {
	u.devices++
	u.utilization.add(a.utilization)
	if a.owns() {
		u.sm.add(a.device.values.sm)
	}
	u.memory.add(a.memory)
	u.memoryTotal.add(a.device.values.memoryTotal)
	u.power.add(a.power())
}

// publish appends the known values. A sum over some of the devices is not
// published: it would look like less use.
func (u *podUse) publish(r []collector.Reading) []collector.Reading {
	add := func(m *collector.Metric, v float64, known bool) {
		if known {
			r = append(r, collector.Reading{Metric: m, Labels: u.labels, Value: v})
		}
	}
	add(collector.PodDevices, float64(u.devices), true)
	add(collector.PodUtilization, u.utilization.value/float64(max(u.utilization.n, 1)), u.utilization.n > 0)
	add(collector.PodSMActivity, u.sm.value/float64(max(u.sm.n, 1)), u.sm.n > 0)
	add(collector.PodMemory, u.memory.value, u.memory.n == u.devices)
	add(collector.PodMemoryRatio, u.memory.value/u.memoryTotal.value, u.memory.n == u.devices && u.memoryTotal.n == u.devices && u.memoryTotal.value > 0)
	add(collector.PodPower, u.power.value, u.power.n == u.devices)
	return r
}

package allocation

import "github.com/accel-exporter/accel-exporter/collector"

// podUse is what all devices that a pod holds do for it.
type podUse struct {
	labels  []string // namespace, pod
	devices int
	// Of as many devices as it is known of.
	utilization, memory, power measure
}

// measure is a sum over n devices.
type measure struct {
	sum float64
	n   int
}

func (m *measure) add(v float64, known bool) {
	if known {
		m.sum += v
		m.n++
	}
}

func (u *podUse) take(a *allocation) {
	u.devices++
	u.utilization.add(a.utilization, a.has[0])
	u.memory.add(a.memory, a.has[1])
	u.power.add(a.power())
}

// publish appends what is known. A sum over some of the devices is no sum: one
// that a device is missing from would look like less use.
func (u *podUse) publish(r []collector.Reading) []collector.Reading {
	add := func(m *collector.Metric, v float64, known bool) {
		if known {
			r = append(r, collector.Reading{Metric: m, Labels: u.labels, Value: v})
		}
	}
	add(collector.PodDevices, float64(u.devices), true)
	add(collector.PodUtilization, u.utilization.sum/float64(max(u.utilization.n, 1)), u.utilization.n > 0)
	add(collector.PodMemory, u.memory.sum, u.memory.n == u.devices)
	add(collector.PodPower, u.power.sum, u.power.n == u.devices)
	return r
}

// usePods adds up by pod what the latest Snapshot says by hold.
func (j *Judge) usePods() {
	j.uses = j.uses[:0]
	clear(j.useOf)
	for _, st := range j.order {
		for _, a := range st.allocations {
			i, ok := j.useOf[a.pod]
			if !ok {
				i = len(j.uses)
				j.useOf[a.pod] = i
				// The first two of holderLabels.
				j.uses = append(j.uses, podUse{labels: a.labels[:2:2]})
			}
			j.uses[i].take(a)
		}
	}
}

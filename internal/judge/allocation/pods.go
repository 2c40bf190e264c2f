package allocation

import "github.com/accel-exporter/accel-exporter/collector"

// podUse is the use of all devices of a pod.
type podUse struct {
	labels  []string // namespace, pod
	devices int
	// Over the devices whose value is known.
	utilization, memory, power sum
}

// sum is over the n devices whose value is known.
type sum struct {
	value float64
	n     int
}

func (s *sum) add(q quantity) {
	if q.known {
		s.value += q.value
		s.n++
	}
}

func (u *podUse) take(a *allocation) {
	u.devices++
	u.utilization.add(a.utilization)
	u.memory.add(a.memory)
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
	add(collector.PodMemory, u.memory.value, u.memory.n == u.devices)
	add(collector.PodPower, u.power.value, u.power.n == u.devices)
	return r
}

// usePods adds up the allocations of the latest Snapshot by pod.
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

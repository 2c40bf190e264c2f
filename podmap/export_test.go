package podmap

// Of returns the allocations of the device with this kubelet id: more than one
// for a claim of several pods, or if they are contested.
func (m *Map) Of(id string) (list []Allocation) {
	for _, a := range m.Allocations {
		if a.DeviceID == id {
			list = append(list, a)
		}
	}
	return list
}

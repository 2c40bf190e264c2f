package collector

import "slices"

// Change is a device that came, went or changed its state from one Snapshot to
// another.
type Change struct {
	// Before and After are the device in the two Snapshots, nil where it was not.
	Before, After *Device
}

// Since returns the changes from an earlier Snapshot, which may be nil. The state of
// a device is its Down, and the state and the reasons of its verdict. A device that
// had its PCI address as its ID and is identified now has not gone.
func (s *Snapshot) Since(earlier *Snapshot) []Change {
	var before []Device
	if earlier != nil {
		before = earlier.Devices
	}
	var list []Change
	for after := s.Devices; len(before)+len(after) > 0; {
		switch {
		case len(before) == 0 || len(after) > 0 && after[0].ID < before[0].ID:
			list = append(list, Change{After: &after[0]})
			after = after[1:]
		case len(after) == 0 || before[0].ID < after[0].ID:
			if !slices.ContainsFunc(s.Devices, func(d Device) bool { return d.hasAddress(before[0].ID) }) {
				list = append(list, Change{Before: &before[0]})
			}
			before = before[1:]
		default:
			if !before[0].sameState(&after[0]) {
				list = append(list, Change{&before[0], &after[0]})
			}
			before, after = before[1:], after[1:]
		}
	}
	return list
}

func (d *Device) hasAddress(pci string) bool {
	return d.PCI == pci || slices.Contains(d.Functions, pci)
}

func (d *Device) sameState(o *Device) bool {
	if d.Down != o.Down || (d.Verdict == nil) != (o.Verdict == nil) {
		return false
	}
	return d.Verdict == o.Verdict || d.Verdict.State == o.Verdict.State &&
		slices.EqualFunc(d.Verdict.Reasons, o.Verdict.Reasons, func(a, b Reason) bool { return a.Code == b.Code })
}

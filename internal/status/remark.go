package status

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/accel-exporter/accel-exporter/collector"
)

// Remark is something about the node or the exporter that belongs to no row: good,
// neutral where a part of the metrics is missing, warn, or bad, which is a notice.
type Remark struct {
	What, Found, Expected, Cure, Tone string
	Since                             time.Time `json:",omitzero"`
}

// remarks adds the drivers, and what they lack.
func (v *View) remarks(s *collector.Snapshot, explain func(call string) (lost, remedy string)) {
	for i := range s.Node {
		if r := &s.Node[i]; r.Metric == collector.DriverInfo {
			found := "kernel module " + r.Label("version")
			if library := r.Label("library_version"); library != "" {
				found += fmt.Sprintf(", library %s, CUDA %s", library, r.Label("cuda_version"))
			}
			v.Remarks = append(v.Remarks, Remark{What: "driver " + r.Label("vendor"), Found: found, Tone: good})
		}
	}
	var bound, unbound []string // AMD GPUs; a GPU that is passed to a virtual machine has another driver
	usable, files := 0, map[string]string{}
	type lost struct{ what, remedy string }
	refused := map[lost]map[string]bool{}
	var forgot, mute []string
	var before float64
	for i := range s.Devices {
		d := &s.Devices[i]
		if d.Vendor == "nvidia" && d.Class == collector.GPU && hasNoValues(d) {
			mute = append(mute, d.ID)
		}
		for j := range d.Readings {
			switch r := &d.Readings[j]; r.Metric {
			case collector.PCIeDriverBound:
				switch {
				case d.Vendor != "amd" || d.Class != collector.GPU:
				case r.Value == 1:
					bound = append(bound, r.Label("pci_address"))
				default:
					unbound = append(unbound, r.Label("pci_address"))
				}
			case collector.DeviceFileUsable:
				if r.Value == 1 {
					usable++
				} else {
					files[r.Label("file")] = r.Label("reason")
				}
			case collector.FaultsUnknown:
				forgot, before = append(forgot, d.ID), r.Value
			case collector.CallRefused:
				var l lost
				l.what, l.remedy = explain(r.Label("call"))
				if refused[l] == nil {
					refused[l] = map[string]bool{}
				}
				refused[l][r.Label("call")+" ("+r.Label("code")+")"] = true
			}
		}
	}
	switch {
	case len(unbound) > 0:
		v.Remarks = append(v.Remarks, Remark{What: "driver amdgpu", Found: "not bound to " + strings.Join(unbound, ", "), Expected: "bound to each GPU that programs on this node use", Cure: "modprobe amdgpu; journalctl -k --grep=amdgpu shows why it gave up a GPU", Tone: neutral})
	case len(bound) > 0:
		v.Remarks = append(v.Remarks, Remark{What: "driver amdgpu", Found: fmt.Sprintf("%d of %d GPUs have a driver", len(bound), len(bound)), Tone: good})
	}
	switch {
	case len(files) > 0:
		var texts []string
		for _, file := range slices.Sorted(maps.Keys(files)) {
			texts = append(texts, file+": "+files[file])
		}
		v.Remarks = append(v.Remarks, Remark{What: "device files", Found: strings.Join(texts, ", "), Expected: "each file exists, belongs to its device, and has the mode of the driver's configuration", Cure: "nvidia-modprobe -c 0 -u creates those of NVIDIA, udev those of AMD once amdgpu is loaded; docs/runbooks/AcceleratorDegraded.md", Tone: warn})
	case usable > 0:
		v.Remarks = append(v.Remarks, Remark{What: "device files", Found: fmt.Sprintf("%d usable", usable), Tone: good})
	}
	if len(mute) > 0 {
		v.Remarks = append(v.Remarks, Remark{
			What: "values", Found: "the driver has no temperature, power, memory or utilization of " + strings.Join(mute, ", "),
			Expected: "values of each GPU; on a Jetson NVML has none", Cure: "nothing to repair: presence, pods and errors are still reported", Tone: neutral,
		})
	}
	if len(forgot) > 0 {
		v.Remarks = append(v.Remarks, Remark{
			What: "earlier faults", Found: fmt.Sprintf("unknown before %s, of %s", time.Unix(int64(before), 0).UTC().Format(time.RFC3339), strings.Join(forgot, ", ")),
			Expected: "faults that only an event reports, such as an Xid, survive a restart of the exporter",
			Cure:     "set --path.state (chart: stateDirectory), or let the exporter read /dev/kmsg (chart: kernelLog); docs/failures.md", Tone: neutral,
		})
	}
	for _, l := range slices.SortedFunc(maps.Keys(refused), func(a, b lost) int { return strings.Compare(a.what, b.what) }) {
		v.Remarks = append(v.Remarks, Remark{What: "refused calls", Found: strings.Join(slices.Sorted(maps.Keys(refused[l])), ", "), Expected: l.what, Cure: l.remedy, Tone: neutral})
	}
}

// hasNoValues reports whether a GPU answers and its driver has none of the values that
// make a GPU alive. The values of a suspended GPU are not read.
func hasNoValues(d *collector.Device) bool {
	up := false
	for i := range d.Readings {
		switch r := &d.Readings[i]; r.Metric {
		case collector.TemperatureCelsius, collector.PowerWatts, collector.MemoryTotal:
			return false
		case collector.UtilizationRatio:
			if r.Labels[0] == "compute" {
				return false
			}
		case collector.PCIeSuspended:
			if r.Value == 1 {
				return false
			}
		case collector.DeviceUp:
			up = r.Value == 1
		}
	}
	return up
}

package compat

import (
	"cmp"
	"strings"

	"github.com/accel-exporter/accel-exporter/collector"
	"github.com/accel-exporter/accel-exporter/internal/exposition"
)

// reserved are the label names that labels of pods cannot have.
var reserved = map[string]bool{
	"gpu": true, "UUID": true, "uuid": true, "gpu_uuid": true, "pci_bus_id": true, "device": true,
	"modelName": true, "model_name": true, "GPU_I_PROFILE": true, "GPU_I_ID": true, "GPU_CI_ID": true,
	"hostname": true, "Hostname": true, "nvlink": true, "nvswitch": true, "cpu": true, "cpucore": true,
	"pod": true, "namespace": true, "container": true, "pod_uid": true,
	"pod_name": true, "pod_namespace": true, "container_name": true,
	"xid": true, "health_watch": true, "hpc_job": true,
}

// set is a set of labels. The first label with a name is kept.
type set []exposition.Label

func (s *set) add(name, value string) {
	for _, l := range *s {
		if l.Name == name {
			return
		}
	}
	*s = append(*s, exposition.Label{Name: name, Value: value})
}

// labelsOf returns the labels of a unit, with the labels of its pod if it is
// allocated to exactly one pod.
func (p *page) labelsOf(u *unit) []exposition.Label {
	s := p.identity(u)
	if len(u.holders) == 1 {
		p.addPod(&s, &u.holders[0])
	}
	return s
}

// identity returns the labels of a unit without the labels of a pod.
func (p *page) identity(u *unit) set {
	n := &p.view.names
	s := make(set, 0, 16)
	switch u.class {
	case classSwitch:
		s.add("nvswitch", "nvswitch"+u.index)
	case classCPU:
		s.add("cpu", u.index)
	default:
		s.add("gpu", u.index)
		s.add(n.uuid, u.uuid)
		s.add("pci_bus_id", u.pci)
		s.add("device", "nvidia"+u.index)
		s.add("modelName", p.modelOf(u))
		s.add("GPU_I_PROFILE", u.profile)
		s.add("GPU_I_ID", u.gi)
		s.add("GPU_CI_ID", u.ci)
		p.addJobs(&s, u)
	}
	p.addNode(&s, u)
	return s
}

// linkLabels returns the labels of one link of a GPU or switch.
func (p *page) linkLabels(u *unit, link string) []exposition.Label {
	s := make(set, 0, 12)
	s.add("nvlink", link)
	if u.class == classSwitch {
		s.add("nvswitch", "nvswitch"+u.index)
	} else {
		s.add("gpu", u.index)
		s.add("gpu_uuid", u.uuid)
		s.add("pci_bus_id", u.pci)
		s.add("device", "nvidia"+u.index)
		s.add("model_name", p.modelOf(u))
		p.addJobs(&s, u)
	}
	p.addNode(&s, u)
	return s
}

// coreLabels returns the labels of one core of a CPU.
func (p *page) coreLabels(u *unit, core string) []exposition.Label {
	s := make(set, 0, 4)
	s.add("cpucore", core)
	s.add("cpu", u.index)
	p.addNode(&s, u)
	return s
}

// addNode adds the labels of all series: the node's name and the label rows of
// the counters file.
func (p *page) addNode(s *set, u *unit) {
	s.add(p.view.names.host, p.view.options.Hostname)
	for _, f := range u.facts {
		s.add(f.name, f.value)
	}
}

func (p *page) modelOf(u *unit) string {
	if p.view.options.Dashes {
		return strings.Join(strings.Fields(u.model), "-")
	}
	return u.model
}

// Classes of devices that DCGM supports, as in accel_device_info.
const (
	classGPU    = string(collector.GPU)
	classSwitch = string(collector.Switch)
	classCPU    = string(collector.CPU)
)

// isA reports whether u has a class; empty means GPU.
func (u *unit) isA(class string) bool { return u.class == cmp.Or(class, classGPU) }

package main

import (
	"os"
	"path/filepath"

	"github.com/accel-exporter/accel-exporter/collector/dcgm"
	"github.com/accel-exporter/accel-exporter/collector/kernellog"
	"github.com/accel-exporter/accel-exporter/collector/nvidia"
	"github.com/accel-exporter/accel-exporter/collector/sysfs"
	"github.com/accel-exporter/accel-exporter/internal/status"
	"github.com/accel-exporter/accel-exporter/podmap"
)

// remarks are what flags ask for in vain and what the exporter may not see, for the
// status page.
func (f *flags) remarks() (list []status.Remark) {
	for _, w := range f.warnings() {
		list = append(list, status.Remark{What: "flags", Found: w, Expected: "the path exists", Cure: "correct or remove the flag, or create the path", Tone: "warn"})
	}
	for _, ignored := range f.compat.foreign.ignored {
		list = append(list, status.Remark{What: "flags", Found: ignored, Cure: "remove it", Tone: "neutral"})
	}
	if !ownProcesses(f.sources.procfs) {
		list = append(list, status.Remark{
			What: "PID namespace", Found: "one of this container: the driver's PIDs are unknown here",
			Expected: "that of the node, to attribute processes to pods and jobs", Cure: "hostPID: true, by the chart's processes.enabled or the component processes", Tone: "neutral",
		})
	}
	if _, err := sysfs.New(f.sources.procfs).ReadBytes("1/cgroup", 1<<16); err != nil {
		list = append(list, status.Remark{
			What: "procfs", Found: err.Error(), Expected: "cgroups of all processes",
			Cure: "where /proc is mounted with hidepid=: the group of its option gid= in SupplementaryGroups=", Tone: "neutral",
		})
	}
	return list
}

// asksFor reports whether flags or the node ask for a source that may be absent.
func (f *flags) asksFor(source string) bool {
	flag := map[string]string{nvidia.Name: "nvml.library", kernellog.Name: "kernel-log.path"}[source]
	if source == status.Kubelet && f.pods.socket == podmap.DefaultSocket {
		if _, err := os.Stat(filepath.Dir(podmap.DefaultSocket)); err == nil {
			return true
		}
	}
	return source == dcgm.Name || f.asked("collector."+source) || f.asked(flag)
}

//go:build linux && cgo

package nvidia

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/accel-exporter/accel-exporter/collector"
	"github.com/accel-exporter/accel-exporter/collector/sysfs"
)

// procGPUs has one folder per GPU known to the kernel module, named by PCI
// address.
const procGPUs = "/proc/driver/nvidia/gpus"

// foreignPIDs reports whether this process is outside the host's PID namespace.
func foreignPIDs(procfs string) bool {
	own, known := sysfs.HostPIDs(procfs)
	return procfs != "" && known && !own
}

// bound lists the PCI functions that the driver is bound to.
func bound(root string) map[string]bool {
	list := map[string]bool{}
	if root == "" {
		return list
	}
	entries, _ := os.ReadDir(filepath.Join(root, "bus/pci/drivers/nvidia"))
	for _, e := range entries {
		if strings.Contains(e.Name(), ":") {
			list[e.Name()] = true
		}
	}
	return list
}

// numaNode is the NUMA node of a PCI device, empty where the firmware does not
// set it. nvmlDeviceGetNumaNodeId is that of the GPU's own memory, on Grace.
func numaNode(root, address string) string {
	if root == "" || address == "" {
		return ""
	}
	s, _ := sysfs.New(root).Read("bus/pci/devices/" + address + "/numa_node")
	if _, err := strconv.ParseUint(s, 10, 16); err != nil {
		return ""
	}
	return s
}

// place is a GPU of which only the index is known.
func place(index int) collector.Device {
	at := strconv.Itoa(index)
	return collector.Device{ID: "nvidia" + at, Passing: true, Class: collector.GPU, Vendor: "nvidia", KubeIDs: []string{at}}
}

// unopened is the GPU at an index whose handle has never been opened, by the
// kernel module's list: NVML enumerates by PCI address too.
func unopened(root string, index int) collector.Device {
	d := place(index)
	// ReadDir sorts by name. In a container the folder may be hidden.
	folders, err := os.ReadDir(root)
	if err != nil || index >= len(folders) {
		return d
	}
	d.PCI = strings.ToLower(folders[index].Name())
	d.ID = d.PCI
	b, err := os.ReadFile(filepath.Join(root, folders[index].Name(), "information"))
	if err != nil {
		return d
	}
	for line := range strings.Lines(string(b)) {
		key, v, _ := strings.Cut(line, ":")
		v = strings.TrimSpace(v)
		switch strings.TrimSpace(key) {
		case "Model":
			d.Model = text(v)
		case "GPU UUID":
			// A GPU that was never initialised has question marks here.
			if strings.HasPrefix(v, "GPU-") && !strings.Contains(v, "?") {
				d.ID, d.Passing = v, false
				d.KubeIDs = append(d.KubeIDs, v)
			}
		}
	}
	return d
}

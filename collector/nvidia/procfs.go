//go:build linux && cgo

package nvidia

import (
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/accel-exporter/accel-exporter/collector"
	"github.com/accel-exporter/accel-exporter/collector/sysfs"
)

// procGPUs, below procfs, has one folder per GPU known to the kernel module,
// named by PCI address.
const procGPUs = "driver/nvidia/gpus"

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

// portLanes is the most lanes of the port above a PCI device, 0 where no port is
// visible.
func portLanes(root, address string) float64 {
	if root == "" || address == "" {
		return 0
	}
	fs := sysfs.New(root)
	dir, err := fs.Resolve("bus/pci/devices/" + address)
	if err != nil {
		return 0
	}
	s, _ := fs.Read(path.Dir(dir) + "/max_link_width")
	lanes, _ := strconv.ParseUint(s, 10, 8)
	return float64(lanes)
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

// locate adds the PCI addresses of the GPUs of which only the index is known:
// the addresses that the driver has and no other GPU is at. Both are in the
// order of the addresses. It reads names only, since a file of the driver may
// hang.
func locate(devices []collector.Device, sys, procfs string) {
	taken := map[string]bool{}
	var unknown []*collector.Device
	for i := range devices {
		if d := &devices[i]; d.Passing && d.PCI == "" {
			unknown = append(unknown, d)
		} else {
			taken[d.PCI] = true
		}
	}
	if len(unknown) == 0 {
		return
	}
	addresses := slices.DeleteFunc(driven(sys, procfs), func(address string) bool { return taken[address] })
	for i, d := range unknown {
		if len(addresses) == len(unknown) {
			d.ID, d.PCI = addresses[i], addresses[i]
		}
		id := identity{numa: numaNode(sys, d.PCI)}
		d.Set(collector.DeviceInfo, 1, id.info(d, d.KubeIDs[0], "")...)
	}
}

// driven lists the addresses of the GPUs that the driver has, sorted. In a
// container its folder has only the container's GPUs, or is hidden.
func driven(sys, procfs string) []string {
	entries, err := os.ReadDir(filepath.Join(procfs, procGPUs))
	if procfs == "" || err != nil {
		return slices.Sorted(maps.Keys(bound(sys)))
	}
	list := make([]string, len(entries))
	for i, e := range entries {
		list[i] = strings.ToLower(e.Name())
	}
	slices.Sort(list)
	return list
}

//go:build linux && cgo

package nvidia

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/accel-exporter/accel-exporter/collector"
)

// procGPUs has one folder per GPU known to the kernel module, named by PCI
// address.
const procGPUs = "/proc/driver/nvidia/gpus"

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

//go:build linux && cgo

package nvidia

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/accel-exporter/accel-exporter/collector"
)

// procGPUs holds a folder per GPU that the kernel module knows, named by its
// PCI address.
const procGPUs = "/proc/driver/nvidia/gpus"

// place is a GPU of which the index is known and no more.
func place(index int) collector.Device {
	at := strconv.Itoa(index)
	return collector.Device{ID: "nvidia" + at, Passing: true, Class: collector.GPU, Vendor: "nvidia", KubeIDs: []string{at}}
}

// stranger is the GPU at an index whose handle has never been opened, as far
// as the kernel module tells: NVML enumerates by PCI address too.
func stranger(root string, index int) collector.Device {
	d := place(index)
	// ReadDir sorts by name. Inside a container the folder may be hidden.
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

package pcie

import (
	"regexp"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/accel-exporter/accel-exporter/collector"
)

// nvidiaGPUs, below procfs, has a folder per GPU of NVIDIA's driver, by PCI
// address.
const nvidiaGPUs = "driver/nvidia/gpus"

// information is what the driver shows of a GPU in its file information. The
// driver keeps it for a GPU that has fallen off the bus, except the versions of
// its firmware.
type information struct {
	// model and uuid are empty where they are unknown. The driver knows the
	// UUID once it has initialized the GPU.
	model, uuid string
	// minor is the number of the device file, empty where it is unknown.
	minor string
}

// parseInformation parses the file. A driver that cannot wake the GPU leaves it
// empty; a driver without the UUID leaves out the line, or has question marks
// there (R590 and earlier).
func parseInformation(text string) information {
	var in information
	for line := range strings.Lines(text) {
		key, v, _ := strings.Cut(line, ":")
		v = strings.TrimSpace(v)
		switch strings.TrimSpace(key) {
		case "Model":
			if v != "Unknown" && len(v) <= maxModel && utf8.ValidString(v) && !strings.ContainsFunc(v, unicode.IsControl) {
				in.model = v
			}
		case "GPU UUID":
			if uuidForm.MatchString(v) {
				in.uuid = v
			}
		case "Device Minor":
			if n, err := strconv.ParseUint(v, 10, minorBits); err == nil {
				in.minor = strconv.FormatUint(n, 10)
			}
		}
	}
	return in
}

// minorBits is the length of the kernel's minor numbers (include/linux/kdev_t.h).
const minorBits = 20

// maxModel is the length of the longest product name of NVML, in bytes.
const maxModel = 96

var uuidForm = regexp.MustCompile(`^GPU-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$`)

// describe adds the identity to d, which has none but its address.
func (in *information) describe(d *collector.Device) {
	d.Model = in.model
	if in.uuid != "" {
		d.ID = in.uuid
		d.KubeIDs = append(d.KubeIDs, in.uuid)
	}
	if in.minor != "" {
		d.KubeIDs = append(d.KubeIDs, "nvidia"+in.minor, "gpu-"+in.minor)
	}
}

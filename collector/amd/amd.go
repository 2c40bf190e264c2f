// Package amd is the Source of AMD GPUs. It reads the attributes of the kernel's
// driver amdgpu in sysfs, without a library, a daemon or a privilege.
//
// It opens the files of a list and no others, writes nothing, and does not wake a
// sleeping GPU: while runtime power management has suspended it, only attributes
// that the kernel answers from memory are read. An idle GPU that may be suspended
// is read less often, because each read restarts its delay. Each GPU has its own
// goroutine, because reads wait for a GPU that hangs or is reset.
//
// The id of a GPU is GPU- and its unique_id, as rocminfo prints it, else its PCI
// address.
package amd

import "time"

// Name is the value of the label source.
const Name = "amd"

const (
	// slow is the time between two reads of limits, settings and sizes.
	slow = 10 * time.Second
	// rare is the time between two reads of RAS counters: a read asks the
	// firmware and clears the hardware's own counters.
	rare = time.Minute
	// driverDir has a link per GPU.
	driverDir = "bus/pci/drivers/amdgpu"
	// amdID is the PCI vendor id of AMD's GPUs.
	amdID = 0x1002
)

// allowed are the files that the Source opens, in the PCI directory of a GPU and
// of the port above it.
var allowed = []string{
	"power/runtime_status", "power/control", "power/autosuspend_delay_ms",
	"device", "numa_node", "max_link_speed", "max_link_width", "current_link_speed", "current_link_width",
	"unique_id", "product_name", "product_number", "serial_number", "vbios_version", "fw_version/*_fw_version",
	"mem_info_vram_total", "mem_info_vram_used", "mem_info_vis_vram_total", "mem_info_vis_vram_used",
	"mem_info_gtt_total", "mem_info_gtt_used",
	"current_compute_partition", "current_memory_partition",
	"gpu_metrics", "gpu_busy_percent", "mem_busy_percent", "vcn_busy_percent", "pcie_replay_count", "pp_dpm_sclk", "pp_dpm_mclk",
	"hwmon/hwmon*/name", "hwmon/hwmon*/temp[123]_input", "hwmon/hwmon*/temp[123]_crit", "hwmon/hwmon*/temp[123]_emergency",
	"hwmon/hwmon*/power1_input", "hwmon/hwmon*/power1_average", "hwmon/hwmon*/power1_cap*", "hwmon/hwmon*/fan1_input", "hwmon/hwmon*/fan1_max",
	"hwmon/hwmon*/freq[12]_input", "hwmon/hwmon*/in[01]_input", "hwmon/hwmon*/in[01]_label",
	"ras/*_err_count", "ras/aca_*", "ras/gpu_vram_bad_pages",
}

// models are the names of boards by their PCI device id, for boards whose FRU does not
// name them, and their architectures. A Radeon has no FRU; pci.ids has one name for the
// boards of one id.
var models = map[string]struct{ name, architecture string }{
	"738c": {"Instinct MI100", "CDNA"}, "738e": {"Instinct MI100", "CDNA"},
	"7408": {"Instinct MI250X", "CDNA 2"}, "740c": {"Instinct MI250X", "CDNA 2"}, "740f": {"Instinct MI210", "CDNA 2"},
	"74a0": {"Instinct MI300A", "CDNA 3"}, "74a1": {"Instinct MI300X", "CDNA 3"}, "74a2": {"Instinct MI308X", "CDNA 3"},
	"74a5": {"Instinct MI325X", "CDNA 3"}, "74b5": {"Instinct MI300X VF", "CDNA 3"},
	"66a1": {"Radeon Instinct MI50", ""}, "66af": {"Radeon VII", ""},
	"73a3": {"Radeon PRO W6800", "RDNA 2"}, "73a5": {"Radeon RX 6950 XT", "RDNA 2"}, "73bf": {"Radeon RX 6800/6900 XT", "RDNA 2"},
	"73df": {"Radeon RX 6700/6750 XT", "RDNA 2"}, "73ff": {"Radeon RX 6600/6600 XT", "RDNA 2"},
	"7448": {"Radeon PRO W7900", "RDNA 3"}, "744c": {"Radeon RX 7900 XT/7900 XTX", "RDNA 3"}, "747e": {"Radeon RX 7700 XT/7800 XT", "RDNA 3"},
	"7550": {"Radeon RX 9070/9070 XT", "RDNA 4"}, "7551": {"Radeon AI PRO R9700", "RDNA 4"},
	"75a0": {"Instinct MI350X", "CDNA 4"}, "75a3": {"Instinct MI355X", "CDNA 4"},
}

package sim

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/accel-exporter/accel-exporter/internal/sim/faketree"
)

// plugGPUs adds the GPUs of the state to a tree, each behind its own root port,
// with the files of NVIDIA's driver in /proc.
func (s *State) plugGPUs(t *faketree.Tree) error {
	taken := map[string]bool{}
	for i := range s.gpus() {
		domain, n, err := splitAddress(s.address(i))
		if err != nil {
			return err
		}
		taken[domain+strconv.Itoa(n)] = true
	}
	seen := map[string]int{}
	for i := range s.gpus() {
		a := s.address(i)
		if first, ok := seen[a]; ok {
			return fmt.Errorf("GPUs %d and %d are both at %s", first, i, a)
		}
		seen[a] = i
		domain, bus, _ := splitAddress(a)
		// A root port has its own bus below it; on bus 0 are GPUs of virtual
		// machines, without a port.
		root := bus
		for root > 0 && taken[domain+strconv.Itoa(root)] {
			root--
		}
		taken[domain+strconv.Itoa(root)] = true
		s.plugGPU(t, i, fmt.Sprintf("/sys/devices/pci%s:%02x", domain, root), root != bus)
	}
	s.tellAll(t)
	if t.Exists("/sys/module/nvidia") {
		s.log("NVRM: loading %s", s.driverBanner())
	}
	return nil
}

func splitAddress(a string) (domain string, bus int, err error) {
	parts := strings.Split(a, ":")
	if len(parts) == 3 {
		n, err := strconv.ParseUint(parts[1], 16, 8)
		if err == nil {
			return parts[0], int(n), nil
		}
	}
	return "", 0, fmt.Errorf("%q is no PCI address", a)
}

func (s *State) plugGPU(t *faketree.Tree, gpu int, root string, behindPort bool) {
	board := "board." + s.Get(fmt.Sprintf("gpu.%d.board", gpu)) + "."
	number := func(key string, most uint64) uint64 {
		for _, text := range []string{s.gpuGet(gpu, key), s.Get(board + key)} {
			if n, err := strconv.ParseUint(text, 0, 64); err == nil && n <= most {
				return n
			}
		}
		return 0
	}
	id, err := strconv.ParseUint(s.Get(board+"pci.device_id"), 0, 32)
	if err != nil {
		id = 0x10de
	}
	sub := number("pci.subsystem_id", 1<<32-1)
	f := function{
		address: s.address(gpu), class: 0x030200, vendor: id & 0xffff, device: id >> 16, subVendor: sub & 0xffff, subDevice: sub >> 16, revision: 0xa1,
		generation: int(number("pcie.generation", 6)), width: int(number("pcie.width", 32)),
		maxGeneration: int(number("pcie.gpu_max_generation", 6)), maxWidth: int(number("pcie.max_width", 32)), numa: int(number("numa_node", 64)),
	}
	above := root
	if behindPort {
		port := f
		port.maxWidth = f.width // at the start the link uses what the slot has
		port.address = fmt.Sprintf("%s:01.0", strings.TrimPrefix(root[strings.LastIndexByte(root, '/')+1:], "pci"))
		port.path = root + "/" + port.address
		port.class, port.vendor, port.device, port.subVendor, port.subDevice, port.revision = 0x060400, 0x8086, 0x352a, 0x8086, 0, 0x11
		port.driver, port.port = "pcieport", true
		port.put(t)
		above = port.path
	}
	f.path = above + "/" + f.address
	f.put(t)
}

// writeGPU writes the file of a GPU in /proc/driver/nvidia, as R580 does. Of a
// lost GPU the driver knows the UUID where it has initialized the GPU, and the
// model from the PCI ids.
func (s *State) writeGPU(t *faketree.Tree, gpu int) {
	text := func(key, unknown string) string {
		if v := s.gpuGet(gpu, key); v != "" && !strings.HasPrefix(v, "error:") {
			return v
		}
		return unknown
	}
	uuid, vbios, firmware := text("uuid", unknownUUID), text("vbios", unknownVBIOS), s.Get("driver.version")
	if s.Has(fmt.Sprintf("gpu.%d.lost", gpu)) {
		vbios, firmware = unknownVBIOS, "N/A"
	}
	if s.Has(fmt.Sprintf("gpu.%d.unnamed", gpu)) {
		uuid = unknownUUID
	}
	t.Set("/proc/driver/nvidia/gpus/"+s.address(gpu)+"/information", fmt.Sprintf(
		"Model: \t\t %s\nIRQ:   \t\t %d\nGPU UUID: \t %s\nVideo BIOS: \t %s\nBus Type: \t PCIe\nDMA Size: \t 52 bits\nDMA Mask: \t 0xfffffffffffff\n"+
			"Bus Location: \t %s\nDevice Minor: \t %d\nGPU Firmware: \t %s\nGPU Excluded:\t No\n",
		text("name", "Unknown"), 180+gpu, uuid, vbios, s.address(gpu), gpu, firmware))
}

// What the driver shows where it knows no value.
const (
	unknownUUID  = "GPU-????????-????-????-????-????????????"
	unknownVBIOS = "??.??.??.??.??"
)

// driverBanner is the name that NVIDIA's kernel module prints, in /proc and
// when it is loaded.
func (s *State) driverBanner() string {
	return "NVIDIA UNIX x86_64 Kernel Module  " + s.Get("driver.version") + "  Wed Oct 29 23:15:11 UTC 2025"
}

func (s *State) tellDriver(t *faketree.Tree) {
	t.Set("/proc/driver/nvidia/version", "NVRM version: "+s.driverBanner()+"\nGCC version:  gcc version 13.3.0\n")
	t.Set("/proc/driver/nvidia/params", "ModifyDeviceFiles: 1\nDeviceFileUID: 0\nDeviceFileGID: 0\nDeviceFileMode: 438\n")
	t.Set("/proc/sys/kernel/random/boot_id", "7d2f1a30-0000-4000-8000-000000000001\n")
	t.Set("/proc/devices", "Character devices:\n  1 mem\n195 nvidia\n195 nvidiactl\n508 nvidia-uvm\n\nBlock devices:\n  8 sd\n")
	t.Set("/sys/module/nvidia/version", s.Get("driver.version")+"\n")
}

// showDriver updates what /sys and /proc show of NVIDIA's driver: the GPUs that
// it is bound to, and its version.
func (s *State) showDriver() error {
	return s.onTree(func(tree *faketree.Tree) error {
		s.tellAll(tree)
		return nil
	})
}

// boundKey is the key of the driver of a GPU that NVML no longer lists.
func boundKey(gpu int) string { return fmt.Sprintf("bound.%d", gpu) }

func (s *State) tellAll(t *faketree.Tree) {
	t.Remove("/proc/driver/nvidia")
	t.Remove("/sys/module/nvidia")
	t.Remove("/proc/devices")
	t.Remove("/proc/self")
	if slices.Contains(strings.Fields(s.Get("driver.quirks")), "other-pids") {
		t.Link("/proc/self/ns/pid", "pid:[4026532301]") // another one than the host's
	}
	loaded := s.Get("driver.state") != "unloaded"
	for i := range s.gpus() {
		driver := strings.TrimPrefix(s.Get(boundKey(i)), "none")
		if loaded && !s.Has(boundKey(i)) && t.Exists("/sys/bus/pci/devices/"+s.address(i)) {
			driver = "nvidia"
			s.writeGPU(t, i)
		}
		if !loaded && driver == "nvidia" {
			driver = ""
		}
		bind(t, s.address(i), driver)
	}
	if loaded && s.gpus() > 0 {
		s.tellDriver(t)
	}
}

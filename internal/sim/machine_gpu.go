package sim

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/accel-exporter/accel-exporter/internal/sim/faketree"
)

// address returns a GPU's address as the kernel writes it; NVML has eight
// digits of domain and capital letters.
func (s *State) address(gpu int) string {
	a := strings.ToLower(s.gpuGet(gpu, "pci.bus_id"))
	if len(a) == len("00000000:1b:00.0") && strings.HasPrefix(a, "0000") {
		return a[4:]
	}
	return a
}

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
	t.Set("/proc/devices", "Character devices:\n  1 mem\n195 nvidia\n195 nvidiactl\n508 nvidia-uvm\n\nBlock devices:\n  8 sd\n")
	t.Set("/sys/module/nvidia/version", s.Get("driver.version")+"\n")
}

// compileMachine makes the /sys and /proc of a scenario: its GPUs, then the
// cards of its trees, renumbered where they conflict.
func (sc *Scenario) compileMachine(s *State, fixtures fs.FS) error {
	m := &machine{tree: faketree.New()}
	s.machine = m
	for _, dir := range []string{"/sys/bus/pci/devices", "/sys/class", "/proc"} {
		m.tree.Mkdir(dir)
	}
	if err := s.plugGPUs(m.tree); err != nil {
		return fmt.Errorf("scenario %s: %w", sc.Name, err)
	}
	n, copies := 0, map[string]int{}
	for i, name := range sc.Trees {
		tree, err := faketree.LoadFS(fixtures, "trees/"+name+".txt")
		if errors.Is(err, fs.ErrNotExist) {
			err = fmt.Errorf("no tree %q; want one of %s, or variants/NAME", name, strings.Join(fixtureNames(fixtures, "trees/*.txt"), ", "))
		}
		before := cardsOf(m.tree)
		if err == nil {
			renameCopy(tree, copies[name])
			copies[name]++
			err = m.tree.Merge(tree)
		}
		if err != nil {
			return sc.root.at("trees", i).errorf("%w", err)
		}
		after := cardsOf(m.tree)
		for _, at := range slices.Sorted(maps.Keys(after)) {
			if _, ok := before[at]; !ok {
				s.Set(fmt.Sprintf("card.%d", n), fmt.Sprintf("tree=%s kind=%s at=%s", name, after[at].kind, at))
				n++
			}
		}
	}
	if err := sc.compilePods(s); err != nil {
		return err
	}
	s.tellProcesses(m.tree)
	s.begun = m.tree.Clone()
	return nil
}

// renameCopy gives the nth copy of a tree its own serial numbers: their last two
// digits are the number of the copy.
func renameCopy(t *faketree.Tree, n int) {
	for _, file := range t.Paths() {
		if base := path.Base(file); base == "unique_id" || base == "serial_number" {
			text, _ := t.Get(file)
			if text = strings.TrimSpace(text); len(text) > 2 {
				t.Set(file, fmt.Sprintf("%s%02x\n", text[:len(text)-2], n))
			}
		}
	}
}

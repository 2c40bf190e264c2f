package sim

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// device is a GPU in the state, or one of its MIG devices.
type device struct {
	gpu int
	mig int // -1 for the whole GPU
}

func (d device) prefix() string {
	if d.mig >= 0 {
		return fmt.Sprintf("gpu.%d.mig.%d.", d.gpu, d.mig)
	}
	return fmt.Sprintf("gpu.%d.", d.gpu)
}

// gpus returns the number of GPUs in the state, including removed ones.
func (s *State) gpus() int { return int(s.integer("gpus")) }

// gpuGet reads a GPU's key, falling back to its board.
func (s *State) gpuGet(gpu int, key string) string {
	own := fmt.Sprintf("gpu.%d.%s", gpu, key)
	if s.Has(own) {
		return s.Get(own)
	}
	return s.Get("board." + s.Get(fmt.Sprintf("gpu.%d.board", gpu)) + "." + key)
}

func (s *State) migs(gpu int) int {
	n := 0
	for s.Has(fmt.Sprintf("gpu.%d.mig.%d", gpu, n)) {
		n++
	}
	return n
}

// devices resolves a DEVICE argument: an index, a UUID, a PCI address, 4/0 for
// the first MIG device of GPU 4, or all.
func (s *State) devices(arg string) ([]device, error) {
	var out []device
	for i := range s.gpus() {
		if arg == "all" || s.isGPU(i, arg) {
			out = append(out, device{i, -1})
		}
		for m := range s.migs(i) {
			if arg == fmt.Sprintf("%d/%d", i, m) || arg == attr(s.Get(fmt.Sprintf("gpu.%d.mig.%d", i, m)), "uuid") {
				out = append(out, device{i, m})
			}
		}
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("no device %q; the devices are:\n%s", arg, s.deviceList())
	}
	return out, nil
}

func (s *State) isGPU(i int, arg string) bool {
	return arg == strconv.Itoa(i) || arg == s.gpuGet(i, "uuid") || sameAddress(arg, s.gpuGet(i, "pci.bus_id"))
}

// sameAddress compares PCI addresses independent of zeros, case and function.
func sameAddress(a, b string) bool {
	x, ok := pciNumbers(a)
	y, also := pciNumbers(b)
	return ok && also && slices.Equal(x, y)
}

func pciNumbers(s string) ([]uint64, bool) {
	s, _, _ = strings.Cut(s, ".")
	parts := strings.Split(s, ":")
	if len(parts) == 2 {
		parts = append([]string{"0"}, parts...)
	}
	if len(parts) != 3 {
		return nil, false
	}
	out := make([]uint64, 3)
	for i, p := range parts {
		v, err := strconv.ParseUint(p, 16, 32)
		if err != nil {
			return nil, false
		}
		out[i] = v
	}
	return out, true
}

func (s *State) deviceList() string {
	var b strings.Builder
	for i := range s.gpus() {
		fmt.Fprintf(&b, "  %d  %s  %s  %s\n", i, s.gpuGet(i, "uuid"), s.gpuGet(i, "pci.bus_id"), s.gpuGet(i, "name"))
		for m := range s.migs(i) {
			rec := s.Get(fmt.Sprintf("gpu.%d.mig.%d", i, m))
			fmt.Fprintf(&b, "  %d/%d  %s  %s\n", i, m, attr(rec, "uuid"), attr(rec, "profile"))
		}
	}
	if b.Len() == 0 {
		return "  (none)"
	}
	return strings.TrimRight(b.String(), "\n")
}

// address returns a GPU's address as the kernel writes it; NVML has eight
// digits of domain and capital letters.
func (s *State) address(gpu int) string {
	a := strings.ToLower(s.gpuGet(gpu, "pci.bus_id"))
	if len(a) == len("00000000:1b:00.0") && strings.HasPrefix(a, "0000") {
		return a[4:]
	}
	return a
}

func (s *State) deviceUUID(d device) string {
	if d.mig < 0 {
		return s.gpuGet(d.gpu, "uuid")
	}
	return attr(s.migRecord(d), "uuid")
}

func (s *State) migRecord(d device) string {
	return s.Get(fmt.Sprintf("gpu.%d.mig.%d", d.gpu, d.mig))
}

package sim

import (
	"fmt"
	"strconv"
	"strings"
)

// xidAddress is a GPU's address as NVIDIA's driver prints it with a Xid; for a
// MIG device with its instances.
func xidAddress(address, gi, ci string) string {
	var text strings.Builder
	text.WriteString("PCI:" + strings.TrimSuffix(address, ".0"))
	for _, id := range [][2]string{{" GPU-I:", gi}, {" GPU-CI:", ci}} {
		n, err := strconv.ParseUint(id[1], 10, 32)
		if err != nil || n == 1<<32-1 {
			break
		}
		fmt.Fprintf(&text, "%s%02d", id[0], n)
	}
	return text.String()
}

// xidWords are the driver's texts of Xids; %d is the GPU's number. Xids caused
// by a program name it.
var xidWords = map[uint64]struct {
	process bool
	words   string
}{
	13:  {true, "Graphics SM Warp Exception on (GPC 0, TPC 1, SM 0): Out Of Range Address"},
	31:  {true, "channel 0x00000008, intr 00000000. MMU Fault: ENGINE GRAPHICS GPC0 GPCCLIENT_T1_0 faulted @ 0x7f55_3a000000. Fault is of type FAULT_PDE ACCESS_TYPE_VIRT_READ"},
	43:  {true, "channel 00000008"},
	45:  {true, "channel 00000008"},
	48:  {false, "An uncorrectable double bit error (DBE) has been detected on GPU in the framebuffer at partition 6, subpartition 0."},
	62:  {false, "PMU Halt: 0000a1b2 00000000 00000000 00000000"},
	63:  {false, "Row Remapper: New row (0x00000000003c0051) marked for remapping, reset gpu to activate."},
	64:  {false, "Row Remapper: Error recording new row (0x00000000003c0051)"},
	74:  {false, "NVLink: fatal error detected on link 2(0x10000, 0x0, 0x0, 0x0, 0x0, 0x0, 0x0)"},
	79:  {false, "GPU has fallen off the bus."},
	92:  {false, "High single-bit ECC error rate"},
	94:  {true, "Contained: SM (0x1). RST: No, D-RST: No"},
	95:  {false, "Uncontained: LTC TAG (0x2,0x0). RST: Yes, D-RST: No"},
	109: {true, "Ch 00000008, errorString CTX SWITCH TIMEOUT, Info 0x4c010"},
	119: {true, "Timeout after 6s of waiting for RPC response from GPU%d GSP! Expected function 103 (GSP_RM_ALLOC) (0x2081 0x4)."},
	120: {false, "GPU%d GSP task timeout @ pc:0x4bd36c4, task: 1"},
	140: {false, "ECC unrecovered error in the SM"},
	144: {false, "SAW_MVB Nonfatal XC0 i0 Link 00 (0x00000001 0x00000001 0x00000000 0x00000000 0x00000000 0x00000000)"},
	145: {false, "RLW_REMAP Nonfatal XC0 i0 Link 00 (0x00000004 0x00000001 0x00000000 0x00000000 0x00000000 0x00000000)"},
	146: {false, "TLW_RX Nonfatal XC0 i0 Link 00 (0x00000001 0x00000001 0x00000000 0x00000000 0x00000000 0x00000000)"},
	147: {false, "TREX Nonfatal XC0 i0 Link 00 (0x00000001 0x00000001 0x00000000 0x00000000 0x00000000 0x00000000)"},
	148: {false, "NVLPW_CTRL Nonfatal XC0 i0 Link 00 (0x00000001 0x00000001 0x00000000 0x00000000 0x00000000 0x00000000)"},
	149: {false, "NETIR_LINK_EVT Fatal XC0 i0 Link 00 (0x025001c6 0x00000000 0x00000000 0x00000000 0x00000000 0x00000000)"},
	150: {false, "MSE_WATCHDOG Fatal XC0 i0 Link 00 (0x00000001 0x00000001 0x00000000 0x00000000 0x00000000 0x00000000)"},
}

// logXid logs a Xid as a recent driver does.
func (s *State) logXid(d device, code uint64, gi, ci string, in input) {
	if !in.on("log") {
		return
	}
	x := xidWords[code]
	words := x.words
	if strings.Contains(words, "%d") {
		words = fmt.Sprintf(words, d.gpu)
	}
	if words == "" {
		words = "unknown error"
	}
	who := "pid='<unknown>', name=<unknown>"
	if x.process {
		for _, key := range s.keys(fmt.Sprintf("gpu.%d.process.", d.gpu)) {
			rec := s.Get(key)
			name := attr(rec, "name")
			who = "pid=" + attr(rec, "pid") + ", name=" + name[strings.LastIndexByte(name, '/')+1:]
			break
		}
	}
	s.log("NVRM: Xid (%s): %d, %s, %s", xidAddress(s.address(d.gpu), gi, ci), code, who, words)
}

// logRecovery logs the Xid that reports the driver's recovery action.
func (s *State) logRecovery(gpu int, to int64, in input) {
	if !in.on("log") {
		return
	}
	names := []string{"None", "GPU Reset Required", "Node Reboot Required", "Drain P2P", "Drain and Reset", "Recover IMEX Domain", "Bus Reset", "System Reboot"}
	name := func(n int64) string {
		if n >= 0 && n < int64(len(names)) {
			return names[n]
		}
		return "Unknown"
	}
	from, _ := strconv.ParseInt(s.last(device{gpu, -1}, "recovery_action"), 10, 64)
	s.log("NVRM: Xid (%s): 154, GPU recovery action changed from 0x%x (%s) to 0x%x (%s)",
		xidAddress(s.address(gpu), "", ""), from, name(from), to, name(to))
}

// logLost logs what NVIDIA's driver prints when a GPU does not answer.
func (s *State) logLost(gpu int, in input) {
	if !in.on("log") {
		return
	}
	s.log("NVRM: GPU at %s: %s", xidAddress(s.address(gpu), "", ""), s.gpuGet(gpu, "uuid"))
	s.log("NVRM: Xid (%s): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus.", xidAddress(s.address(gpu), "", ""))
	s.log("NVRM: GPU %s: GPU has fallen off the bus.", s.address(gpu))
}

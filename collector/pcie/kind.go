package pcie

import (
	"slices"

	"github.com/accel-exporter/accel-exporter/collector"
)

// Vendors by the number that the PCI-SIG gave them.
const (
	vendorAMD     = 0x1002
	vendorNVIDIA  = 0x10de
	vendorXilinx  = 0x10ee // of AMD
	vendorAltera  = 0x1172
	vendorIntel   = 0x8086
	vendorSilicom = 0x1c2c
	vendorAmazon  = 0x1d0f
)

// vendorNames are values of the label vendor, those that the sources of the
// devices give; who is not here goes by number.
var vendorNames = map[uint32]string{
	vendorAMD: "amd", vendorNVIDIA: "nvidia", vendorXilinx: "amd", vendorAltera: "intel",
	vendorIntel: "intel", vendorSilicom: "silicom", vendorAmazon: "aws",
}

// Classes of functions, as drivers/pci and pci.ids have them, without the
// programming interface.
const (
	classNetwork     = 0x02 // base class
	classBridge      = 0x06 // base class
	classVGA         = 0x0300
	class3D          = 0x0302
	classDisplay     = 0x0380
	classOtherBridge = 0x0680
	classAccelerator = 0x1200
)

// fpgaDrivers bind to cards with an FPGA and to nothing else.
var fpgaDrivers = []string{"dfl-pci", "intel-fpga-pci", "xocl", "xclmgmt", "ami"}

// fpgaDevices are cards that are known by their numbers, also when no driver
// is bound: Intel's PAC A10, D5005, N3000 and OFS cards, Silicom's N5010 and
// N5011, and the application and management functions of AWS F1 and F2. What
// an AWS customer has loaded names itself as the customer likes and is known by
// the management function beside it.
var fpgaDevices = map[uint32][]uint32{
	vendorIntel:   {0x09c4, 0x0b2b, 0x0b30, 0xbcce},
	vendorSilicom: {0x1000, 0x1001},
	vendorAmazon:  {0x9048, 0x9248, 0x1041, 0x1042, 0xf000, 0xf001, 0xf010},
}

// nvSwitches are the numbers of NVLink switches of A100 and H100 boards.
var nvSwitches = []uint32{0x1af1, 0x22a3}

// kind returns what kind of accelerator a function is, "" for none.
func (id *identity) kind() collector.Class {
	base, class := id.class>>16, id.class>>8
	switch {
	case slices.Contains(fpgaDrivers, id.driver) || slices.Contains(fpgaDevices[id.vendor], id.device):
		return collector.FPGA
	case id.vendor == vendorXilinx && base != classNetwork && base != classBridge:
		return collector.FPGA
	case class == classAccelerator && (id.vendor == vendorAltera || id.vendor == vendorSilicom):
		return collector.FPGA
	case id.vendor == vendorNVIDIA && (class == class3D || class == classVGA):
		return collector.GPU
	case id.vendor == vendorNVIDIA && class == classOtherBridge && (id.driver == "nvidia-nvswitch" || slices.Contains(nvSwitches, id.device)):
		return collector.Switch
	case id.vendor == vendorAMD && (class == classAccelerator || class == class3D || class == classDisplay):
		return collector.GPU
	case id.vendor == vendorIntel && class == classDisplay && (id.driver == "i915" || id.driver == "xe" || id.behindPort()):
		// Graphics of a processor sit on the root bus.
		return collector.GPU
	}
	return ""
}

// behindPort reports whether there is a port above the function.
func (id *identity) behindPort() bool { return len(id.path) > 1 }

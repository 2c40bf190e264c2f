package collector

import (
	"slices"
	"strings"
)

// Vendor is a row of the table of vendors: what the packages other than the
// vendor's Source need to know of its devices. The PCI core, the mapping of
// kubelet resources, the import bans and the checks of documentation and chart
// read it.
type Vendor struct {
	// Name is the value of the label vendor: lower case.
	Name string
	// Source is the name of the Source that reads the vendor's devices, and of
	// its package below collector. Empty: only the PCI core reads them.
	Source string
	// More are further Sources, of a vendor with several kinds of devices.
	More []string
	// PCI are the vendor ids that the PCI-SIG assigned.
	PCI []uint32
	// Accelerators select the vendor's devices among the functions on the PCI
	// bus. The first rule that matches gives the class.
	Accelerators []PCIRule
	// Drivers are the kernel drivers that bind to the vendor's accelerators and
	// to nothing else.
	Drivers []string
	// ErrorClasses are the PCI classes, by vendor id, whose errors in the kernel
	// log are reported whatever driver is bound: prefixes of the attribute
	// class. Without an entry, errors of processing accelerators (0x12) are
	// reported.
	ErrorClasses map[uint32][]string
	// Domains are the DNS labels that name the vendor in extended resources
	// and DRA drivers: nvidia in nvidia.com/gpu and gpu.nvidia.com. Empty: no
	// device plugin of the vendor is known.
	Domains []string
}

// PCIRule selects PCI functions. Each field that is set must match.
type PCIRule struct {
	Class  Class  // of the devices that match
	Vendor uint32 // vendor id of the PCI-SIG
	// Devices are device ids of that vendor.
	Devices []uint32
	// Classes are PCI classes, each a base class and a subclass.
	Classes []uint32
	// NotBases are base classes that do not match.
	NotBases []uint32
	// Drivers are kernel drivers, one of which is bound.
	Drivers []string
	// External functions are below a port. Graphics of a processor is on the
	// root bus.
	External bool
}

// PCIFunction is what a PCIRule looks at.
type PCIFunction struct {
	Vendor, Device uint32
	Class          uint32 // base class, subclass and programming interface: the attribute class
	Driver         string
	// External reports whether the function is below a port. It is called only
	// where a rule depends on it.
	External func() bool
}

// PCI classes as in include/linux/pci_ids.h, without the programming interface.
const (
	pciVGA         = 0x0300
	pci3D          = 0x0302
	pciDisplay     = 0x0380
	pciOtherBridge = 0x0680
	pciAccelerator = 0x1200

	pciBaseNetwork = 0x02
	pciBaseBridge  = 0x06
)

var vendors = []Vendor{
	{
		Name: "nvidia", Source: "nvidia", PCI: []uint32{0x10de}, Domains: []string{"nvidia"},
		Drivers: []string{"nvidia", "nvidia-nvswitch", "nouveau", "nova-core"},
		// Display controllers and NVSwitch bridges, not their audio and USB.
		ErrorClasses: map[uint32][]string{0x10de: {"0x03", "0x0680"}},
		Accelerators: []PCIRule{
			{Class: GPU, Vendor: 0x10de, Classes: []uint32{pci3D, pciVGA}},
			{Class: Switch, Vendor: 0x10de, Classes: []uint32{pciOtherBridge}, Drivers: []string{"nvidia-nvswitch"}},
			// NVLink switches of A100 and H100 boards.
			{Class: Switch, Vendor: 0x10de, Classes: []uint32{pciOtherBridge}, Devices: []uint32{0x1af1, 0x22a3}},
		},
	},
	{
		// 0x1172 is Altera.
		Name: "intel", Source: "fpga", PCI: []uint32{0x8086, 0x1172}, Domains: []string{"intel"},
		Drivers:      []string{"dfl-pci", "intel-fpga-pci"},
		ErrorClasses: map[uint32][]string{0x1172: {""}},
		Accelerators: []PCIRule{
			{Class: FPGA, Drivers: []string{"dfl-pci", "intel-fpga-pci"}},
			// PAC A10, D5005, N3000 and OFS cards, also without a driver.
			{Class: FPGA, Vendor: 0x8086, Devices: []uint32{0x09c4, 0x0b2b, 0x0b30, 0xbcce}},
			{Class: FPGA, Vendor: 0x1172, Classes: []uint32{pciAccelerator}},
			{Class: GPU, Vendor: 0x8086, Classes: []uint32{pciDisplay}, Drivers: []string{"i915", "xe"}},
			{Class: GPU, Vendor: 0x8086, Classes: []uint32{pciDisplay}, External: true},
		},
	},
	{
		// 0x10ee was Xilinx.
		Name: "amd", Source: "amd", More: []string{"fpga"}, PCI: []uint32{0x1002, 0x10ee}, Domains: []string{"amd", "xilinx"},
		Drivers:      []string{"xocl", "xclmgmt", "ami", "amdgpu"},
		ErrorClasses: map[uint32][]string{0x10ee: {""}},
		Accelerators: []PCIRule{
			{Class: FPGA, Drivers: []string{"xocl", "xclmgmt", "ami"}},
			{Class: FPGA, Vendor: 0x10ee, NotBases: []uint32{pciBaseNetwork, pciBaseBridge}},
			{Class: GPU, Vendor: 0x1002, Classes: []uint32{pciAccelerator, pci3D, pciDisplay}},
			// Radeons, and graphics of processors.
			{Class: GPU, Vendor: 0x1002, Classes: []uint32{pciVGA}, Drivers: []string{"amdgpu"}},
		},
	},
	{
		Name: "silicom", Source: "fpga", PCI: []uint32{0x1c2c},
		Accelerators: []PCIRule{
			// N5010 and N5011, also without a driver.
			{Class: FPGA, Vendor: 0x1c2c, Devices: []uint32{0x1000, 0x1001}},
			{Class: FPGA, Vendor: 0x1c2c, Classes: []uint32{pciAccelerator}},
		},
	},
	{
		Name: "aws", Source: "fpga", PCI: []uint32{0x1d0f},
		Accelerators: []PCIRule{
			// Application and management functions of F2. The customer's
			// image chooses its own ids; the management function beside it
			// identifies the card.
			{Class: FPGA, Vendor: 0x1d0f, Devices: []uint32{0x9048, 0x9248, 0xf000, 0xf001, 0xf010}},
		},
	},
}

// Vendors returns the table of vendors. The caller must not change it.
func Vendors() []Vendor { return vendors }

// PCIClass returns the class of the accelerator that f belongs to, "" where it
// belongs to none.
func PCIClass(f PCIFunction) Class {
	for i := range vendors {
		if class := vendors[i].PCIClass(f); class != "" {
			return class
		}
	}
	return ""
}

// PCIClass is PCIClass by the rules of v alone.
func (v *Vendor) PCIClass(f PCIFunction) Class {
	for i := range v.Accelerators {
		if r := &v.Accelerators[i]; r.match(f) {
			return r.Class
		}
	}
	return ""
}

func (r *PCIRule) match(f PCIFunction) bool {
	return (r.Vendor == 0 || r.Vendor == f.Vendor) &&
		(len(r.Devices) == 0 || slices.Contains(r.Devices, f.Device)) &&
		(len(r.Classes) == 0 || slices.Contains(r.Classes, f.Class>>8)) &&
		!slices.Contains(r.NotBases, f.Class>>16) &&
		(len(r.Drivers) == 0 || slices.Contains(r.Drivers, f.Driver)) &&
		(!r.External || f.External())
}

// IsAcceleratorDriver reports whether a kernel driver binds to accelerators
// only.
func IsAcceleratorDriver(name string) bool {
	return slices.ContainsFunc(vendors, func(v Vendor) bool { return slices.Contains(v.Drivers, name) })
}

// ReportsPCIErrors reports whether PCIe errors of a function are errors of an
// accelerator. class is the attribute class: 0x030200.
func ReportsPCIErrors(vendor uint32, class string) bool {
	for i := range vendors {
		if classes, ok := vendors[i].ErrorClasses[vendor]; ok {
			return slices.ContainsFunc(classes, func(c string) bool { return strings.HasPrefix(class, c) })
		}
	}
	return strings.HasPrefix(class, "0x12")
}

// PCIVendor returns the name of the vendor with the id of the PCI-SIG, "" where
// the table has none.
func PCIVendor(id uint32) string {
	for i := range vendors {
		if slices.Contains(vendors[i].PCI, id) {
			return vendors[i].Name
		}
	}
	return ""
}

// ResourceVendor returns the name of the vendor that an extended resource or a
// DRA driver belongs to, "" where its domain names none.
func ResourceVendor(resource string) string {
	for i := range vendors {
		if slices.ContainsFunc(vendors[i].Domains, func(d string) bool { return hasLabel(resource, d) }) {
			return vendors[i].Name
		}
	}
	return ""
}

// IsResourceOf reports whether an extended resource or a DRA driver belongs to
// the vendor. A vendor without Domains goes by its name.
func IsResourceOf(vendor, resource string) bool {
	if i := slices.IndexFunc(vendors, func(v Vendor) bool { return v.Name == vendor }); i >= 0 {
		return vendors[i].HasResource(resource)
	}
	return vendor != "" && hasLabel(resource, vendor)
}

// HasResource is IsResourceOf for v.
func (v *Vendor) HasResource(resource string) bool {
	if len(v.Domains) == 0 {
		return hasLabel(resource, v.Name)
	}
	return slices.ContainsFunc(v.Domains, func(d string) bool { return hasLabel(resource, d) })
}

// hasLabel reports whether the domain of a resource has the DNS label.
func hasLabel(resource, label string) bool {
	domain, _, _ := strings.Cut(resource, "/")
	for l := range strings.SplitSeq(domain, ".") {
		if l == label {
			return true
		}
	}
	return false
}

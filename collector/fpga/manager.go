package fpga

import (
	"path"
	"slices"
	"strings"
)

// manager are FPGAs of which the kernel knows no more than an FPGA manager: the
// programmable logic of Zynq, Zynq UltraScale+, Versal and SoC FPGAs, and parts
// that are loaded over SPI or CvP. Facts of the files:
// Documentation/ABI/testing/sysfs-class-fpga-manager, -region, -bridge,
// sysfs-driver-zynqmp-fpga, sysfs-bus-iio.
//
// Such a manager cannot say what is loaded, nor how busy it is.
var manager = family{
	name: "manager",
	allow: slices.Concat(
		pciFiles, managerFiles,
		[]string{
			"*:pcap/status", // ZynqMP, the fabric's own status word
			// Of a region's device: its node in the device tree.
			"devices/platform/*/uevent", "devices/platform/*/*/uevent", "devices/platform/*/*/*/uevent",
			"devicetree/base/model", "*/firmware-name",
		},
		below("iio:device*", "name", "in_temp*_raw", "in_temp*_scale", "in_temp*_offset", "in_temp*_label",
			"in_voltage*_raw", "in_voltage*_scale", "in_voltage*_label"),
	),
	watch: []string{"class/fpga_manager"},
	find:  findManagers,
	open:  func(e *env) card { return newManagerCard(e) },
}

// findManagers lists the FPGA managers of the kernel by the device that each
// belongs to. Those of cards that another family reads are among them: the
// Source leaves them out.
func findManagers(fs *tree) ([]place, error) {
	names, err := fs.Names("class/fpga_manager")
	if err != nil {
		if absent(err) {
			return nil, nil
		}
		return nil, err
	}
	var places []place
	for _, n := range names {
		at, err := fs.Resolve("class/fpga_manager/" + n)
		if err != nil {
			continue // it has just left
		}
		dir := path.Dir(path.Dir(at))
		if path.Base(path.Dir(at)) != "fpga_manager" || slices.ContainsFunc(places, func(p place) bool { return p.dir == dir }) {
			continue
		}
		places = append(places, place{id: path.Base(dir), dir: dir})
	}
	return places, nil
}

// managerVendor is who makes the FPGA, by what its manager's driver calls
// itself.
func managerVendor(name string) string {
	for _, v := range []struct{ prefix, vendor string }{
		{"Xilinx", "amd"},
		{"Stratix10", "intel"},
		{"SoCFPGA", "intel"},
		{"Altera", "intel"},
		{"Lattice", "lattice"},
		{"Microchip", "microchip"},
	} {
		if strings.HasPrefix(name, v.prefix) {
			return v.vendor
		}
	}
	return ""
}

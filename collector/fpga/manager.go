package fpga

import (
	"path"
	"slices"
	"strings"
)

// manager is the family of FPGAs of which the kernel has only an FPGA manager:
// the programmable logic of Zynq, Zynq UltraScale+, Versal and SoC FPGAs, and
// parts that are loaded over SPI or CvP. Source of the files:
// Documentation/ABI/testing/sysfs-class-fpga-manager, -region, -bridge,
// sysfs-driver-zynqmp-fpga, sysfs-bus-iio.
//
// Such a manager reports neither the loaded image nor a utilization.
var manager = family{
	name: "manager",
	allow: slices.Concat(
		pciFiles, managerFiles,
		[]string{
			"*:pcap/status", // ZynqMP: the fabric's status word
			// Of a region's device: its node in the device tree.
			"devices/platform/*/uevent", "devices/platform/*/*/uevent", "devices/platform/*/*/*/uevent",
			"devicetree/base/model", "*/firmware-name",
		},
		below("iio:device*", "name", "in_temp*_raw", "in_temp*_scale", "in_temp*_offset", "in_temp*_label",
			"in_voltage*_raw", "in_voltage*_scale", "in_voltage*_label"),
		// Sensors on the board's I2C buses, and those of the firmware of Agilex.
		below("*-00??/hwmon/hwmon*", hwmonFiles...),
		below("*hwmon*/hwmon/hwmon*", hwmonFiles...),
	),
	watch: []string{"class/fpga_manager"},
	find:  findManagers,
	open:  func(e *env) card { return newManagerCard(e) },
}

// findManagers lists the kernel's FPGA managers by their devices. They include
// those of cards of other families, which the Source leaves out.
func findManagers(fs *tree) ([]place, error) {
	names, err := fs.Names("class/fpga_manager")
	if err != nil {
		if absent(err) {
			return nil, nil
		}
		return nil, err
	}
	var places []place
	soc := 0 // managers outside PCI cards
	for _, n := range names {
		at, err := fs.Resolve("class/fpga_manager/" + n)
		if err != nil {
			continue // it has just left
		}
		dir := path.Dir(path.Dir(at))
		if !onPCI(dir) {
			soc++
		}
		if path.Base(path.Dir(at)) != "fpga_manager" || slices.ContainsFunc(places, func(p place) bool { return p.dir == dir }) {
			continue
		}
		places = append(places, place{id: path.Base(dir), dir: dir, kubeIDs: []string{n}})
	}
	for i := range places {
		// The plugin that numbers devices knows a node with one manager.
		if p := &places[i]; soc == 1 && !onPCI(p.dir) {
			p.kubeIDs = append(p.kubeIDs, "1")
		}
	}
	return places, nil
}

// managerVendor returns the vendor of the FPGA by the name of its manager's
// driver.
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

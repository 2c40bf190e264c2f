package fpga

import (
	"path"
	"slices"
	"strings"

	"github.com/accel-exporter/accel-exporter/collector"
	"github.com/accel-exporter/accel-exporter/collector/sysfs"
)

// dfl is the family of the cards with a Device Feature List: PAC and OFS boards
// of Intel and Altera and boards derived from them, with the drivers of
// drivers/fpga or Intel's out-of-tree drivers of the same names. Source of the
// files: Documentation/ABI/testing/sysfs-platform-dfl-fme, -port,
// sysfs-bus-dfl, sysfs-driver-intel-m10-bmc.
//
// The card reports no utilization, because no such counter exists. An OFS board
// does not report which function is loaded behind a virtual function.
var dfl = family{
	name: "dfl",
	allow: slices.Concat(
		pciFiles, managerFiles,
		below("dfl-fme.*", "bitstream_id", "bitstream_metadata"),
		below("dfl-fme.*/errors", "fme_errors", "pcie0_errors", "pcie1_errors", "nonfatal_errors", "catfatal_errors", "inject_errors", "revision"),
		below("dfl-port.*", "id", "afu_id", "power_state"),
		below("dfl-port.*/errors", "errors", "revision"),
		below("dfl_dev.*", "inf*_cal_fail", "inf*_init_done", "nios_fw_version", "bmc_version", "bmcfw_version"),
		below("spi*.*", "bmc_version", "bmcfw_version"),
		below("*-sec-update.*/security", "sr_root_entry_hash", "pr_root_entry_hash", "bmc_root_entry_hash"),
		below("m10bmc-secure.*/ifpga_sec_mgr/ifpga_sec*/security", "sr_root_entry_hash", "pr_root_entry_hash", "bmc_root_entry_hash"),
		below("*-sec-update.*/control", "fpga_boot_image", "power_on_image"),
		below("*-sec-update.*/firmware/secure-update*", "error"),
		below("dfl-fme.*/hwmon/hwmon*", append([]string{"power1_max", "power1_crit"}, hwmonFiles...)...),
		below("*bmc-hwmon.*/hwmon/hwmon*", hwmonFiles...),
	),
	find: findDFL,
	open: func(e *env) card { return newDFLCard(e, &dflMainline) },
}

const dflDriverDir = "bus/pci/drivers/dfl-pci"

// findDFL lists the slots with a function bound to dfl-pci. A card can have
// several such functions, some of them virtual. The one with the FME, the
// card's management engine, represents it.
func findDFL(fs *tree) ([]place, error) {
	names, err := fs.Names(dflDriverDir)
	if err != nil {
		if absent(err) {
			return nil, nil
		}
		return nil, err
	}
	slots := map[string][]string{} // directories by card
	var order []string
	for _, bdf := range names {
		if !sysfs.PCIAddress(bdf) {
			continue
		}
		dir, err := fs.Target(dflDriverDir + "/" + bdf)
		if err != nil {
			continue // it has just left
		}
		slot := sysfs.PCISlot(bdf)
		if pf, err := fs.Link(dir + "/physfn"); err == nil && sysfs.PCIAddress(pf) {
			slot = sysfs.PCISlot(pf)
		}
		if slots[slot] == nil {
			order = append(order, slot)
		}
		slots[slot] = append(slots[slot], dir)
	}
	if len(order) == 0 {
		return nil, nil
	}
	all, _ := fs.Names("bus/pci/devices")
	var places []place
	for _, slot := range order {
		dirs := slots[slot]
		rank := func(d string) int { return dflRank(fs, d) }
		dir := slices.MinFunc(dirs, func(a, b string) int { return rank(a) - rank(b) })
		if rank(dir) == notACard {
			continue // the card's function has left, or has another driver
		}
		p := place{id: path.Base(dir), dir: dir}
		p.claims = slices.DeleteFunc(dirs, func(d string) bool { return d == dir })
		p.functions = dflFunctions(fs, p, all)
		p.kubeIDs = append(slices.Clone(p.functions), dflMainline.kubeIDs(fs, append([]string{p.dir}, p.claims...)...)...)
		places = append(places, p)
	}
	return places, nil
}

// notACard is the rank of a function with neither FME nor port.
const notACard = 2

// dflRank is lower for a function that represents the card better.
func dflRank(fs *tree, dir string) int {
	units := dflMainline.units(fs, dir)
	switch {
	case slices.ContainsFunc(units, isFME):
		return 0
	case len(units) > 0:
		return 1
	}
	return notACard
}

func isFME(unit string) bool { return strings.Contains(path.Base(unit), "fme.") }

// dflDriver is a driver's names for the units of a card, its management engine, the
// FME, and its ports, and for the files of the FME.
type dflDriver struct {
	dir, prefix string
	registers   []register   // below errors
	sensors     []sensorFile // the mainline has its sensors in hwmon
}

// sensorFile is a file with degrees or watts, decimal or with 0x, or with an alarm. A limit
// of 0 is not set, and a sensor of a powered card that reads 0 has measured nothing.
type sensorFile struct {
	file   string
	metric *collector.Metric
	labels []string
}

var dflMainline = dflDriver{dir: "fpga_region", prefix: "dfl-", registers: []register{
	{"fme_errors", "fme", "fme"},
	{"pcie0_errors", "pcie0", "pcie0"},
	{"pcie1_errors", "pcie1", "pcie1"},
	{"nonfatal_errors", "nonfatal", "nonfatal"},
	{"catfatal_errors", "fatal", "fatal"},
	{"inject_errors", "inject", "inject"},
}}

// units lists the units below PCI functions. A port that is assigned to a virtual
// function is found there.
func (d *dflDriver) units(fs *tree, functions ...string) (units []string) {
	for _, function := range functions {
		for _, device := range namesUnder(fs, function+"/"+d.dir) {
			for _, n := range namesUnder(fs, device) {
				name := path.Base(n)
				if (strings.HasPrefix(name, d.prefix+"fme.") || strings.HasPrefix(name, d.prefix+"port.")) && len(units) < maxRegions {
					units = append(units, n)
				}
			}
		}
	}
	return units
}

// kubeIDs are the names of the units with either driver: Intel's device plugin has
// used both.
func (d *dflDriver) kubeIDs(fs *tree, functions ...string) (ids []string) {
	for _, unit := range d.units(fs, functions...) {
		name := path.Base(unit)
		other := map[string]string{"dfl-": "intel-fpga-", "intel-fpga-": "dfl-"}[d.prefix]
		ids = append(ids, name, other+strings.TrimPrefix(name, d.prefix))
	}
	return ids
}

// dflFunctions are the other functions in the card's slot and its virtual
// functions.
func dflFunctions(fs *tree, p place, all []string) []string {
	var out []string
	for _, bdf := range all {
		if bdf != p.id && sysfs.PCIAddress(bdf) && sysfs.PCISlot(bdf) == sysfs.PCISlot(p.id) {
			out = append(out, bdf)
		}
	}
	for _, n := range namesUnder(fs, p.dir) {
		if strings.HasPrefix(path.Base(n), "virtfn") {
			if bdf, err := fs.Link(n); err == nil && sysfs.PCIAddress(bdf) {
				out = append(out, bdf)
			}
		}
	}
	for _, d := range p.claims {
		if bdf := path.Base(d); bdf != p.id {
			out = append(out, bdf)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// namesUnder returns the paths of the entries of dir, no path where dir cannot
// be listed.
func namesUnder(fs *tree, dir string) []string {
	names, err := fs.Names(dir)
	if err != nil {
		return nil
	}
	for i, n := range names {
		names[i] = dir + "/" + n
	}
	return names
}

// dflModels are the models by PCI vendor and device id and, where one id has
// several, by subsystem device id.
var dflModels = map[string]string{
	"8086:09c4":      "Intel PAC with Arria 10 GX",
	"8086:09c5":      "Intel PAC with Arria 10 GX",
	"8086:0b30":      "Intel FPGA PAC N3000",
	"8086:0b31":      "Intel FPGA PAC N3000", // virtual function
	"8086:0b2b":      "Intel FPGA PAC D5005",
	"8086:0b2c":      "Intel FPGA PAC D5005",
	"8086:bcce:1770": "Intel OFS N6000",
	"8086:bccf:1770": "Intel OFS N6000",
	"8086:bcce:1771": "Intel OFS N6001",
	"8086:bccf:1771": "Intel OFS N6001",
	"8086:bcce:17d4": "Intel IPU Platform F2000X-PL",
	"8086:bccf:17d4": "Intel IPU Platform F2000X-PL",
	"8086:bcce:138d": "Intel FPGA PAC D5005",
	"8086:bccf:138d": "Intel FPGA PAC D5005",
	"8086:bcce":      "Intel OFS FPGA",
	"8086:bccf":      "Intel OFS FPGA",
	"1c2c:1000":      "Silicom N5010",
	"1c2c:1001":      "Silicom N5011",
	"1c2c:1002":      "Silicom N5013",
	"1c2c:1003":      "Silicom N5014",
	"8086:0ddb":      "Intel OFS CMC",
	"8086:af00":      "Intel OFS FPGA",
	"8086:af01":      "Intel OFS FPGA",
	"8086:bcbd":      "Intel MCP with Arria 10 GX",
	"8086:bcc0":      "Intel MCP with Arria 10 GX",
	"8086:bcc1":      "Intel MCP with Arria 10 GX",
	"1ded:8103":      "Alibaba F5",
}

func dflModel(p pciIdentity) string {
	if p.vendor == "" {
		return "DFL FPGA" // it left before it was read
	}
	id := p.vendor + ":" + p.device
	for _, key := range []string{id + ":" + p.subsystem, id} {
		if m, ok := dflModels[key]; ok {
			return m
		}
	}
	return "DFL FPGA " + id
}

package fpga

import (
	"slices"
	"strings"

	"github.com/accel-exporter/accel-exporter/collector/sysfs"
)

// xrt is the family of the Alveo cards with XRT. A card has two PCI functions,
// either of which may be absent: the user function, with the driver xocl, which
// has the loaded image and its activity, and the management function, with
// xclmgmt, which has the board. A virtual machine has only the first; sensors
// then come through a mailbox from the host that has the management function.
//
// The files are listed in XRT's doc/toc/sysfs.rst and in the attribute tables
// in drivers/xocl. Files whose reading has an effect are left out: error of the
// management function (clears), mig_cache_update (calls the other function),
// cu.*/stat, stats_begin and stats_end (change statistics), cu.*/crc_buf
// (consumes), the ecc_* of the user function (stale until requested), targets
// of the hwmon devices, and everything writable.
var xrt = family{
	name: "xrt",
	allow: slices.Concat(
		pciFiles,
		below(
			anyFunction, "board_name", "ready", "dev_offline", "device_bad_state", "mig_calibration", "logic_uuids", "interface_uuids",
			"xclbinuuid", "kds_custat_raw", "kds_scustat_raw", "memstat",
		),
		below("rom.[um].*", "VBNV", "timestamp", "FPGA"),
		below("dma.*.u.*", "channel_stat_raw"),
		below("icap.[um].*", "clock_freqs"),
		below("mig*.m.*", "name", "ecc_enabled", "ecc_status", "ecc_ce_cnt", "ecc_ue_cnt"),
		below("firewall.[um].*", "level", "detected_trip"),
		below("firewall.u.*", "detected_time"),
		below("xmc*.[um].*", "serial_num", "bd_name", "bmc_ver", "exp_bmc_ver", "version", "max_power", "fan_presence", "xmc_power_warn", "xmc_heartbeat_stall", "xmc_heartbeat_count"),
		below("xmc*.[um].*", xmcFiles()...),
		below("sysmon.m.*", "temp", "vcc_int", "vcc_aux", "vcc_bram"),
		below("hwmon_sdm.[um].*", "serial_num", "bd_name", "bd_part_num", "active_msp_ver", "temp_sensors_raw", "voltage_sensors_raw", "current_sensors_raw"),
		below("xgq_vmr.m.*", "vmr_status", "clk_scaling_stat_raw"),
		below("hwmon/hwmon*", "name", "power1_status"),
		below("hwmon/hwmon*", sdmFiles()...),
	),
	find: findXRT,
	open: func(e *env) card {
		return &alveo{env: e, known: map[string]bool{}, clocked: map[string]bool{}, trips: map[string]*trip{}, identity: identity{}}
	},
}

// anyFunction matches the directory of a PCI function.
const anyFunction = "????:??:??.?"

// findXRT pairs the functions of the two drivers.
func findXRT(fs *tree) ([]place, error) {
	users, err := driven(fs, "xocl")
	if err != nil {
		return nil, err
	}
	managers, err := driven(fs, "xclmgmt")
	if err != nil {
		return nil, err
	}
	cards := map[string]*place{}
	var order []string
	add := func(address string) *place {
		key := sysfs.PCISlot(address)
		if cards[key] == nil {
			cards[key] = &place{}
			order = append(order, key)
		}
		return cards[key]
	}
	for _, u := range users {
		// The first of several user functions represents the card.
		if p := add(u); p.id == "" {
			p.id = u
		} else {
			p.functions = append(p.functions, u)
		}
	}
	for _, m := range managers {
		p := add(m)
		if p.id == "" {
			p.id = sibling(fs, m)
		}
		if p.id != m {
			p.functions = append(p.functions, m)
		}
	}
	slices.Sort(order)
	var places []place
	for _, key := range order {
		if p := cards[key]; p.locate(fs) {
			p.kubeIDs = renderers(fs, p)
			places = append(places, *p)
		}
	}
	return places, nil
}

// renderers lists the card's DRM nodes.
func renderers(fs *tree, p *place) (nodes []string) {
	for _, dir := range append([]string{p.dir}, p.claims...) {
		names, _ := fs.Names(dir + "/drm")
		for _, n := range names {
			if strings.HasPrefix(n, "renderD") && len(nodes) < 4 {
				nodes = append(nodes, n)
			}
		}
	}
	return nodes
}

// driven lists the PCI addresses of the functions bound to a driver.
func driven(fs *tree, driver string) ([]string, error) {
	names, err := fs.Names("bus/pci/drivers/" + driver)
	if err != nil && !absent(err) {
		return nil, err
	}
	return slices.DeleteFunc(names, func(n string) bool { return !sysfs.PCIAddress(n) }), nil
}

// sibling returns the function after a management function: the user function,
// which names the card also while it has another driver, as for a virtual
// machine. Where there is none, the management function names the card.
func sibling(fs *tree, management string) string {
	last := len(management) - 1
	user := management[:last] + string(management[last]+1)
	if management[last] < '7' && fs.Exists("bus/pci/devices/"+user) {
		return user
	}
	return management
}

// locate finds the directories of p's functions; it is false where the card has
// left.
func (p *place) locate(fs *tree) bool {
	var err error
	if p.dir, err = fs.Target("bus/pci/devices/" + p.id); err != nil {
		return false
	}
	for _, f := range p.functions {
		if dir, err := fs.Target("bus/pci/devices/" + f); err == nil {
			p.claims = append(p.claims, dir)
		}
	}
	return true
}

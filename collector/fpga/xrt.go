package fpga

import (
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/accel-exporter/accel-exporter/collector"
)

// xrt is the family of the Alveo cards with XRT. A card has two PCI functions,
// either of which may be absent: the user function, with the driver xocl, which
// has the loaded image and its activity, and the management function, with
// xclmgmt, which has the board. A virtual machine has only the first; sensors
// then come through a mailbox from the host that has the other.
//
// The files are those of XRT's doc/toc/sysfs.rst and of the attribute tables in
// drivers/xocl. Files whose reading has an effect are left out: error of the
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
			"xclbinuuid", "kdsstat", "kds_custat_raw", "kds_scustat_raw", "memstat", "memstat_raw",
		),
		below("rom.[um].*", "VBNV", "timestamp", "FPGA"),
		below("cu.u.*", "cu_stat", "base_paddr"),
		below("dma.*.u.*", "channel_stat_raw"),
		below("icap.[um].*", "clock_freqs"),
		below("mig*.m.*", "name", "ecc_enabled", "ecc_status", "ecc_ce_cnt", "ecc_ue_cnt"),
		below("firewall.m.*", "level", "detected_level_name", "detected_time", "detected_trip"),
		below("xmc*.[um].*", "serial_num", "bd_name", "bmc_ver", "exp_bmc_ver", "version", "max_power", "fan_presence", "xmc_power_warn", "xmc_heartbeat_stall"),
		below("xmc*.[um].*", xmcFiles()...),
		below("sysmon.m.*", "temp", "vcc_int", "vcc_aux", "vcc_bram"),
		below("hwmon_sdm.[um].*", "serial_num", "bd_name", "bd_part_num", "active_msp_ver", "temp_sensors_raw", "voltage_sensors_raw", "current_sensors_raw"),
		below("xgq_vmr.m.*", "vmr_status", "clk_scaling_stat_raw"),
		below("hwmon/hwmon*", "name", "power1_input", "power1_unitm", "power1_status"),
	),
	watch: []string{"bus/pci/drivers/xocl", "bus/pci/drivers/xclmgmt"},
	find:  findXRT,
	open:  func(e *env) card { return &alveo{env: e, known: map[string]bool{}, identity: map[string]string{}} },
}

// anyFunction matches the directory of a PCI function.
const anyFunction = "????:??:??.?"

// alveo reads one card.
type alveo struct {
	*env
	user, mgmt subdevices
	// listed is when the directories were last read; zero where they may have
	// changed since.
	listed time.Time
	// known are the sensors and flags, by file, that have once had a value:
	// what does not exist reads 0.
	known map[string]bool

	// identity is the last text of the card's identity files.
	identity map[string]string

	slots   []*slotRegion
	asked   bool   // image is known
	image   string // uuids of the loaded images
	banks   []labelledBank
	units   map[unitPlace]*labelledUnit
	sensors []xmcReading
	labels  labelCache

	load struct {
		sync.Mutex
		unit   string    // directory of one compute unit, empty where there is none
		region *region   // receives the loads of an image
		since  time.Time // when the units left, zero while they are there
	}
	unitsLeft bool // as the round started, a load may have been in progress
}

// read implements card.
func (a *alveo) read(r *reading) {
	a.list(r)
	a.unitsLeft = a.loading(loadPatience)
	a.identify(r)
	answered := a.state(r)
	answered = a.images(r) || answered
	a.computeUnits(r)
	a.transfers(r)
	a.memories(r)
	a.clocks(r)
	a.firewalls(r)
	a.ecc(r)
	a.board(r)
	a.vmr(r)
	if !answered {
		// The rest is from memory.
		r.Down, r.Readings = collector.ReasonError, nil
	}
}

// xrtStates are the values of the label state of accel_fpga_card_state for
// XRT's drivers.
var xrtStates = []string{"ready", "not_ready", "offline", "reset_required"}

// state sets whether the card can be used.
func (a *alveo) state(r *reading) (answered bool) {
	ready, ok := a.flag(r, a.user.file("ready"))
	if !ok {
		ready, ok = a.flag(r, a.mgmt.file("ready"))
	}
	offline, _ := a.flag(r, a.user.file("dev_offline"))
	away, _ := a.flag(r, a.mgmt.file("dev_offline"))
	bad, _ := a.flag(r, a.user.file("device_bad_state"))
	state := ""
	switch {
	case offline || away:
		state = "offline"
	case bad:
		state = "reset_required"
	case ok && ready:
		state = "ready"
	case ok:
		state = "not_ready"
	default:
		return false
	}
	a.labels.states(r, collector.FPGACardState, xrtStates, state)
	return true
}

// flag reads a file with 0 or another number. An absent function has no file.
func (a *alveo) flag(r *reading, name string) (on, ok bool) {
	if name == "" {
		return false, false
	}
	text, ok := r.text(name)
	if !ok {
		return false, false
	}
	v, ok := a.natural(r, collector.FPGACardState, text)
	return v != 0, ok
}

const (
	// longestLoad is how long compute units may be absent before the card
	// counts as having no image.
	longestLoad = time.Minute
	// loadPatience is how long a load may take before the attributes that it
	// blocks are read nevertheless and the previous image is no longer
	// reported.
	loadPatience = 20 * time.Second
)

// poll implements poller. While an image is loaded, the card's compute units
// are absent: one directory read shows a load without calling a driver.
func (a *alveo) poll(now time.Time) {
	a.load.Lock()
	unit, region := a.load.unit, a.load.region
	a.load.Unlock()
	if unit == "" || region == nil {
		return
	}
	there := a.pollFS.Exists(unit) || a.anyUnit()
	a.load.Lock()
	defer a.load.Unlock()
	if a.load.unit != unit {
		return
	}
	switch {
	case there:
		a.load.since = time.Time{}
	case a.load.since.IsZero():
		a.load.since = now
	}
	region.setBusy(now, !there && now.Sub(a.load.since) < longestLoad)
}

// anyUnit reports whether the card has compute units of any number.
func (a *alveo) anyUnit() bool {
	names, _ := a.pollFS.Names(a.dir)
	return slices.ContainsFunc(names, func(n string) bool { return strings.HasPrefix(n, "cu.u.") })
}

// loading reports whether the compute units left less than patience ago, as
// during the load of an image.
func (a *alveo) loading(patience time.Duration) bool {
	a.load.Lock()
	defer a.load.Unlock()
	return !a.load.since.IsZero() && time.Since(a.load.since) < patience
}

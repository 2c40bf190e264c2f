package fpga

import (
	"cmp"
	"slices"
	"strings"

	"github.com/accel-exporter/accel-exporter/collector"
	"github.com/accel-exporter/accel-exporter/collector/sysfs"
)

// ami is the family of the Versal cards with AMD's management interface: the
// Alveo V80. The files are defined in ami_sysfs.c and ami_hwmon.c of the AVED
// project.
//
// No sensor is read. When an *_input file is read, the driver compares the
// value with the sensor's critical limit and, if it is reached, sends SIGBUS to
// every process that uses the card: reading would end the workload. The
// driver's averages and extremes are over the whole time since the firmware
// started. What remains is harmless: the limits, and whether the sensor exceeds
// them, which is computed without that check.
var ami = family{
	name: "ami",
	allow: slices.Concat(
		pciFiles,
		below(anyFunction, "dev_state", "dev_name", "logic_uuid", "amc_version", "board_serial", "part_num", "power_mode"),
		below("hwmon/hwmon*", "name"),
		below("hwmon/hwmon*", amiFiles()...),
	),
	find: findAMI,
	open: func(e *env) card { return &versal{env: e, identity: identity{}} },
}

// amiChannels are the sensors of the card. The driver warns at a sensor's first
// limit, ends the programs that use the card at the second, and its firmware
// powers the card down at the third. hwmon has no names for these, so the driver
// uses lcrit for the second.
var (
	amiLimits   = []limit{{"max", "warning"}, {"lcrit", "critical"}, {"crit", "fatal"}}
	amiChannels = []channel{
		{"temp", nil, 1e-3, collector.TemperatureLimit, amiLimits, amiLimits},
		{"in", nil, 1e-3, collector.FPGAVoltageLimit, amiLimits, amiLimits},
		{"curr", nil, 1e-3, collector.FPGACurrentLimit, amiLimits, amiLimits},
		{"power", nil, 1e-6, collector.FPGAPowerThreshold, amiLimits, amiLimits},
	}
)

func amiFiles() []string {
	var files []string
	for _, c := range amiChannels {
		files = append(files, c.kind+"*_label", c.kind+"*_status")
		for _, l := range amiLimits {
			files = append(files, c.kind+"*_"+l.file, c.kind+"*_"+l.file+"_alarm")
		}
	}
	return files
}

// findAMI lists the cards by their first function: only it has sensors.
func findAMI(fs *tree) ([]place, error) {
	functions, err := driven(fs, "ami")
	if err != nil {
		return nil, err
	}
	var cards []place
	for _, f := range functions { // sorted: function 0 is first
		if n := len(cards); n > 0 && sysfs.PCISlot(cards[n-1].id) == sysfs.PCISlot(f) {
			cards[n-1].functions = append(cards[n-1].functions, f)
			continue
		}
		cards = append(cards, place{id: f})
	}
	var there []place
	for _, p := range cards {
		if p.locate(fs) {
			there = append(there, p)
		}
	}
	return there, nil
}

// versal reads one V80.
type versal struct {
	*env
	identity
}

// amiStates are the values of the label state of accel_fpga_card_state for this
// driver, lower case.
var amiStates = []string{"init", "ready", "missing_info", "no_amc", "init_error", "shutdown", "compat"}

// read implements card.
func (v *versal) read(r *reading) {
	r.Vendor = "amd"
	text := func(file string) string { return v.first(r, identityInterval, []string{v.dir}, file) }
	r.Model = cmp.Or(text("dev_name"), "ALVEO V80")
	r.info(v.env, "ami", r.pci, "", text("board_serial"), text("part_num"), "")
	// The version is followed by counts of later changes.
	if version, _, _ := strings.Cut(text("amc_version"), " +0 *0"); version != "" {
		r.Set(collector.FirmwareInfo, 1, "amc", version)
	}
	if id := strings.ToLower(text("logic_uuid")); isUUID(id) {
		r.Set(collector.FPGABitstreamInfo, 1, "static", "logic", id)
	}
	if w, ok := amiPower[text("power_mode")]; ok {
		r.Set(collector.PowerLimit, w, "max")
	}
	state, ok := r.text(v.dir + "/dev_state")
	if !ok {
		r.Down, r.Readings = collector.ReasonError, nil
		return
	}
	if state = strings.ToLower(state); !slices.Contains(amiStates, state) {
		r.Reject(collector.FPGACardState, collector.RejectType)
	} else {
		r.states(collector.FPGACardState, amiStates, state)
	}
	for _, dir := range namesUnder(r.fs, v.dir+"/hwmon") {
		if name, ok := r.textEvery(identityInterval, dir+"/name"); ok && name == "Alveo" {
			v.limits(r, &chip{dir: dir, name: name})
			break
		}
	}
}

// limits sets the limits of the sensors and whether they are exceeded.
func (v *versal) limits(r *reading, c *chip) {
	r.findSensors(c, amiChannels, "label", map[string]bool{}, func(_, id, label string) string { return cmp.Or(label, id) })
	for i := range c.sensors {
		s := &c.sensors[i]
		// The family of power thresholds is the card's total, the first sensor.
		s.unlimited = s.kind == "power" && s.id != "power1"
		if status, ok := r.text(c.dir + "/" + s.id + "_status"); ok && status == "Sensor Present and Valid" {
			r.readLimits(identityInterval, s, 0, false)
		}
	}
}

// amiPower are the watts of power_mode.
var amiPower = map[string]float64{"75W": 75, "150W": 150, "225W": 225, "300W": 300, "350W": 350}

package fpga

import (
	"path"
	"slices"
	"strings"

	"github.com/accel-exporter/accel-exporter/collector"
)

// ami is the family of the Versal cards with AMD's management interface: the
// Alveo V80. The files are those of ami_sysfs.c and ami_hwmon.c of the AVED
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
	watch: []string{"bus/pci/drivers/ami"},
	find:  findAMI,
	open:  func(e *env) card { return &versal{env: e, identity: map[string]string{}} },
}

// amiLimits are the thresholds of a sensor, with the label of the driver's
// measure: it warns, ends the programs that use the card, and the firmware
// powers the card down. hwmon has no names for these, so the driver uses lcrit
// for the second.
var amiLimits = []suffix{{"max", "warning"}, {"lcrit", "critical"}, {"crit", "fatal"}}

var amiChannels = []struct {
	kind  string
	limit **collector.Metric
	unit  float64
}{
	{"temp", &collector.TemperatureLimit, 1e-3},
	{"in", &collector.FPGAVoltageLimit, 1e-3},
	{"curr", &collector.FPGACurrentLimit, 1e-3},
	{"power", &collector.FPGAPowerThreshold, 1e-6},
}

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
		if n := len(cards); n > 0 && pciSlot(cards[n-1].id) == pciSlot(f) {
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
	chip    string // directory of its hwmon device, empty until found
	sensors []amiSensor
	labels  labelCache
	// identity is the last text of the card's identity files.
	identity map[string]string
}

// amiSensor is one channel of the hwmon device.
type amiSensor struct {
	path, kind string // .../hwmon4/temp1, temp
	label      string
	limit      *collector.Metric
	unit       float64
	has        []bool // of amiLimits
}

// amiStates are the values of the label state of accel_fpga_card_state for this
// driver, lower case.
var amiStates = []string{"init", "ready", "missing_info", "no_amc", "init_error", "shutdown", "compat"}

// read implements card.
func (v *versal) read(r *reading) {
	r.Vendor = "amd"
	text := func(file string) string {
		s, _ := r.textEvery(identityInterval, v.dir+"/"+file)
		if s = labelText(s); s != "" && s != "N/A" {
			v.identity[file] = s
		}
		return v.identity[file]
	}
	if r.Model = text("dev_name"); r.Model == "" {
		r.Model = "ALVEO V80"
	}
	r.info(v.env, "ami", r.pci, text("board_serial"), text("part_num"), "")
	// The version is followed by counts of later changes.
	if version, _, _ := strings.Cut(text("amc_version"), " +0 *0"); version != "" {
		r.Set(collector.FirmwareInfo, 1, "amc", version)
	}
	if id := strings.ToLower(text("logic_uuid")); isUUID(id) || isHexID(id) {
		r.Set(collector.FPGABitstreamInfo, 1, "static", "logic", id)
	}
	if w := amiPower(text("power_mode")); w > 0 {
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
		v.labels.states(r, collector.FPGACardState, amiStates, state)
	}
	v.plan(r)
	for i := range v.sensors {
		v.sensors[i].read(r, &v.labels)
	}
}

// amiPower parses power_mode, such as 150W.
func amiPower(text string) float64 {
	switch text {
	case "75W":
		return 75
	case "150W":
		return 150
	case "225W":
		return 225
	case "300W":
		return 300
	case "350W":
		return 350
	}
	return 0
}

// plan finds the card's hwmon device and its channels. They do not change while
// the driver is bound, except for the hwmon number.
func (v *versal) plan(r *reading) {
	if v.chip != "" && r.fs.Exists(v.chip) {
		return
	}
	v.chip, v.sensors = "", nil
	chips, _ := r.fs.Names(v.dir + "/hwmon")
	for _, c := range chips {
		dir := v.dir + "/hwmon/" + c
		if name, ok := r.text(dir + "/name"); ok && name == "Alveo" {
			v.chip = dir
			break
		}
	}
	if v.chip == "" {
		return
	}
	names, err := r.fs.Names(v.chip)
	r.fail(err)
	has := make(map[string]bool, len(names))
	for _, n := range names {
		has[n] = true
	}
	slices.SortFunc(names, natural)
	taken := map[string]bool{}
	for _, n := range names {
		id, isLabel := strings.CutSuffix(n, "_label")
		if !isLabel || len(v.sensors) >= maxChannels {
			continue
		}
		kind := strings.TrimRight(id, "0123456789")
		for _, c := range amiChannels {
			if c.kind != kind {
				continue
			}
			s := amiSensor{path: v.chip + "/" + id, kind: kind, limit: *c.limit, unit: c.unit}
			if text, _ := r.text(v.chip + "/" + n); labelText(text) != "" {
				s.label = labelText(text)
			} else {
				s.label = id
			}
			if taken[kind+s.label] {
				s.label += " " + path.Base(s.path)
			}
			taken[kind+s.label] = true
			for _, l := range amiLimits {
				s.has = append(s.has, has[id+"_"+l.file])
			}
			v.sensors = append(v.sensors, s)
		}
	}
}

// read sets the values of a sensor that exists and has one.
func (s *amiSensor) read(r *reading, labels *labelCache) {
	if status, ok := r.text(s.path + "_status"); !ok || status != "Sensor Present and Valid" {
		return
	}
	var values [3]float64
	for i, l := range amiLimits {
		if !s.has[i] {
			continue
		}
		if text, ok := r.textEvery(identityInterval, s.path+"_"+l.file); ok {
			values[i], _ = r.whole(s.limit, text, s.unit)
		}
		if on, ok := r.value(collector.FPGASensorAlarm, s.path+"_"+l.file+"_alarm", 1); ok && values[i] > 0 {
			r.Set(collector.FPGASensorAlarm, on, labels.of(s.label, l.name)...)
		}
	}
	for i, l := range amiLimits {
		switch {
		case values[i] <= 0: // none
		case i+1 < len(values) && values[i+1] > 0 && values[i] > values[i+1], i > 0 && values[i-1] > values[i]:
			r.Reject(s.limit, collector.RejectRange) // in the wrong order neither is valid
		case s.kind == "power" && s.path != path.Dir(s.path)+"/power1":
			// The family is the card's total power, the first sensor.
		case s.kind == "power":
			r.Set(s.limit, values[i], labels.of(l.name, "")[:1]...)
		default:
			r.Set(s.limit, values[i], labels.of(s.label, l.name)...)
		}
	}
}

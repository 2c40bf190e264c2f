package fpga

import (
	"math"
	"path"
	"strconv"
	"strings"

	"github.com/accel-exporter/accel-exporter/collector"
)

// chip is one hwmon device of a card with its sensors and their metrics. The
// files follow Documentation/hwmon/sysfs-interface.
type chip struct {
	dir, name string
	sensors   []sensor
}

// sensor is one channel of a chip.
type sensor struct {
	kind   string // temp, in, curr or power
	label  string // as the driver prints it, or kind and number
	metric *collector.Metric
	labels []string
	input  string
	// unit is the value of one count of the file in the metric's unit.
	unit   float64
	limits []limit
	alarms []limit
}

// limit is a threshold of a sensor, or its alarm.
type limit struct {
	file   string
	name   string
	labels []string
}

// hwmonFiles are the files of a chip that a family may open, without their
// directory. Averages, extremes, targets and settings are excluded.
var hwmonFiles = []string{
	"name", "temp*_label", "in*_label", "curr*_label", "power*_label",
	"temp*_input", "in*_input", "curr*_input", "power*_input",
	"temp*_max", "temp*_crit", "temp*_emergency", "in*_min", "in*_lcrit", "in*_max", "in*_crit",
	"curr*_max", "curr*_crit", "temp*_max_alarm", "temp*_crit_alarm", "power*_max_alarm", "power*_crit_alarm",
}

// below returns patterns of the files under a directory.
func below(dir string, files ...string) []string {
	out := make([]string, len(files))
	for i, f := range files {
		out[i] = dir + "/" + f
	}
	return out
}

// channel is the quantity that a kind of sensor measures.
type channel struct {
	kind    string
	metric  **collector.Metric
	unit    float64
	limit   **collector.Metric
	limits  []suffix
	alarmed bool
}

type suffix struct{ file, name string }

var channels = []channel{
	{"temp", &collector.TemperatureCelsius, 1e-3, &collector.TemperatureLimit, []suffix{{"max", "warning"}, {"crit", "critical"}, {"emergency", "shutdown"}}, true},
	{"in", &collector.FPGAVoltage, 1e-3, &collector.FPGAVoltageLimit, []suffix{{"lcrit", "low_critical"}, {"min", "low_warning"}, {"max", "warning"}, {"crit", "critical"}}, false},
	{"curr", &collector.FPGACurrent, 1e-3, &collector.FPGACurrentLimit, []suffix{{"max", "warning"}, {"crit", "critical"}}, false},
	{"power", &collector.FPGARailPower, 1e-6, &collector.FPGAPowerThreshold, nil, true},
}

// maxChips and maxChannels bound the chips of a card and the channels of each.
const (
	maxChips    = 32
	maxChannels = 256
)

// findChips lists the hwmon devices below a card's directory by the class: a
// chip is at any depth, behind its bus.
func (r *reading) findChips(dir string) []chip {
	names, err := r.fs.Names("class/hwmon")
	if err != nil {
		if !absent(err) {
			r.fail(err)
		}
		return nil
	}
	var chips []chip
	for _, n := range names {
		at, err := r.fs.Resolve("class/hwmon/" + n)
		if err != nil || !strings.HasPrefix(at, dir+"/") || len(chips) >= maxChips {
			continue
		}
		if name, ok := r.text(at + "/name"); ok {
			chips = append(chips, chip{dir: at, name: name})
		}
	}
	return chips
}

// findSensors lists the channels of a chip. Where two sensors of a card measure
// the same quantity and have the same name, the later one gets its channel
// appended to the label; taken has the labels in use.
func (r *reading) findSensors(c *chip, taken map[string]bool, title func(kind, channel, label string) string) {
	names, err := r.fs.Names(c.dir)
	if err != nil {
		if !absent(err) {
			r.fail(err)
		}
		return
	}
	has := make(map[string]bool, len(names))
	for _, n := range names {
		has[n] = true
	}
	for _, n := range names {
		id, isInput := strings.CutSuffix(n, "_input")
		ch := channelOf(id)
		if !isInput || ch == nil || len(c.sensors) >= maxChannels {
			continue
		}
		label := ""
		if has[id+"_label"] {
			label, _ = r.textEvery(never, c.dir+"/"+id+"_label")
		}
		label = title(ch.kind, id, tidy(label))
		if label == "" {
			continue
		}
		if taken[ch.kind+label] {
			label += " (" + path.Base(c.name) + " " + id + ")"
		}
		taken[ch.kind+label] = true
		s := sensor{kind: ch.kind, label: label, metric: *ch.metric, labels: []string{label}, input: c.dir + "/" + n, unit: ch.unit}
		for _, l := range ch.limits {
			if f := id + "_" + l.file; has[f] {
				s.limits = append(s.limits, limit{c.dir + "/" + f, l.name, []string{label, l.name}})
			}
		}
		for _, l := range []suffix{{"max_alarm", "warning"}, {"crit_alarm", "critical"}} {
			if f := id + "_" + l.file; ch.alarmed && has[f] {
				s.alarms = append(s.alarms, limit{c.dir + "/" + f, l.name, []string{label, l.name}})
			}
		}
		c.sensors = append(c.sensors, s)
	}
}

// channelOf returns the quantity of the channel id, such as temp12.
func channelOf(id string) *channel {
	kind := strings.TrimRight(id, "0123456789")
	if kind == id {
		return nil
	}
	for i := range channels {
		if channels[i].kind == kind {
			return &channels[i]
		}
	}
	return nil
}

// labelBytes bounds a label value from a driver, in bytes.
const labelBytes = 120

// tidy makes a driver's text fit for a label.
func tidy(s string) string {
	s = strings.TrimSpace(oneLine(s))
	if len(s) > labelBytes {
		s = strings.TrimSpace(strings.ToValidUTF8(s[:labelBytes], ""))
	}
	return s
}

// value reads a sensor. A text that is no integer is rejected.
func (r *reading) value(m *collector.Metric, file string, unit float64) (float64, bool) {
	text, ok := r.text(file)
	if !ok {
		return 0, false
	}
	return r.whole(m, text, unit)
}

func (r *reading) whole(m *collector.Metric, text string, unit float64) (float64, bool) {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		r.Reject(m, collector.RejectType)
		return 0, false
	}
	return scaled(float64(n), unit), true
}

// scaled multiplies by a power of ten so that 44522 thousandths are 44.522 and
// not 44.522000000000006.
func scaled(v, unit float64) float64 {
	if inverse := math.Round(1 / unit); inverse > 1 {
		return v / inverse
	}
	return v * unit
}

// readLimits sets the thresholds of a sensor, which are read once in
// SlowInterval. Implausible ones are left out: 0 and below are none, and of a
// warning above its critical limit neither is valid.
func (r *reading) readLimits(o *Options, s *sensor, measured float64, known bool) {
	if len(s.limits) == 0 {
		return
	}
	m := *channelOf(s.kind + "0").limit
	values := make([]float64, len(s.limits))
	for i, l := range s.limits {
		if text, ok := r.textEvery(o.SlowInterval, l.file); ok {
			values[i], _ = r.whole(m, text, s.unit)
		}
	}
	for i, l := range s.limits {
		v := values[i]
		if s.kind == "temp" && (v <= 0 || known && bogus(v, measured)) {
			if v > 0 {
				r.Reject(m, collector.RejectRange)
			}
			continue
		}
		if l.name == "warning" || l.name == "critical" {
			if w, c := named(s.limits, values, "warning"), named(s.limits, values, "critical"); v <= 0 || w > 0 && c > 0 && w > c {
				if v > 0 {
					r.Reject(m, collector.RejectRange)
				}
				continue
			}
		}
		r.Set(m, v, l.labels...)
	}
}

func named(limits []limit, values []float64, name string) float64 {
	for i, l := range limits {
		if l.name == name {
			return values[i]
		}
	}
	return 0
}

// bogus reports whether a temperature limit is none: board controllers return
// 17.5 degrees for an empty cage. A part that idles above 50 degrees is common,
// one that must stay below 50 does not exist.
func bogus(limit, measured float64) bool { return limit < 50 && measured > limit }

// readAlarms sets the driver's alarms of a sensor.
func (r *reading) readAlarms(s *sensor) {
	for _, a := range s.alarms {
		if v, ok := r.value(collector.FPGASensorAlarm, a.file, 1); ok {
			r.Set(collector.FPGASensorAlarm, v, a.labels...)
		}
	}
}

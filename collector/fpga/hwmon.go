package fpga

import (
	"math"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/accel-exporter/accel-exporter/collector"
	"github.com/accel-exporter/accel-exporter/collector/sysfs"
)

// chip is one hwmon device of a card with its sensors and their metrics. The
// files follow Documentation/hwmon/sysfs-interface.
type chip struct {
	dir, name string
	sensors   []sensor
}

// sensor is one channel of a chip.
type sensor struct {
	*channel
	id     string // the kernel's name, such as temp12
	label  string // as the driver prints it, or id
	metric *collector.Metric
	labels []string
	input  string
	limits []limit
	alarms []limit
	// unlimited: its limits only decide whether its alarms are valid.
	unlimited bool
}

// limit is the file of a threshold of a sensor, or of its alarm.
type limit struct{ file, name string }

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
	kind   string // temp, in, curr or power
	metric *collector.Metric
	// unit is the value of one count of a file in the metric's unit.
	unit   float64
	limit  *collector.Metric
	limits []limit // file is the end of the name: temp1_max
	alarms []limit // temp1_max_alarm
}

var (
	channels = []channel{
		{"temp", collector.TemperatureCelsius, 1e-3, collector.TemperatureLimit, []limit{{"max", "warning"}, {"crit", "critical"}, {"emergency", "shutdown"}}, upper},
		{"in", collector.FPGAVoltage, 1e-3, collector.FPGAVoltageLimit, []limit{{"lcrit", "low_critical"}, {"min", "low_warning"}, {"max", "warning"}, {"crit", "critical"}}, nil},
		{"curr", collector.FPGACurrent, 1e-3, collector.FPGACurrentLimit, upper, nil},
		{"power", collector.FPGARailPower, 1e-6, collector.FPGAPowerThreshold, nil, upper},
	}
	upper = []limit{{"max", "warning"}, {"crit", "critical"}}
)

// findChips lists the hwmon devices whose paths are wanted. The class has them: a
// chip of a card is at any depth below the card, behind its bus.
func (r *reading) findChips(interval time.Duration, wanted func(dir string) bool) []chip {
	names, err := r.fs.Names("class/hwmon")
	if err != nil {
		if !absent(err) {
			r.fail(err)
		}
		return nil
	}
	var chips []chip
	for _, n := range names {
		at, err := r.fs.Target("class/hwmon/" + n)
		if err != nil || !wanted(at) {
			continue
		}
		if name, ok := r.textEvery(interval, at+"/name"); ok {
			chips = append(chips, chip{dir: at, name: tidy(name)})
		}
	}
	return chips
}

// findSensors lists the channels of a chip that have a file with the given end:
// input, where the sensor is read. Where two sensors of a card measure the same
// quantity and have the same name, the later one gets its channel appended to
// the label; taken has the labels in use. A sensor without a title is left out.
func (r *reading) findSensors(c *chip, list []channel, end string, taken map[string]bool, title func(kind, id, label string) string) {
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
	files := func(id, end string, of []limit) (out []limit) {
		for _, l := range of {
			if f := id + "_" + l.file + end; has[f] {
				out = append(out, limit{c.dir + "/" + f, l.name})
			}
		}
		return out
	}
	slices.SortFunc(names, natural)
	for _, n := range names {
		id, ok := strings.CutSuffix(n, "_"+end)
		ch := channelOf(list, id)
		if !ok || ch == nil {
			continue
		}
		label := ""
		if has[id+"_label"] {
			label, _ = r.textEvery(sysfs.Never, c.dir+"/"+id+"_label")
		}
		label = title(ch.kind, id, tidy(label))
		if label == "" {
			continue
		}
		if taken[ch.kind+label] {
			label += " (" + path.Base(c.name) + " " + id + ")"
		}
		taken[ch.kind+label] = true
		c.sensors = append(c.sensors, sensor{
			channel: ch, id: id, label: label, metric: ch.metric, labels: []string{label}, input: c.dir + "/" + n,
			limits: files(id, "", ch.limits), alarms: files(id, "_alarm", ch.alarms),
		})
	}
}

// channelOf returns the quantity of the channel id, such as temp12.
func channelOf(list []channel, id string) *channel {
	kind := strings.TrimRight(id, "0123456789")
	i := slices.IndexFunc(list, func(c channel) bool { return c.kind == kind && kind != id })
	if i < 0 {
		return nil
	}
	return &list[i]
}

// labelBytes bounds a label value from a driver, in bytes.
const labelBytes = 120

// tidy makes a driver's text fit for a label.
func tidy(s string) string {
	s = strings.TrimSpace(collector.OneLine(s))
	if len(s) > labelBytes {
		s = strings.TrimSpace(strings.ToValidUTF8(s[:labelBytes], ""))
	}
	return s
}

// number sets the integer in a file that is read at most once in an interval; 0
// is in every round.
func (r *reading) number(m *collector.Metric, interval time.Duration, file string, unit float64, labels ...string) {
	if v, ok := r.value(m, interval, file, unit); ok {
		r.Set(m, v, labels...)
	}
}

// value reads an integer. Another text is rejected.
func (r *reading) value(m *collector.Metric, interval time.Duration, file string, unit float64) (float64, bool) {
	text, ok := r.textEvery(interval, file)
	if !ok {
		return 0, false
	}
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

// readLimits sets the thresholds of a sensor, which are read at most once in an
// interval, and its alarms. Implausible thresholds are left out: 0 and below are
// none, and of two in the wrong order neither is valid. So is the alarm of a
// threshold that is none.
func (r *reading) readLimits(interval time.Duration, s *sensor, measured float64, known bool) {
	values := make([]float64, len(s.limits))
	none := map[string]bool{}
	for i, l := range s.limits {
		values[i], _ = r.value(s.limit, interval, l.file, s.unit)
		none[l.name] = values[i] <= 0
	}
	above := -1 // the last upper limit
	valid := make([]bool, len(s.limits))
	for i, l := range s.limits {
		if valid[i] = values[i] > 0; !valid[i] || strings.HasPrefix(l.name, "low_") {
			continue
		}
		if above >= 0 && values[above] > values[i] {
			valid[above], valid[i] = false, false
		}
		above = i
	}
	for i, l := range s.limits {
		switch {
		case s.unlimited:
		case !valid[i] || s.kind == "temp" && known && bogus(values[i], measured):
			if values[i] > 0 {
				r.Reject(s.limit, collector.RejectRange)
			}
		case len(s.limit.Labels) == 1: // of the whole card
			r.Set(s.limit, values[i], l.name)
		default:
			r.Set(s.limit, values[i], s.label, l.name)
		}
	}
	for _, a := range s.alarms {
		if !none[a.name] {
			r.number(collector.FPGASensorAlarm, 0, a.file, 1, s.label, a.name)
		}
	}
}

// bogus reports whether a temperature limit is none: board controllers return
// 17.5 degrees for an empty cage. A part that idles above 50 degrees is common,
// a part that must stay below 50 does not exist.
func bogus(limit, measured float64) bool { return limit < 50 && measured > limit }

package fpga

import (
	"cmp"
	"math"
	"path"
	"slices"
	"strings"

	"github.com/accel-exporter/accel-exporter/collector"
)

const boardPower = "Board Power"

// fmePower is the sensor of the FME, whose thresholds are writable and only read.
var fmePower = []channel{{"power", collector.PowerWatts, 1e-6, collector.FPGAPowerThreshold, upper, upper}}

// dummy reports whether a chip of the FME measures nothing: OFS cards have the
// feature without a sensor; it reads 0 and has no thresholds.
func (r *reading) dummy(c *chip) bool {
	names, _ := r.fs.Names(c.dir)
	if slices.ContainsFunc(names, func(n string) bool { return strings.HasPrefix(n, "temp1_") && n != "temp1_input" }) {
		return false
	}
	text, ok := r.text(c.dir + "/temp1_input")
	return ok && text == "0"
}

// readSensors sets temperatures, rails and power, and returns the directories of the
// board controllers, which it finds by their sensors.
func (c *dflCard) readSensors(r *reading) (controllers []string) {
	powered := false // the power of the whole card is known
	metered := false // it has a power sensor
	supplies := map[[2]string]float64{}
	taken := map[string]bool{}
	for _, chip := range r.findChips(c.options.SlowInterval, func(at string) bool { return strings.HasPrefix(at, c.dir+"/") }) {
		// The controller's device: …/spi4.0/n3000bmc-hwmon.6.auto/hwmon/hwmon6.
		if device := path.Dir(path.Dir(chip.dir)); strings.Contains(path.Base(device), "bmc-hwmon") {
			controllers = append(controllers, path.Dir(device))
		}
		if chip.name == "dfl_fme_thermal" && r.dummy(&chip) {
			continue
		}
		list := channels
		if chip.name == "dfl_fme_power" {
			list = fmePower
		}
		r.findSensors(&chip, list, "input", taken, func(_, id, label string) string {
			return cmp.Or(label, map[string]string{"dfl_fme_thermal": "FPGA", "dfl_fme_power": boardPower}[chip.name], id)
		})
		for i := range chip.sensors {
			s := &chip.sensors[i]
			if s.kind == "power" {
				metered = true
				if chip.name == "dfl_fme_power" || s.label == boardPower {
					s.metric, s.labels = collector.PowerWatts, nil
				}
			}
			v, known := r.dflSensor(&chip, s)
			if known {
				supplies[[2]string{s.kind, supplyOf(s.label)}] = v
				if s.metric == collector.PowerWatts && powered { // measured by two sensors
					s.metric, s.labels = collector.FPGARailPower, []string{s.label}
				}
				powered = powered || s.metric == collector.PowerWatts
				r.Set(s.metric, v, s.labels...)
			}
			r.readLimits(c.options.SlowInterval, s, v, known)
		}
	}
	if !metered {
		sumPower(r, supplies)
	}
	return controllers
}

// dflSensor reads a sensor.
func (r *reading) dflSensor(chip *chip, s *sensor) (float64, bool) {
	v, ok := r.value(s.metric, 0, s.input, s.unit)
	switch {
	case !ok:
		return 0, false
	case s.kind == "power" && chip.name != "dfl_fme_power":
		return r.boardPower(chip.name, s, v)
	case s.kind == "temp" && v == 0 && strings.Contains(chip.name, "bmc"):
		// A part of a powered card at exactly the freezing point has not been
		// measured.
		r.Reject(s.metric, collector.RejectSentinel)
		return 0, false
	}
	return v, true
}

// boardPower corrects the power of a board controller, in microwatts by the
// rules of hwmon. The driver returns milliwatts for N6000, N6001 and C6100. No
// card draws less than a watt or more than a thousand, so a corrected driver is
// recognized too.
func (r *reading) boardPower(chip string, s *sensor, v float64) (float64, bool) {
	switch {
	case v >= 1:
		return v, true
	case v > 0 && (!strings.HasPrefix(chip, "n3000") || s.label != boardPower):
		return scaled(v*1e6, 1e-3), true
	}
	r.Reject(s.metric, collector.RejectRange)
	return 0, false
}

var boardSupplies = []string{"backplane", "aux"}

// supplyOf returns the supply of the whole board that a sensor measures: N3000
// has 12V Backplane Voltage, D5005 12v Backplane Voltage and N5010 Backplane
// 12V Voltage.
func supplyOf(label string) string {
	words := strings.Fields(strings.ToLower(label))
	for _, s := range boardSupplies {
		if len(words) == 3 && slices.Contains(words, "12v") && slices.Contains(words, s) {
			return s
		}
	}
	return ""
}

// sumPower sets the card's power where its controller has no sensor for it, on
// D5005 and N5010: the sum of its two supplies.
func sumPower(r *reading, supplies map[[2]string]float64) {
	sum, n := 0.0, 0
	for _, supply := range boardSupplies {
		volts, ok1 := supplies[[2]string{"in", supply}]
		amperes, ok2 := supplies[[2]string{"curr", supply}]
		if ok1 && ok2 {
			sum += volts * amperes
			n++
		}
	}
	// One supply alone is not the card's power.
	if n == 2 {
		r.Set(collector.PowerWatts, math.Round(sum*1e6)/1e6)
	}
}

package fpga

import (
	"cmp"
	"math"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/accel-exporter/accel-exporter/collector"
	"github.com/accel-exporter/accel-exporter/collector/sysfs"
)

// sdmName is part of the name of the hwmon device with the sensors of a Versal card.
const sdmName = "_hwmon_sdm_"

// sdmChannels are the sensors in the hwmon device, with their units before XRT 2.14. Only
// temperatures and power have limits there. A lower limit of either means no fault.
var (
	sdmLimits   = []limit{{"upper_warn", "warning"}, {"upper_critical", "critical"}, {"upper_fatal", "fatal"}}
	sdmChannels = []channel{
		{"temp", collector.TemperatureCelsius, 1, collector.TemperatureLimit, sdmLimits, nil},
		{"in", collector.FPGAVoltage, 1e-3, nil, nil, nil},
		{"curr", collector.FPGACurrent, 1e-3, nil, nil, nil},
		{"power", collector.PowerWatts, 1, collector.FPGAPowerThreshold, sdmLimits, nil},
		{"fan", collector.FanSpeed, 1, nil, nil, nil},
	}
)

// sdmFiles leaves out temp15_input and power2_input, which are targets on other cards.
func sdmFiles() []string {
	files := []string{"temp[1-9]_input", "temp1[0-4]_input", "in*_input", "curr*_input", "power1_input", "fan*_input"}
	for _, c := range sdmChannels {
		files = append(files, c.kind+"*_label", c.kind+"*_unitm")
		for _, l := range c.limits {
			files = append(files, c.kind+"*_"+l.file)
		}
	}
	return files
}

// vmr sets the readings of the firmware of a Versal card and the image that it
// booted from.
func (a *alveo) vmr(r *reading) {
	dir := cmp.Or(a.mgmt.one("hwmon_sdm"), a.user.one("hwmon_sdm"))
	if dir == "" {
		return
	}
	listed := a.sdmLists(r, dir)
	for _, dir := range slices.Concat(a.mgmt.hwmon, a.user.hwmon) {
		if name, _ := r.textEvery(sysfs.Never, dir+"/name"); strings.Contains(name, sdmName) {
			a.sdmSensors(r, &chip{dir: dir, name: path.Base(dir)}, listed)
			break
		}
	}
	a.vmrFirmware(r)
}

// sdmLists sets the sensors in the lists of XRT 2.14 and newer, which take one request to
// the firmware for each kind. Fans are among the temperatures.
func (a *alveo) sdmLists(r *reading, dir string) (listed bool) {
	for _, s := range []struct {
		file string
		m    *collector.Metric
	}{
		{"temp_sensors_raw", collector.TemperatureCelsius},
		{"voltage_sensors_raw", collector.FPGAVoltage},
		{"current_sensors_raw", collector.FPGACurrent},
	} {
		listed = listed || r.fs.Exists(dir+"/"+s.file)
		text, ok := r.text(dir + "/" + s.file)
		if !ok {
			continue
		}
		for _, v := range parseSDM(text) {
			m := s.m
			if m == collector.TemperatureCelsius && strings.Contains(v.name, "fan") {
				m = collector.FanSpeed
			}
			if _, twice := r.measured(m, v.name); !twice {
				r.Set(m, v.value, v.name)
			}
		}
	}
	return listed
}

// sdmSensors sets the power of the card, the limits of the sensors and, where the driver has
// no lists, their values. Such a driver does not say which sensors exist: these have once
// been more than 0.
func (a *alveo) sdmSensors(r *reading, c *chip, listed bool) {
	r.findSensors(c, sdmChannels, "label", map[string]bool{}, func(_, _, label string) string { return label })
	for i := range c.sensors {
		s := &c.sensors[i]
		base := c.dir + "/" + s.id
		unit, ok := r.sdmUnit(base, s.unit)
		unlisted, power := !listed, s.kind == "power"
		if power {
			ok, s.labels = ok && s.id == "power1", nil // of the whole card
			unlisted = r.sdmValid(base)
		}
		if !ok {
			continue
		}
		ch := *s.channel
		ch.unit, s.channel = unit, &ch
		if unlisted {
			n, ok := r.unsigned(s.metric, 0, base+"_input")
			a.known[base] = a.known[base] || ok && n > 0
			if ok && (n > 0 || a.known[base] && s.kind != "temp" && !power) {
				r.Set(s.metric, scaled(float64(n), unit), s.labels...)
			}
		}
		if v, known := r.measured(s.metric, s.labels...); known || power {
			r.readLimits(identityInterval, s, v, known)
		}
	}
}

// sdmUnit returns the value of one count of a sensor: XRT 2.14 and newer have its power of
// ten in a file.
func (r *reading) sdmUnit(base string, older float64) (float64, bool) {
	if !r.fs.Exists(base + "_unitm") {
		return older, true
	}
	text, _ := r.textEvery(sysfs.Never, base+"_unitm")
	n, err := strconv.Atoi(text)
	return math.Pow10(n), err == nil && n >= -6 && n <= 6
}

// sdmValid reports whether a sensor has a value. XRT before 2.14 does not say.
func (r *reading) sdmValid(base string) bool {
	if !r.fs.Exists(base + "_status") {
		return true
	}
	status, _ := r.text(base + "_status")
	return status == "Sensor Present and Valid"
}

// fpgaNames are the firmware's names of the FPGA's temperature, in lower case.
var fpgaNames = []string{"device", "fpga"}

// vmrFirmware sets which image a Versal card has booted from, and its limits: the
// temperatures are of the FPGA.
func (a *alveo) vmrFirmware(r *reading) {
	sensor := "fpga"
	for _, o := range r.Readings {
		if o.Metric == collector.TemperatureCelsius && slices.Contains(fpgaNames, strings.ToLower(o.Labels[0])) {
			sensor = o.Labels[0]
		}
	}
	dir := a.mgmt.one("xgq_vmr")
	if dir == "" {
		return
	}
	if text, ok := r.textEvery(a.options.SlowInterval, dir+"/vmr_status"); ok {
		status := parseNumbers(text)
		for _, controller := range []string{"sc", "ps", "pl"} {
			ready, ok := status[strings.ToUpper(controller)+"_IS_READY"]
			a.known[controller] = a.known[controller] || ready == 1
			if ok && a.known[controller] {
				r.SetBool(collector.FPGAControllerReady, ready == 1, controller)
			}
		}
		for _, boot := range []string{"DEFAULT", "BACKUP", "RECOVERY"} {
			if status["BOOT_ON_"+boot] == 1 {
				r.Set(collector.FPGABitstreamInfo, 1, "static", "boot_image", strings.ToLower(boot))
			}
		}
	}
	text, ok := r.textEvery(identityInterval, dir+"/clk_scaling_stat_raw")
	if !ok {
		return
	}
	limits := parseNumbers(text)
	for _, l := range []struct {
		key, name string
		throttles bool
	}{{"SHUTDOWN_LIMIT", "shutdown", false}, {"THROTTLING_LIMIT", "slowdown", true}} {
		if l.throttles && limits["HAS_CLOCK_THROTTLING"] == 0 {
			continue
		}
		if v := limits["TEMP_"+l.key]; v > 0 {
			r.Set(collector.TemperatureLimit, float64(v), sensor, l.name)
		}
		if v := limits["POWER_"+l.key]; v > 0 {
			r.Set(collector.PowerLimit, float64(v), l.name)
		}
	}
}

// sdmSensor is one line of temp_sensors_raw, voltage_sensors_raw or
// current_sensors_raw of a Versal card.
type sdmSensor struct {
	name string
	// value is in °C, V or A.
	value float64
}

// parseSDM parses a list of sensors with the lines
//
//	name,now,average,most,status,exponent
//
// Average and most are since the start of the card's firmware and not used.
// Only status 1, present and valid, is a reading.
func parseSDM(text string) (sensors []sdmSensor) {
	for line := range strings.Lines(text) {
		f := strings.Split(strings.Trim(line, "\x00 \t\r\n"), ",")
		if len(f) != 6 || f[4] != "1" {
			continue
		}
		now, err := strconv.ParseUint(f[1], 10, 32)
		exponent, err2 := strconv.Atoi(f[5])
		name := tidy(f[0])
		if err != nil || err2 != nil || name == "" || exponent < -6 || exponent > 6 {
			continue
		}
		value := float64(now) * math.Pow10(exponent)
		if exponent < 0 {
			value = float64(now) / math.Pow10(-exponent) // 851 mV is 0.851 V, not 0.8510000000000001
		}
		sensors = append(sensors, sdmSensor{name, value})
	}
	return sensors
}

// parseNumbers parses the lines KEY:number of vmr_status and clk_scaling_stat_raw.
func parseNumbers(text string) map[string]uint64 {
	out := map[string]uint64{}
	for key, value := range keyValues(text) {
		if n, err := strconv.ParseUint(value, 0, 64); err == nil {
			out[key] = n
		}
	}
	return out
}

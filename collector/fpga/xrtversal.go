package fpga

import (
	"math"
	"strconv"
	"strings"

	"github.com/accel-exporter/accel-exporter/collector"
)

// vmr sets the readings of the firmware of a Versal card and the image that it
// booted from.
func (a *alveo) vmr(r *reading) {
	dir := a.mgmt.one("hwmon_sdm")
	if dir == "" {
		dir = a.user.one("hwmon_sdm")
	}
	if dir == "" {
		return
	}
	for _, s := range []struct {
		file string
		m    *collector.Metric
	}{
		{"temp_sensors_raw", collector.TemperatureCelsius},
		{"voltage_sensors_raw", collector.FPGAVoltage},
		{"current_sensors_raw", collector.FPGACurrent},
	} {
		text, ok := r.text(dir + "/" + s.file)
		if !ok {
			continue
		}
		taken := map[string]bool{}
		for _, v := range parseSDM(text) {
			if taken[v.name] {
				continue
			}
			taken[v.name] = true
			r.Set(s.m, v.value, a.labels.of(v.name, "")[:1]...)
		}
	}
	a.vmrPower(r)
	a.vmrFirmware(r)
}

// vmrPower finds the card's power among the hwmon devices; its unit is in a
// separate file.
func (a *alveo) vmrPower(r *reading) {
	chips := a.mgmt.hwmon
	if len(chips) == 0 {
		chips = a.user.hwmon
	}
	for _, dir := range chips {
		name, _ := r.textEvery(never, dir+"/name")
		if !strings.Contains(name, "_hwmon_sdm_") {
			continue
		}
		if status, ok := r.text(dir + "/power1_status"); !ok || status != "Sensor Present and Valid" {
			return
		}
		text, ok := r.text(dir + "/power1_input")
		exponent, _ := r.textEvery(never, dir+"/power1_unitm")
		unit, known := map[string]float64{"0": 1, "-3": 1e-3, "-6": 1e-6}[exponent]
		if !ok || !known {
			return
		}
		if v, ok := a.natural(r, collector.PowerWatts, text); ok {
			r.Set(collector.PowerWatts, scaled(float64(v), unit))
		}
		return
	}
}

// vmrFirmware sets which image a Versal card has booted from, and its limits.
func (a *alveo) vmrFirmware(r *reading) {
	dir := a.mgmt.one("xgq_vmr")
	if dir == "" {
		return
	}
	if text, ok := r.textEvery(identityInterval, dir+"/vmr_status"); ok {
		status := parseVMR(text)
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
	limits := parseVMR(text)
	for _, l := range []struct {
		key, name string
		throttles bool
	}{{"SHUTDOWN_LIMIT", "shutdown", false}, {"THROTTLING_LIMIT", "slowdown", true}} {
		if l.throttles && limits["HAS_CLOCK_THROTTLING"] == 0 {
			continue
		}
		if v := limits["TEMP_"+l.key]; v > 0 {
			r.Set(collector.TemperatureLimit, float64(v), a.labels.of("fpga", l.name)...)
		}
		if v := limits["POWER_"+l.key]; v > 0 {
			r.Set(collector.PowerLimit, float64(v), a.labels.of(l.name, "")[:1]...)
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
		if len(f) != 6 || f[4] != "1" || len(sensors) == maxSensors {
			continue
		}
		now, err := strconv.ParseUint(f[1], 10, 32)
		exponent, err2 := strconv.Atoi(f[5])
		name := labelText(f[0])
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

// maxSensors bounds the sensors of one kind on one card.
const maxSensors = 64

// parseVMR parses the lines KEY:number of vmr_status and clk_scaling_stat_raw.
func parseVMR(text string) map[string]uint64 {
	out := map[string]uint64{}
	for key, value := range keyValues(text) {
		if n, err := strconv.ParseUint(value, 0, 64); err == nil && len(out) < 64 {
			out[key] = n
		}
	}
	return out
}

package fpga

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/accel-exporter/accel-exporter/collector"
	"github.com/accel-exporter/accel-exporter/collector/sysfs"
)

// xmcSensor is a sensor by its file in a part of the card: one row for each
// sensor of the board's controller, xmc.
type xmcSensor struct {
	file   string
	metric *collector.Metric
	sensor string
	// unit is the value of one count of the file.
	unit float64
}

var xmcSensors = []xmcSensor{
	{"xmc_fpga_temp", collector.TemperatureCelsius, "fpga", 1},
	{"xmc_vccint_temp", collector.TemperatureCelsius, "vccint", 1},
	{"xmc_hbm_temp", collector.TemperatureCelsius, "hbm", 1},
	{"xmc_dimm_temp0", collector.TemperatureCelsius, "dimm0", 1},
	{"xmc_dimm_temp1", collector.TemperatureCelsius, "dimm1", 1},
	{"xmc_dimm_temp2", collector.TemperatureCelsius, "dimm2", 1},
	{"xmc_dimm_temp3", collector.TemperatureCelsius, "dimm3", 1},
	{"xmc_se98_temp0", collector.TemperatureCelsius, "board_top_front", 1},
	{"xmc_se98_temp1", collector.TemperatureCelsius, "board_top_rear", 1},
	{"xmc_se98_temp2", collector.TemperatureCelsius, "board_bottom_front", 1},
	{"xmc_fan_temp", collector.TemperatureCelsius, "fan_control", 1},
	{"xmc_cage_temp0", collector.TemperatureCelsius, "cage0", 1},
	{"xmc_cage_temp1", collector.TemperatureCelsius, "cage1", 1},
	{"xmc_cage_temp2", collector.TemperatureCelsius, "cage2", 1},
	{"xmc_cage_temp3", collector.TemperatureCelsius, "cage3", 1},

	{"xmc_12v_pex_vol", collector.FPGAVoltage, "12v_pex", 1e-3},
	{"xmc_12v_aux_vol", collector.FPGAVoltage, "12v_aux", 1e-3},
	{"xmc_12v_aux1", collector.FPGAVoltage, "12v_aux1", 1e-3},
	{"xmc_12v_sw", collector.FPGAVoltage, "12v_sw", 1e-3},
	{"xmc_sys_5v5", collector.FPGAVoltage, "5v5_sys", 1e-3},
	{"xmc_3v3_pex_vol", collector.FPGAVoltage, "3v3_pex", 1e-3},
	{"xmc_3v3_aux_vol", collector.FPGAVoltage, "3v3_aux", 1e-3},
	{"xmc_3v3_vcc_vol", collector.FPGAVoltage, "3v3_vcc", 1e-3},
	{"xmc_vpp2v5_vol", collector.FPGAVoltage, "2v5_vpp", 1e-3},
	{"xmc_ddr_vpp_btm", collector.FPGAVoltage, "ddr_vpp_bottom", 1e-3},
	{"xmc_ddr_vpp_top", collector.FPGAVoltage, "ddr_vpp_top", 1e-3},
	{"xmc_1v8", collector.FPGAVoltage, "1v8", 1e-3},
	{"xmc_1v2_top", collector.FPGAVoltage, "1v2_top", 1e-3},
	{"xmc_vcc1v2_btm", collector.FPGAVoltage, "1v2_bottom", 1e-3},
	{"xmc_hbm_1v2_vol", collector.FPGAVoltage, "1v2_hbm", 1e-3},
	{"xmc_mgtavtt", collector.FPGAVoltage, "mgt_avtt", 1e-3},
	{"xmc_mgt0v9avcc", collector.FPGAVoltage, "mgt_avcc", 1e-3},
	{"xmc_0v85", collector.FPGAVoltage, "0v85", 1e-3},
	{"xmc_vccint_vol", collector.FPGAVoltage, "vccint", 1e-3},
	{"xmc_vccint_bram_vol", collector.FPGAVoltage, "vccint_bram", 1e-3},
	{"xmc_vccint_vcu_0v9", collector.FPGAVoltage, "vccint_vcu", 1e-3},
	{"xmc_vccaux", collector.FPGAVoltage, "vccaux", 1e-3},
	{"xmc_vccaux_pmc", collector.FPGAVoltage, "vccaux_pmc", 1e-3},
	{"xmc_vccram", collector.FPGAVoltage, "vccram", 1e-3},

	{"xmc_12v_pex_curr", collector.FPGACurrent, "12v_pex", 1e-3},
	{"xmc_12v_aux_curr", collector.FPGACurrent, "12v_aux", 1e-3},
	{"xmc_v12_in_i", collector.FPGACurrent, "12v_in", 1e-3},
	{"xmc_v12_in_aux0_i", collector.FPGACurrent, "12v_in_aux0", 1e-3},
	{"xmc_v12_in_aux1_i", collector.FPGACurrent, "12v_in_aux1", 1e-3},
	{"xmc_3v3_pex_curr", collector.FPGACurrent, "3v3_pex", 1e-3},
	{"xmc_3v3_aux_cur", collector.FPGACurrent, "3v3_aux", 1e-3},
	{"xmc_vcc1v2_i", collector.FPGACurrent, "1v2", 1e-3},
	{"xmc_0v85_curr", collector.FPGACurrent, "0v85", 1e-3},
	{"xmc_vccint_curr", collector.FPGACurrent, "vccint", 1e-3},

	{"xmc_fan_rpm", collector.FanSpeed, "fan", 1},
	// Where xmc_power_ins exists, xmc_power is the value of an earlier request.
	// Releases without it compute xmc_power at each read.
	{"xmc_power_ins", collector.PowerWatts, "", 1e-6},
	{"xmc_power", collector.PowerWatts, "", 1e-6},
}

// set sets the count of the sensor.
func (s *xmcSensor) set(r *reading, count uint64) {
	v := scaled(float64(count), s.unit)
	if s.sensor == "" {
		r.Set(s.metric, v)
		return
	}
	r.Set(s.metric, v, s.sensor)
}

func xmcFiles() []string {
	files := make([]string, len(xmcSensors))
	for i, s := range xmcSensors {
		files[i] = s.file
	}
	return files
}

// controller returns the source of the board's sensors: the management function,
// which reads its registers, else the user function, which asks the host of the
// other function and caches the answer for a second.
func (a *alveo) controller() string {
	return cmp.Or(a.mgmt.one("xmc", "xmc.u2"), a.user.one("xmc", "xmc.u2"))
}

// board sets the readings of the board's controller.
func (a *alveo) board(r *reading) {
	dir := a.controller()
	if dir == "" {
		return
	}
	if a.mgmt.dir != "" {
		if stalled, ok := a.flag(r, dir+"/xmc_heartbeat_stall"); ok {
			r.SetBool(collector.FPGAControllerStalled, stalled)
			if stalled {
				return // the sensor files are out of date
			}
		}
	}
	fan, _ := r.textEvery(identityInterval, dir+"/fan_presence")
	alive, powered := false, false
	for _, s := range xmcSensors {
		if s.metric == collector.PowerWatts && powered {
			continue
		}
		path := dir + "/" + s.file
		v, ok := r.unsigned(s.metric, 0, path)
		if !ok {
			continue
		}
		if s.metric == collector.FanSpeed && fan == "A" && alive {
			a.known[path] = true // a fan that does not turn
		}
		if v == 0 && (!alive || !a.known[path] || s.metric == collector.TemperatureCelsius || s.metric == collector.PowerWatts) {
			continue // not fitted, or the controller does not answer
		}
		alive, a.known[path] = true, true
		powered = powered || s.metric == collector.PowerWatts
		s.set(r, v)
	}
	if !alive {
		return
	}
	if !powered {
		a.hwmonPower(r)
	}
	a.boardLimits(r, dir)
}

// hwmonPower sets the card's power from the driver's hwmon device: the only place on
// some boards, such as U2, and on Versal cards, which have the unit in a separate file.
func (a *alveo) hwmonPower(r *reading) {
	for _, dir := range slices.Concat(a.mgmt.hwmon, a.user.hwmon) {
		unit := 1e-6
		switch name, _ := r.textEvery(sysfs.Never, dir+"/name"); {
		case strings.Contains(name, "_hwmon_sdm_"):
			if status, ok := r.text(dir + "/power1_status"); !ok || status != "Sensor Present and Valid" {
				continue
			}
			exponent, _ := r.textEvery(sysfs.Never, dir+"/power1_unitm")
			if unit = map[string]float64{"0": 1, "-3": 1e-3, "-6": 1e-6}[exponent]; unit == 0 {
				continue
			}
		case !strings.HasSuffix(name, "_mgmt") && !strings.HasSuffix(name, "_user"):
			continue
		}
		if v, ok := r.unsigned(collector.PowerWatts, 0, dir+"/power1_input"); ok && v != 0 {
			r.Set(collector.PowerWatts, scaled(float64(v), unit))
			return
		}
	}
}

// Limits of the FPGA's temperature on Alveo cards, in degrees: by xclmgmt it
// should not run above the first, and at the second the board cuts its power
// (check_temp_within_range in mgmt-core.c).
const (
	alveoWarning  = 88
	alveoShutdown = 97
)

func (a *alveo) boardLimits(r *reading, dir string) {
	r.Set(collector.TemperatureLimit, alveoWarning, "fpga", "warning")
	r.Set(collector.TemperatureLimit, alveoShutdown, "fpga", "shutdown")
	if v, ok := r.unsigned(collector.FPGASensorAlarm, 0, dir+"/xmc_power_warn"); ok {
		r.SetBool(collector.FPGASensorAlarm, v != 0, "power", "warning")
	}
	if v, ok := r.unsigned(collector.PowerLimit, identityInterval, dir+"/max_power"); ok {
		if w := powerLevel(v); w > 0 {
			r.Set(collector.PowerLimit, w, "max")
		}
	}
}

// powerLevel returns the watts that a card may draw. Its controller returns a
// level; a number that is no level is in watts.
func powerLevel(level uint64) float64 {
	levels := []float64{75, 150, 225}
	switch {
	case level < uint64(len(levels)):
		return levels[level]
	case level >= 10 && level <= 1000:
		return float64(level)
	}
	return 0
}

// sysmonSensors are what the FPGA itself measures.
var sysmonSensors = []xmcSensor{
	{"temp", collector.TemperatureCelsius, "fpga", 1e-3},
	{"vcc_int", collector.FPGAVoltage, "vccint", 1e-3},
	{"vcc_aux", collector.FPGAVoltage, "vccaux", 1e-3},
	{"vcc_bram", collector.FPGAVoltage, "vccint_bram", 1e-3},
}

// sysmon sets the FPGA's own sensors that the board's controller has not read.
func (a *alveo) sysmon(r *reading) {
	dir := a.mgmt.one("sysmon")
	if dir == "" {
		return
	}
	for _, s := range sysmonSensors {
		if slices.ContainsFunc(r.Readings, func(o collector.Reading) bool {
			return o.Metric == s.metric && slices.Equal(o.Labels, []string{s.sensor})
		}) {
			continue
		}
		if v, ok := r.unsigned(s.metric, 0, dir+"/"+s.file); ok && v != 0 {
			s.set(r, v)
		}
	}
}

// vmr sets the readings of the firmware of a Versal card and the image that it
// booted from.
func (a *alveo) vmr(r *reading) {
	dir := cmp.Or(a.mgmt.one("hwmon_sdm"), a.user.one("hwmon_sdm"))
	if dir == "" {
		return
	}
	fpga := "fpga" // the sensor that the limits of the firmware are of
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
			r.Set(s.m, v.value, v.name)
			if s.m == collector.TemperatureCelsius && slices.Contains(fpgaNames, strings.ToLower(v.name)) {
				fpga = v.name
			}
		}
	}
	a.hwmonPower(r)
	a.vmrFirmware(r, fpga)
}

// fpgaNames are the firmware's names of the FPGA's temperature, in lower case.
var fpgaNames = []string{"device", "fpga"}

// vmrFirmware sets which image a Versal card has booted from, and its limits: the
// temperatures are of the sensor.
func (a *alveo) vmrFirmware(r *reading, sensor string) {
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
		if len(f) != 6 || f[4] != "1" || len(sensors) == maxSensors {
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

// maxSensors bounds the sensors of one kind on one card.
const maxSensors = 64

// parseNumbers parses the lines KEY:number of vmr_status, clk_scaling_stat_raw and
// cu_stat.
func parseNumbers(text string) map[string]uint64 {
	out := map[string]uint64{}
	for key, value := range keyValues(text) {
		if n, err := strconv.ParseUint(value, 0, 64); err == nil && len(out) < 64 {
			out[key] = n
		}
	}
	return out
}

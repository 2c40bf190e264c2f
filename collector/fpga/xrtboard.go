package fpga

import (
	"slices"
	"strings"

	"github.com/accel-exporter/accel-exporter/collector"
)

// xmcSensor is a sensor of the board's controller by its file in the part xmc.
type xmcSensor struct {
	file   string
	metric **collector.Metric
	sensor string
	// unit is the value of one count of the file.
	unit float64
}

var xmcSensors = []xmcSensor{
	{"xmc_fpga_temp", &collector.TemperatureCelsius, "fpga", 1},
	{"xmc_vccint_temp", &collector.TemperatureCelsius, "vccint", 1},
	{"xmc_hbm_temp", &collector.TemperatureCelsius, "hbm", 1},
	{"xmc_dimm_temp0", &collector.TemperatureCelsius, "dimm0", 1},
	{"xmc_dimm_temp1", &collector.TemperatureCelsius, "dimm1", 1},
	{"xmc_dimm_temp2", &collector.TemperatureCelsius, "dimm2", 1},
	{"xmc_dimm_temp3", &collector.TemperatureCelsius, "dimm3", 1},
	{"xmc_se98_temp0", &collector.TemperatureCelsius, "board_top_front", 1},
	{"xmc_se98_temp1", &collector.TemperatureCelsius, "board_top_rear", 1},
	{"xmc_se98_temp2", &collector.TemperatureCelsius, "board_bottom_front", 1},
	{"xmc_fan_temp", &collector.TemperatureCelsius, "fan_control", 1},
	{"xmc_cage_temp0", &collector.TemperatureCelsius, "cage0", 1},
	{"xmc_cage_temp1", &collector.TemperatureCelsius, "cage1", 1},
	{"xmc_cage_temp2", &collector.TemperatureCelsius, "cage2", 1},
	{"xmc_cage_temp3", &collector.TemperatureCelsius, "cage3", 1},

	{"xmc_12v_pex_vol", &collector.FPGAVoltage, "12v_pex", 1e-3},
	{"xmc_12v_aux_vol", &collector.FPGAVoltage, "12v_aux", 1e-3},
	{"xmc_12v_aux1", &collector.FPGAVoltage, "12v_aux1", 1e-3},
	{"xmc_12v_sw", &collector.FPGAVoltage, "12v_sw", 1e-3},
	{"xmc_sys_5v5", &collector.FPGAVoltage, "5v5_sys", 1e-3},
	{"xmc_3v3_pex_vol", &collector.FPGAVoltage, "3v3_pex", 1e-3},
	{"xmc_3v3_aux_vol", &collector.FPGAVoltage, "3v3_aux", 1e-3},
	{"xmc_3v3_vcc_vol", &collector.FPGAVoltage, "3v3_vcc", 1e-3},
	{"xmc_vpp2v5_vol", &collector.FPGAVoltage, "2v5_vpp", 1e-3},
	{"xmc_ddr_vpp_btm", &collector.FPGAVoltage, "ddr_vpp_bottom", 1e-3},
	{"xmc_ddr_vpp_top", &collector.FPGAVoltage, "ddr_vpp_top", 1e-3},
	{"xmc_1v8", &collector.FPGAVoltage, "1v8", 1e-3},
	{"xmc_1v2_top", &collector.FPGAVoltage, "1v2_top", 1e-3},
	{"xmc_vcc1v2_btm", &collector.FPGAVoltage, "1v2_bottom", 1e-3},
	{"xmc_hbm_1v2_vol", &collector.FPGAVoltage, "1v2_hbm", 1e-3},
	{"xmc_mgtavtt", &collector.FPGAVoltage, "mgt_avtt", 1e-3},
	{"xmc_mgt0v9avcc", &collector.FPGAVoltage, "mgt_avcc", 1e-3},
	{"xmc_0v85", &collector.FPGAVoltage, "0v85", 1e-3},
	{"xmc_vccint_vol", &collector.FPGAVoltage, "vccint", 1e-3},
	{"xmc_vccint_bram_vol", &collector.FPGAVoltage, "vccint_bram", 1e-3},
	{"xmc_vccint_vcu_0v9", &collector.FPGAVoltage, "vccint_vcu", 1e-3},
	{"xmc_vccaux", &collector.FPGAVoltage, "vccaux", 1e-3},
	{"xmc_vccaux_pmc", &collector.FPGAVoltage, "vccaux_pmc", 1e-3},
	{"xmc_vccram", &collector.FPGAVoltage, "vccram", 1e-3},

	{"xmc_12v_pex_curr", &collector.FPGACurrent, "12v_pex", 1e-3},
	{"xmc_12v_aux_curr", &collector.FPGACurrent, "12v_aux", 1e-3},
	{"xmc_v12_in_i", &collector.FPGACurrent, "12v_in", 1e-3},
	{"xmc_v12_in_aux0_i", &collector.FPGACurrent, "12v_in_aux0", 1e-3},
	{"xmc_v12_in_aux1_i", &collector.FPGACurrent, "12v_in_aux1", 1e-3},
	{"xmc_3v3_pex_curr", &collector.FPGACurrent, "3v3_pex", 1e-3},
	{"xmc_3v3_aux_cur", &collector.FPGACurrent, "3v3_aux", 1e-3},
	{"xmc_vcc1v2_i", &collector.FPGACurrent, "1v2", 1e-3},
	{"xmc_0v85_curr", &collector.FPGACurrent, "0v85", 1e-3},
	{"xmc_vccint_curr", &collector.FPGACurrent, "vccint", 1e-3},

	{"xmc_fan_rpm", &collector.FanSpeed, "fan", 1},
	// Where xmc_power_ins exists, xmc_power is the value of an earlier request.
	// Releases without it compute xmc_power at each read.
	{"xmc_power_ins", &collector.PowerWatts, "", 1e-6},
	{"xmc_power", &collector.PowerWatts, "", 1e-6},
}

func xmcFiles() []string {
	files := make([]string, len(xmcSensors))
	for i, s := range xmcSensors {
		files[i] = s.file
	}
	return files
}

// xmcReading is a sensor of this card.
type xmcReading struct {
	*xmcSensor
	path   string
	labels []string
}

// planBoard selects the source of the board's sensors: the management function,
// which reads its registers, else the user function, which asks the host of the
// other function and caches the answer for a second.
func (a *alveo) planBoard() {
	a.sensors = a.sensors[:0]
	dir := a.controller()
	if dir == "" {
		return
	}
	for i := range xmcSensors {
		s := xmcReading{xmcSensor: &xmcSensors[i], path: dir + "/" + xmcSensors[i].file}
		if s.sensor != "" {
			s.labels = a.labels.of(s.sensor, "")[:1]
		}
		a.sensors = append(a.sensors, s)
	}
}

func (a *alveo) controller() string {
	if dir := a.mgmt.one("xmc", "xmc.u2"); dir != "" {
		return dir
	}
	return a.user.one("xmc", "xmc.u2")
}

// board sets the readings of the board's controller.
func (a *alveo) board(r *reading) {
	dir := a.controller()
	if dir == "" {
		a.sysmon(r)
		return
	}
	if a.mgmt.dir != "" {
		if stalled, ok := a.flag(r, dir+"/xmc_heartbeat_stall"); ok {
			r.SetBool(collector.FPGAControllerStalled, stalled)
			if stalled {
				return // what it shows is out of date
			}
		}
	}
	fan, _ := r.textEvery(identityInterval, dir+"/fan_presence")
	alive, powered := false, false
	for _, s := range a.sensors {
		if *s.metric == collector.PowerWatts && powered {
			continue
		}
		text, ok := r.text(s.path)
		if !ok {
			continue
		}
		m := *s.metric
		v, ok := a.natural(r, m, text)
		if !ok {
			continue
		}
		if m == collector.FanSpeed && fan == "A" && alive {
			a.known[s.path] = true // a fan that does not turn
		}
		if v == 0 && (!alive || !a.known[s.path] || m == collector.TemperatureCelsius || m == collector.PowerWatts) {
			continue // not fitted, or the controller does not answer
		}
		alive, a.known[s.path] = true, true
		powered = powered || m == collector.PowerWatts
		r.Set(m, scaled(float64(v), s.unit), s.labels...)
	}
	if !alive {
		return
	}
	if !powered {
		a.hwmonPower(r)
	}
	a.boardLimits(r, dir)
}

// hwmonPower sets the card's power from the driver's hwmon device, the only
// place on some boards, such as U2.
func (a *alveo) hwmonPower(r *reading) {
	for _, dir := range slices.Concat(a.mgmt.hwmon, a.user.hwmon) {
		name, _ := r.textEvery(never, dir+"/name")
		if !strings.HasSuffix(name, "_mgmt") && !strings.HasSuffix(name, "_user") {
			continue
		}
		if text, ok := r.text(dir + "/power1_input"); ok {
			if v, ok := a.natural(r, collector.PowerWatts, text); ok && v != 0 {
				r.Set(collector.PowerWatts, scaled(float64(v), 1e-6))
				return
			}
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
	r.Set(collector.TemperatureLimit, alveoWarning, a.labels.of("fpga", "warning")...)
	r.Set(collector.TemperatureLimit, alveoShutdown, a.labels.of("fpga", "shutdown")...)
	if text, ok := r.text(dir + "/xmc_power_warn"); ok {
		if v, ok := a.natural(r, collector.FPGASensorAlarm, text); ok {
			r.SetBool(collector.FPGASensorAlarm, v != 0, a.labels.of("power", "warning")...)
		}
	}
	if text, ok := r.textEvery(identityInterval, dir+"/max_power"); ok {
		if v, ok := a.natural(r, collector.PowerLimit, text); ok {
			if w := powerLevel(v); w > 0 {
				r.Set(collector.PowerLimit, w, a.labels.of("max", "")[:1]...)
			}
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

// sysmon sets what the FPGA itself measures, on boards without a controller.
func (a *alveo) sysmon(r *reading) {
	dir := a.mgmt.one("sysmon")
	if dir == "" {
		return
	}
	for _, s := range []struct {
		file string
		m    *collector.Metric
		name string
	}{
		{"temp", collector.TemperatureCelsius, "fpga"},
		{"vcc_int", collector.FPGAVoltage, "vccint"},
		{"vcc_aux", collector.FPGAVoltage, "vccaux"},
		{"vcc_bram", collector.FPGAVoltage, "vccint_bram"},
	} {
		text, ok := r.text(dir + "/" + s.file)
		if !ok {
			continue
		}
		if v, ok := a.natural(r, s.m, text); ok && v != 0 {
			r.Set(s.m, scaled(float64(v), 1e-3), a.labels.of(s.name, "")[:1]...)
		}
	}
}

package fpga

import (
	"cmp"
	"slices"
	"strings"
	"time"

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
	if stalled, ok := a.stalled(r, dir); ok {
		r.SetBool(collector.FPGAControllerReady, !stalled, "cmc")
		if stalled {
			return // the sensor files are out of date
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

// stalled reports whether the board's controller has stopped. The driver of the management
// function watches the count of its heartbeats; the user function has the count alone, which
// is 0 where the controller has none.
func (a *alveo) stalled(r *reading, dir string) (stalled, ok bool) {
	if a.mgmt.dir != "" {
		return a.flag(r, dir+"/xmc_heartbeat_stall")
	}
	beats, ok := r.unsigned(collector.FPGAControllerReady, 0, dir+"/xmc_heartbeat_count")
	if beats != a.beats {
		a.beats, a.beat = beats, r.now
	}
	return r.now.Sub(a.beat) > stalledAfter, ok && beats > 0
}

// stalledAfter is twice the time between two looks of the driver at the heartbeats.
const stalledAfter = 10 * time.Second

// hwmonPower sets the card's power from the driver's hwmon device: the only place on
// some boards, such as U2.
func (a *alveo) hwmonPower(r *reading) {
	for _, dir := range slices.Concat(a.mgmt.hwmon, a.user.hwmon) {
		if name, _ := r.textEvery(sysfs.Never, dir+"/name"); !strings.HasSuffix(name, "_mgmt") && !strings.HasSuffix(name, "_user") {
			continue
		}
		if v, ok := r.unsigned(collector.PowerWatts, 0, dir+"/power1_input"); ok && v != 0 {
			r.Set(collector.PowerWatts, scaled(float64(v), 1e-6))
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

// measured returns the value of a sensor that was set in this round.
func (r *reading) measured(m *collector.Metric, labels ...string) (float64, bool) {
	for _, o := range r.Readings {
		if o.Metric == m && slices.Equal(o.Labels, labels) {
			return o.Value, true
		}
	}
	return 0, false
}

// sysmon sets the FPGA's own sensors that the board's controller has not read.
func (a *alveo) sysmon(r *reading) {
	dir := a.mgmt.one("sysmon")
	if dir == "" {
		return
	}
	for _, s := range sysmonSensors {
		if _, known := r.measured(s.metric, s.sensor); known {
			continue
		}
		path := dir + "/" + s.file
		v, ok := r.unsigned(s.metric, 0, path)
		a.known[path] = a.known[path] || ok && v != 0
		if ok && (v != 0 || a.known[path] && s.metric != collector.TemperatureCelsius) {
			s.set(r, v)
		}
	}
}

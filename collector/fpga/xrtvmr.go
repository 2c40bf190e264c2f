package fpga

import (
	"math"
	"strconv"
	"strings"
)

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

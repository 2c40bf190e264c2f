package fpga

import (
	"math"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/accel-exporter/accel-exporter/collector"
	"github.com/accel-exporter/accel-exporter/collector/sysfs"
)

// iioNames are the converters that measure the FPGA.
var iioNames = map[string]bool{"xilinx-ams": true, "xadc": true, "xilinx-system-monitor": true}

// amsSensors are the temperatures of xilinx-ams in mainline, which numbers
// them. Its voltages are numbered by position, which depends on the blocks that
// the device tree enables: they keep their numbers.
var amsSensors = map[string]string{"temp7": "ps_lpd", "temp8": "ps_fpd", "temp20": "pl"}

// readIIO sets the channels of the node's converters. SoCs have one.
func (c *socCard) readIIO(r *reading) {
	devices, _ := c.fs.Names("bus/iio/devices")
	for _, n := range devices {
		dir, err := c.fs.Target("bus/iio/devices/" + n)
		if err != nil || !strings.HasPrefix(path.Base(dir), "iio:device") {
			continue
		}
		chip, ok := r.textEvery(c.options.SlowInterval, dir+"/name")
		if !ok || !iioNames[chip] {
			continue
		}
		files, _ := c.fs.Names(dir)
		for _, file := range files {
			if channel, ok := strings.CutSuffix(file, "_raw"); ok {
				r.readChannel(dir, channel, chip, files)
			}
		}
	}
}

// readChannel sets one channel, such as in_temp7 or in_voltage0: (raw + offset) × scale,
// in thousandths. A channel without a scale has no unit and is left out.
func (r *reading) readChannel(dir, channel, chip string, files []string) {
	id, _ := strings.CutPrefix(channel, "in_")
	metric := collector.FPGAVoltage
	if strings.HasPrefix(id, "temp") {
		metric = collector.TemperatureCelsius
	} else if !strings.HasPrefix(id, "voltage") {
		return
	}
	has := func(end string) bool { return slices.Contains(files, channel+end) }
	raw, ok := r.text(dir + "/" + channel + "_raw")
	if !ok || !has("_scale") {
		return
	}
	label := iioSensor(chip, id)
	if has("_label") {
		if text, ok := r.textEvery(sysfs.Never, dir+"/"+channel+"_label"); ok && text != "" {
			label = tidy(text)
		}
	}
	n, err := strconv.ParseInt(raw, 10, 64)
	scale, known := r.fixed(dir + "/" + channel + "_scale")
	offset := 0.0
	if known && has("_offset") {
		offset, known = r.fixed(dir + "/" + channel + "_offset")
	}
	if err != nil || !known {
		r.Reject(metric, collector.RejectType)
		return
	}
	// The resolution of the converter is a millionth.
	r.Set(metric, math.Round((float64(n)+offset)*scale*1000)/1e6, label)
}

// iioSensor names a channel: temp7 by the table, temp0_ps_temp by its text, as
// in the vendor's kernel.
func iioSensor(chip, id string) string {
	if chip == "xilinx-ams" {
		if s, ok := amsSensors[id]; ok {
			return s
		}
	}
	if number, words, ok := strings.Cut(id, "_"); ok && words != "" {
		if strings.HasPrefix(number, "temp") {
			words = strings.TrimSuffix(words, "_temp")
		}
		return tidy(words)
	}
	return tidy(id)
}

// fixed reads a constant of the device, such as a scale.
func (r *reading) fixed(file string) (float64, bool) {
	text, ok := r.textEvery(sysfs.Never, file)
	if !ok {
		return 0, false
	}
	v, err := strconv.ParseFloat(text, 64)
	return v, err == nil
}

package fpga

import (
	"math"
	"path"
	"strconv"
	"strings"

	"github.com/accel-exporter/accel-exporter/collector"
)

// iioChannel is one channel of the analogue-to-digital converter of a SoC's fabric:
// value = (raw + offset) × scale, in thousandths.
type iioChannel struct {
	raw           string
	scale, offset float64
	metric        *collector.Metric
	label         string
}

// iioNames are the converters that measure the FPGA.
var iioNames = map[string]bool{"xilinx-ams": true, "xadc": true, "xilinx-system-monitor": true}

// amsSensors are the temperatures of xilinx-ams in mainline, which numbers
// them. Its voltages are numbered by position, which depends on the blocks that
// the device tree enables: they keep their numbers.
var amsSensors = map[string]string{"temp7": "ps_lpd", "temp8": "ps_fpd", "temp20": "pl"}

// scanIIO lists the channels of the node's converters. SoCs have one.
func (c *socCard) scanIIO(r *reading) {
	names, _ := c.fs.Names("bus/iio/devices")
	for _, n := range names {
		dir, err := c.fs.Resolve("bus/iio/devices/" + n)
		if err != nil || !strings.HasPrefix(path.Base(dir), "iio:device") {
			continue
		}
		name, ok := r.textEvery(c.options.SlowInterval, dir+"/name")
		if !ok || !iioNames[name] {
			continue
		}
		c.channels = append(c.channels, r.scanChannels(dir, name)...)
	}
}

// scanChannels lists the channels of a converter. A channel without a scale has no
// unit and is left out.
func (r *reading) scanChannels(dir, chip string) (channels []iioChannel) {
	names, _ := r.fs.Names(dir)
	for _, n := range names {
		id, ok := strings.CutSuffix(n, "_raw")
		id, isIn := strings.CutPrefix(id, "in_")
		ch := iioChannel{raw: dir + "/" + n, metric: collector.FPGAVoltage, label: iioSensor(chip, id)}
		if strings.HasPrefix(id, "temp") {
			ch.metric = collector.TemperatureCelsius
		} else if !strings.HasPrefix(id, "voltage") {
			continue
		}
		prefix := dir + "/in_" + id
		if !ok || !isIn || len(channels) >= maxChannels || !r.fs.Exists(prefix+"_scale") {
			continue
		}
		if text, ok := r.textEvery(never, prefix+"_label"); ok && text != "" {
			ch.label = tidy(text)
		}
		if ch.scale, ok = r.fixed(prefix + "_scale"); ok && r.fs.Exists(prefix+"_offset") {
			ch.offset, ok = r.fixed(prefix + "_offset")
		}
		if !ok {
			r.Reject(ch.metric, collector.RejectType)
			continue
		}
		channels = append(channels, ch)
	}
	return channels
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

func (ch *iioChannel) read(r *reading) {
	text, ok := r.text(ch.raw)
	if !ok {
		return
	}
	raw, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		r.Reject(ch.metric, collector.RejectType)
		return
	}
	// The resolution of the converter is a millionth.
	r.Set(ch.metric, math.Round((float64(raw)+ch.offset)*ch.scale*1000)/1e6, ch.label)
}

// fixed reads a constant of the device, such as a scale.
func (r *reading) fixed(file string) (float64, bool) {
	text, ok := r.textEvery(never, file)
	if !ok {
		return 0, false
	}
	v, err := strconv.ParseFloat(text, 64)
	return v, err == nil
}

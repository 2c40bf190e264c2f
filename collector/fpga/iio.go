package fpga

import (
	"math"
	"path"
	"strconv"
	"strings"

	"github.com/accel-exporter/accel-exporter/collector"
)

// iioChip is the analogue-to-digital converter of a SoC's fabric.
type iioChip struct {
	dir      string
	channels []iioChannel
}

// iioChannel is one channel: value = (raw + offset) × scale, in thousandths.
type iioChannel struct {
	raw, scale, offset string
	temperature        bool
	labels             []string
}

// iioNames are the converters that measure the FPGA.
var iioNames = map[string]bool{"xilinx-ams": true, "xadc": true, "xilinx-system-monitor": true}

// amsSensors are the temperatures of xilinx-ams in mainline, which numbers
// them. Its voltages are numbered by position, which depends on the blocks that
// the device tree enables: they keep their numbers.
var amsSensors = map[string]string{"temp7": "ps_lpd", "temp8": "ps_fpd", "temp20": "pl"}

// scanIIO lists the converters of the node. SoCs have one.
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
		c.chips = append(c.chips, r.scanChannels(dir, name))
	}
}

func (r *reading) scanChannels(dir, chip string) iioChip {
	out := iioChip{dir: dir}
	names, _ := r.fs.Names(dir)
	has := map[string]bool{}
	for _, n := range names {
		has[n] = true
	}
	for _, n := range names {
		id, ok := strings.CutSuffix(n, "_raw")
		id, isIn := strings.CutPrefix(id, "in_")
		temperature := strings.HasPrefix(id, "temp")
		if !ok || !isIn || !temperature && !strings.HasPrefix(id, "voltage") || len(out.channels) >= maxChannels {
			continue
		}
		ch := iioChannel{raw: dir + "/" + n, temperature: temperature, labels: []string{iioSensor(chip, id)}}
		prefix := "in_" + id
		if has[prefix+"_label"] {
			if text, ok := r.textEvery(never, dir+"/"+prefix+"_label"); ok && text != "" {
				ch.labels[0] = tidy(text)
			}
		}
		if has[prefix+"_scale"] {
			ch.scale = dir + "/" + prefix + "_scale"
		}
		if has[prefix+"_offset"] {
			ch.offset = dir + "/" + prefix + "_offset"
		}
		out.channels = append(out.channels, ch)
	}
	return out
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

func (c *iioChip) read(r *reading) {
	for i := range c.channels {
		ch := &c.channels[i]
		metric := collector.FPGAVoltage
		if ch.temperature {
			metric = collector.TemperatureCelsius
		}
		text, ok := r.text(ch.raw)
		if !ok || ch.scale == "" {
			continue // without offset or scale it has no unit
		}
		raw, err := strconv.ParseInt(text, 10, 64)
		scale, ok := r.fixed(ch.scale)
		offset := 0.0
		if ch.offset != "" && ok {
			offset, ok = r.fixed(ch.offset)
		}
		if err != nil || !ok {
			r.Reject(metric, collector.RejectType)
			continue
		}
		// The resolution of the converter is a millionth.
		r.Set(metric, math.Round((float64(raw)+offset)*scale*1000)/1e6, ch.labels...)
	}
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

package fpga

import "github.com/accel-exporter/accel-exporter/collector"

// readLimits sets the thresholds of a sensor, which are read once in
// SlowInterval. Implausible ones are left out: 0 and below are none, and of a
// warning above its critical limit neither is valid.
func (r *reading) readLimits(o *Options, s *sensor, measured float64, known bool) {
	if len(s.limits) == 0 {
		return
	}
	m := *channelOf(s.kind + "0").limit
	values := make([]float64, len(s.limits))
	for i, l := range s.limits {
		if text, ok := r.textEvery(o.SlowInterval, l.file); ok {
			values[i], _ = r.whole(m, text, s.unit)
		}
	}
	for i, l := range s.limits {
		v := values[i]
		if s.kind == "temp" && (v <= 0 || known && bogus(v, measured)) {
			if v > 0 {
				r.Reject(m, collector.RejectRange)
			}
			continue
		}
		if l.name == "warning" || l.name == "critical" {
			if w, c := named(s.limits, values, "warning"), named(s.limits, values, "critical"); v <= 0 || w > 0 && c > 0 && w > c {
				if v > 0 {
					r.Reject(m, collector.RejectRange)
				}
				continue
			}
		}
		r.Set(m, v, l.labels...)
	}
}

func named(limits []limit, values []float64, name string) float64 {
	for i, l := range limits {
		if l.name == name {
			return values[i]
		}
	}
	return 0
}

// bogus reports whether a temperature limit is none: board controllers return
// 17.5 degrees for an empty cage. A part that idles above 50 degrees is common,
// one that must stay below 50 does not exist.
func bogus(limit, measured float64) bool { return limit < 50 && measured > limit }

// readAlarms sets the driver's alarms of a sensor.
func (r *reading) readAlarms(s *sensor) {
	for _, a := range s.alarms {
		if v, ok := r.value(collector.FPGASensorAlarm, a.file, 1); ok {
			r.Set(collector.FPGASensorAlarm, v, a.labels...)
		}
	}
}

package compat

import (
	"maps"
	"slices"

	"github.com/accel-exporter/accel-exporter/collector"
	"github.com/accel-exporter/accel-exporter/collector/dcgm/dcgmfield"
	"github.com/accel-exporter/accel-exporter/internal/exposition"
)

// Fields that dcgm-exporter computes itself and that have an equivalent here.
const (
	xidTotal     = "DCGM_EXP_XID_ERRORS_TOTAL"
	healthStatus = "DCGM_EXP_GPU_HEALTH_STATUS"
)

func servesDerived(name string) bool { return name == xidTotal || name == healthStatus }

// healthCodes are the values of DCGM's dcgmHealthWatchResults_t. An unknown
// verdict has no code and is absent.
var healthCodes = state(collector.DeviceHealth, "state", map[string]float64{"healthy": 0, "degraded": 10, "failed": 20})

// watches maps the names of health watches in accel_dcgm_health to those of
// dcgm-exporter.
var watches = map[string]string{
	"pcie": "PCIE", "nvlink": "NVLINK", "pmu": "PMU", "mcu": "MCU", "memory": "MEM", "sm": "SM",
	"inforom": "INFOROM", "thermal": "THERMAL", "power": "POWER", "driver": "DRIVER",
}

// watchCodes returns the source of the result of one DCGM health watch.
func watchCodes(watch string) source {
	s := source{any: true, combine: code}
	for state, c := range map[string]float64{"pass": 0, "warn": 10, "fail": 20} {
		s.terms = append(s.terms, term{metric: collector.DCGMHealth, labels: []string{"watch", watch, "state", state}, weight: c})
	}
	return s
}

// derived adds the series of a row that dcgm-exporter computes.
func (p *page) derived(out []exposition.Derived, f *family) []exposition.Derived {
	for _, u := range p.units {
		switch {
		case u.board != nil || !u.isA(classGPU):
		case f.row.Name == xidTotal:
			out = p.xids(out, f, u)
		default:
			out = p.health(out, f, u, &healthCodes, "ALL")
			for _, name := range slices.Sorted(maps.Keys(watches)) {
				s := watchCodes(name)
				out = p.health(out, f, u, &s, watches[name])
			}
		}
	}
	return out
}

// health adds the series of one watch. It adds none where u has no result for
// the watch.
func (p *page) health(out []exposition.Derived, f *family, u *unit, s *source, watch string) []exposition.Derived {
	rows, weights := u.rows(s)
	if rows == nil {
		return out
	}
	labels := set(p.labelsOf(u))
	labels.add("health_watch", watch)
	return append(out, exposition.Derived{Metric: f.metric, Labels: labels, Rows: rows, Value: value(dcgmfield.Field{}, code, weights)})
}

// xids adds the Xid counters of a GPU.
func (p *page) xids(out []exposition.Derived, f *family, u *unit) []exposition.Derived {
	for _, i := range u.readings[collector.XidErrors] {
		labels := set(p.labelsOf(u))
		labels.add("xid", label(&u.device.Readings[i], "xid"))
		out = append(out, exposition.Derived{Metric: f.metric, Labels: labels, Rows: []int{u.base + i}, Value: same})
	}
	return out
}

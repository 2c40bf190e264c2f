package compat

import (
	"github.com/accel-exporter/accel-exporter/collector"
	"github.com/accel-exporter/accel-exporter/internal/dcgmfield"
	"github.com/accel-exporter/accel-exporter/internal/exporter"
)

// What dcgm-exporter computes itself and has an honest equivalent here.
const (
	xidTotal     = "DCGM_EXP_XID_ERRORS_TOTAL"
	healthStatus = "DCGM_EXP_GPU_HEALTH_STATUS"
)

func servesDerived(name string) bool { return name == xidTotal || name == healthStatus }

// healthCodes are DCGM's dcgmHealthWatchResults_t. A verdict of unknown has
// none, so that nothing is said.
var healthCodes = state(collector.DeviceHealth, "state", map[string]float64{"healthy": 0, "degraded": 10, "failed": 20})

// derived adds the series of a row that is no field of DCGM.
func (p *page) derived(out []exporter.Derived, f *family) []exporter.Derived {
	for _, u := range p.units {
		if u.board != nil || u.class == classSwitch || u.class == classCPU {
			continue
		}
		if f.row.Name == xidTotal {
			out = p.xids(out, f, u)
			continue
		}
		rows, weights := u.rows(&healthCodes)
		if rows == nil {
			continue
		}
		labels := set(p.labelsOf(u))
		labels.add("health_watch", "ALL")
		out = append(out, exporter.Derived{Metric: f.metric, Labels: labels, Rows: rows, Value: value(dcgmfield.Field{}, code, weights)})
	}
	return out
}

// xids adds the counters of a GPU's Xids.
func (p *page) xids(out []exporter.Derived, f *family, u *unit) []exporter.Derived {
	for i := range u.device.Readings {
		r := &u.device.Readings[i]
		if r.Metric != collector.XidErrors {
			continue
		}
		labels := set(p.labelsOf(u))
		labels.add("xid", label(r, "xid"))
		out = append(out, exporter.Derived{Metric: f.metric, Labels: labels, Rows: []int{u.base + i}, Value: same})
	}
	return out
}

package compat

import (
	"maps"
	"slices"
	"sync"

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

// watches maps the names of health watches in accel_dcgm_health to the names of
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

// health adds the series of one watch. It adds no series where u has no result
// for the watch.
func (p *page) health(out []exposition.Derived, f *family, u *unit, s *source, watch string) []exposition.Derived {
	rows, weights := u.rows(s)
	if rows == nil {
		return out
	}
	labels := set(p.labelsOf(u))
	labels.add("health_watch", watch)
	return f.add(out, labels, s, weights, u.values(rows...))
}

// xids adds the Xid counters of a GPU.
func (p *page) xids(out []exposition.Derived, f *family, u *unit) []exposition.Derived {
	for _, i := range u.readings[collector.XidErrors] {
		r, labels := &u.device.Readings[i], set(p.labelsOf(u))
		labels.add("xid", r.Label("xid"))
		out = append(out, exposition.Derived{Metric: f.metric, Labels: labels, Value: r.Value})
	}
	return out
}

// fact locates the value of a DCGM field that is exported as a label: a label of
// a reading of the board or of the node.
type fact struct {
	metric *collector.Metric
	// only are the labels that the reading must have, as name, value pairs.
	only  []string
	label string
}

// facts maps field ids to facts.
var facts = sync.OnceValue(func() map[uint16]*fact {
	firmware := func(component string) fact {
		return fact{collector.FirmwareInfo, []string{"component", component}, "version"}
	}
	driver := func(label string) fact { return fact{collector.DriverInfo, []string{"vendor", "nvidia"}, label} }
	device := func(label string) fact { return fact{collector.DeviceInfo, nil, label} }
	all := map[uint16]*fact{}
	for name, f := range map[string]fact{
		"DCGM_FI_DRIVER_VERSION":          driver("version"),
		"DCGM_FI_NVML_VERSION":            driver("library_version"),
		"DCGM_FI_DEV_NAME":                device("model"),
		"DCGM_FI_DEV_SERIAL":              device("serial"),
		"DCGM_FI_DEV_NVML_INDEX":          device("index"),
		"DCGM_FI_DEV_VBIOS_VERSION":       firmware("vbios"),
		"DCGM_FI_DEV_INFOROM_IMAGE_VER":   firmware("inforom"),
		"DCGM_FI_DEV_OEM_INFOROM_VER":     firmware("inforom_oem"),
		"DCGM_FI_DEV_ECC_INFOROM_VER":     firmware("inforom_ecc"),
		"DCGM_FI_DEV_POWER_INFOROM_VER":   firmware("inforom_power"),
		"DCGM_FI_DEV_FABRIC_CLUSTER_UUID": {collector.FabricInfo, nil, "cluster_uuid"},
		"DCGM_FI_DEV_FABRIC_CLIQUE_ID":    {collector.FabricInfo, nil, "clique"},
	} {
		field, ok := dcgmfield.ByName(name)
		if !ok {
			panic("compat: field " + name)
		}
		all[field.ID] = &f
	}
	return all
})

// factOf is the name and value of a label row of the counters file.
type factOf struct{ name, value string }

// factsOf returns the label rows that have a value for a unit.
func (p *page) factsOf(u *unit) []factOf {
	var out []factOf
	board := u
	if u.board != nil {
		board = u.board
	}
	for _, l := range p.view.labels {
		v := ""
		if l.fact != nil {
			v = l.fact.find(p.node)
			if v == "" {
				v = l.fact.find(board.device.Readings)
			}
		}
		if v == "" {
			v = rawFact(board.device.Readings, l.row.Field.ID)
		}
		if v == "" {
			continue
		}
		p.labelled[l.row.Field.ID] = true
		out = append(out, factOf{l.row.Name, v})
	}
	return out
}

// find returns the value of the fact in readings, or "".
func (f *fact) find(readings []collector.Reading) string {
	t := term{metric: f.metric, labels: f.only}
	for i := range readings {
		if t.matches(&readings[i]) {
			return readings[i].Label(f.label)
		}
	}
	return ""
}

package compat

import (
	"sync"

	"github.com/accel-exporter/accel-exporter/collector"
	"github.com/accel-exporter/accel-exporter/collector/dcgm/dcgmfield"
)

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
			return label(&readings[i], f.label)
		}
	}
	return ""
}

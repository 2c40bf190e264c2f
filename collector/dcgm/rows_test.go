package dcgm

import (
	"slices"
	"strings"
	"testing"

	"github.com/accel-exporter/accel-exporter/collector"
	"github.com/accel-exporter/accel-exporter/collector/dcgm/dcgmfield"
)

var allRows = [][]row{profilingRows, aloneRows, memoryRows, switchRows, linkRows, cpuRows}

// Every row agrees with DCGM's table on kind and unit, and with the family's
// labels; the family documents the field.
func TestRows(t *testing.T) {
	scales := map[string]float64{"celsius": asIs, "watts": asIs, "millijoules": milli, "nanoseconds": nano, "megahertz": mega, "mebibytes": mebibyte, "percent": percent, "ratio": asIs, "bytes_per_second": asIs, "": asIs}
	for _, rows := range allRows {
		for _, r := range rows {
			f, known := dcgmfield.ByID(r.field)
			if !known {
				t.Errorf("no field %d", r.field)
				continue
			}
			if (f.Kind == dcgmfield.Counter) != (r.metric.Kind == collector.Counter) {
				t.Errorf("%s is a %s and feeds %s", f.Name, f.Kind, r.metric.Name)
			}
			if scale, known := scales[f.Unit]; !known || scale != r.scale {
				t.Errorf("%s is in %q and scaled by %v", f.Name, f.Unit, r.scale)
			}
			labels := len(r.labels)
			if f.Entity == dcgmfield.Link {
				labels++
			}
			if labels != len(r.metric.Labels) {
				t.Errorf("%s gives %d labels to %s", f.Name, labels, r.metric.Name)
			}
			if !slices.ContainsFunc(r.metric.From, func(s string) bool { return strings.HasPrefix(s, "DCGM field") }) {
				t.Errorf("%s does not have DCGM as origin", r.metric.Name)
			}
		}
	}
}

// Configured fields are divided by kind; unreadable ones are counted with the
// reason.
func TestAsk(t *testing.T) {
	var unread tally
	fields := ask([]uint16{150, 156, 54, 60, 65000, 2}, &unread)
	for id, want := range map[uint16]*collector.Metric{150: collector.DCGMField, 156: collector.DCGMFieldTotal, 54: collector.DCGMFieldInfo, 2: collector.DCGMFieldInfo} {
		if f := fields[id]; f == nil || f.metric != want {
			t.Errorf("field %d: %+v", id, f)
		}
	}
	want := tally{{Call: "DCGM_FI_SYSTEM_PCI_TOPOLOGY", Code: "field_unsupported_by_api", Count: 1}, {Call: "DCGM_FI_65000", Code: "unknown_field", Count: 1}}
	if !slices.Equal(unread, want) {
		t.Errorf("counted %+v, want %+v", unread, want)
	}
	if got := of(fields, instances); !slices.Equal(got, []uint16{54}) {
		t.Errorf("of MIG instances %v are read: the GPU's would be copied to each", got)
	}
}

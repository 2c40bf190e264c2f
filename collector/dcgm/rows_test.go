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

// Beside NVML, DCGM counts nothing of a GPU that NVML counts: a counter that
// changed its origin would jump.
func TestNoCounterBesideNVML(t *testing.T) {
	for _, r := range profilingRows {
		if r.metric.Kind == collector.Counter {
			t.Errorf("field %d feeds %s", r.field, r.metric.Name)
		}
	}
}

func TestRowsRoundUp(t *testing.T) {
	r := rowOf(profilingRows, 1001)
	for v, want := range map[float64]float64{0.5: 0.5, 1: 1, 1.005: 1, 1.5: 1.5} {
		if got := r.of(v); got != want {
			t.Errorf("%v is %v, want %v", v, got, want)
		}
	}
	if got := rowOf(aloneRows, 156).of(2500); got != 2.5 {
		t.Errorf("2500 mJ are %v J", got)
	}
}

// Configured fields are divided by kind; unavailable ones are listed with the
// reason.
func TestAsk(t *testing.T) {
	fields, skipped := ask([]uint16{150, 156, 54, 60, 65000, 2})
	for id, want := range map[uint16]*collector.Metric{150: collector.DCGMField, 156: collector.DCGMFieldTotal, 54: collector.DCGMFieldInfo, 2: collector.DCGMFieldInfo} {
		if f := fields[id]; f == nil || f.metric != want {
			t.Errorf("field %d: %+v", id, f)
		}
	}
	want := []skip{{"DCGM_FI_SYSTEM_PCI_TOPOLOGY", skipBinary}, {"DCGM_FI_65000", skipUnknown}}
	if !slices.Equal(skipped, want) {
		t.Errorf("skipped %+v, want %+v", skipped, want)
	}
	if got := of(fields, instances); !slices.Equal(got, []uint16{54}) {
		t.Errorf("of MIG instances %v are read: the GPU's would be copied to each", got)
	}
}

func TestOptions(t *testing.T) {
	address, _ := ParseAddress("localhost")
	for name, o := range map[string]Options{
		"both":    {Embedded: true, Address: address},
		"neither": {},
		"many":    {Embedded: true, Fields: make([]uint16, MaxFields+1)},
	} {
		if err := o.check(); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

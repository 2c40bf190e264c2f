//go:build linux && cgo

package nvidia

import (
	"fmt"
	"sort"
	"testing"

	"github.com/accel-exporter/accel-exporter/collector"
)

func dump(s *sampling, r collector.Round) {
	for _, n := range r.Node {
		s.Logf("node %s%v %v", n.Metric.Name, n.Labels, n.Value)
	}
	for _, d := range r.Devices {
		s.Logf("== %s parent=%s model=%q pci=%s kube=%v down=%q rejects=%d", d.ID, d.Parent, d.Model, d.PCI, d.KubeIDs, d.Down, len(d.Rejects))
		var lines []string
		for _, x := range d.Readings {
			lines = append(lines, fmt.Sprintf("  %s%q %v", x.Metric.Name, x.Labels, x.Value))
		}
		for _, x := range d.Rejects {
			lines = append(lines, fmt.Sprintf("  REJECT %s %s", x.Metric.Name, x.Reason))
		}
		sort.Strings(lines)
		for _, l := range lines {
			s.Log(l)
		}
	}
	s.Log(r.Calls)
}

func TestDump(t *testing.T) {
	inChild(t, "h100-8", nil, func(s *sampling) {
		s.round()
		r := s.until("GPM", func(r collector.Round, err error) bool {
			_, e := value(r.Devices[0], collector.OccupancyRatio)
			return e == nil
		})
		dump(s, r)
	})
}

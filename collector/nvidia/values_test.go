//go:build linux && cgo

package nvidia

import (
	"testing"
	"time"

	"github.com/accel-exporter/accel-exporter/collector"
)

// The state of a board: a fault that cannot be repaired, a damaged InfoROM, fans,
// licences and the place in the rack.
func TestBoard(t *testing.T) {
	type row struct {
		gpu    int
		metric *collector.Metric
		labels []string
		value  float64 // -1: absent
	}
	for _, tc := range []struct {
		scenario string
		faults   [][]string
		rows     []row
	}{
		{"gb200-4", [][]string{{"set", "repair.unrepairable_memory", "1", "1"}, {"set", "inforom.valid", "0", "1"}, {"set", "remap.uncorrectable_inactive", "3", "1"}}, []row{
			{0, collector.MemoryUnrepairable, nil, 0},
			{1, collector.MemoryUnrepairable, nil, 1},
			{0, collector.InforomValid, nil, 1},
			{1, collector.InforomValid, nil, 0},
			{1, collector.RowRemapsInactive, []string{"uncorrected"}, 3},
			{0, collector.PlatformInfo, []string{"1820000000001", "14", "4", "1", "2"}, 1},
			{0, collector.PowerScope, []string{"module"}, 467.68},
			{0, collector.TemperatureMargin, []string{"memory_max_operating"}, -2},
			{0, collector.ThrottleSeconds, []string{"reliability"}, 0},
			{0, collector.SRAMVolatileErrors, []string{"uncorrected_parity"}, 0},
			{0, collector.FanRatio, nil, -1},
			{0, collector.VGPULicensed, nil, -1},
		}},
		{"b200-8", nil, []row{{0, collector.PlatformInfo, []string{"", "", "", "1", "6"}, 1}}},
		{"h100-8", nil, []row{
			{0, collector.PlatformInfo, []string{"", "", "", "", "7"}, 1},
			{0, collector.MemoryUnrepairable, nil, -1},
			{0, collector.PowerScope, []string{"module"}, -1},
		}},
		{"t4", [][]string{{"set", "fan.count", "2", "0"}, {"set", "fan.speed", "103", "0"}, {"set", "fan.rpm", "1700", "0"}}, []row{
			{0, collector.FanRatio, []string{"1"}, 1},
			{0, collector.FanSpeed, []string{"0"}, 1700},
		}},
		{"vgpu", nil, []row{
			{0, collector.VGPULicensed, []string{"workstation"}, 1},
			{0, collector.VGPULicenseExpiry, []string{"workstation"}, 1798761600},
			{0, collector.InforomValid, nil, -1},
		}},
	} {
		t.Run(tc.scenario, func(t *testing.T) {
			inChild(t, tc.scenario, tc.faults, func(s *sampling) {
				r, _ := s.Sample(30 * time.Second) // a driver may refuse a field
				for _, w := range tc.rows {
					d := gpus(r)[w.gpu]
					switch {
					case w.value == -1:
						absent(s, d, w.metric, w.labels...)
					case w.value == -2:
						if v, err := value(d, w.metric, w.labels...); err != nil {
							s.Errorf("%s%v: %v, %v", w.metric.Name, w.labels, v, err)
						}
					default:
						want(s, d, w.value, w.metric, w.labels...)
					}
				}
			})
		})
	}
}

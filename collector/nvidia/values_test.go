//go:build linux && cgo

package nvidia

import (
	"strings"
	"testing"
	"time"

	"github.com/accel-exporter/accel-exporter/collector"
	"github.com/accel-exporter/accel-exporter/internal/sim/simtest"
)

// check is a check of the GPUs of a round.
type check func(s *sampling, gpus []collector.Device)

func has(gpu int, v float64, m *collector.Metric, labels ...string) check {
	return func(s *sampling, gpus []collector.Device) { want(s, gpus[gpu], v, m, labels...) }
}

func lacks(gpu int, m *collector.Metric, labels ...string) check {
	return func(s *sampling, gpus []collector.Device) { absent(s, gpus[gpu], m, labels...) }
}

func hasAtLeast(gpu int, least float64, m *collector.Metric, labels ...string) check {
	return func(s *sampling, gpus []collector.Device) {
		if v, err := value(gpus[gpu], m, labels...); err != nil || v < least {
			s.Errorf("%s%v: %v, %v", m.Name, labels, v, err)
		}
	}
}

// The values of GPUs on boards and with faults of many kinds.
func TestValues(t *testing.T) {
	for name, tc := range map[string]struct {
		scenario string
		faults   [][]string
		checks   []check
	}{
		"a damaged board": {"gb200-4", [][]string{{"set", "repair.unrepairable_memory", "1", "1"}, {"set", "inforom.valid", "0", "1"}, {"set", "remap.uncorrectable_inactive", "3", "1"}}, []check{
			has(0, 0, collector.MemoryUnrepairable),
			has(1, 1, collector.MemoryUnrepairable),
			has(0, 1, collector.InforomValid),
			has(1, 0, collector.InforomValid),
			has(0, 1, collector.PlatformInfo, "1820000000001", "14", "4", "1", "2"),
			has(0, 467.68, collector.PowerScope, "module"),
			hasAtLeast(0, -50, collector.TemperatureMargin, "memory_max_operating"),
			has(0, 0, collector.ThrottleSeconds, "reliability"),
			lacks(0, collector.FanRatio),
			lacks(0, collector.VGPULicensed),
		}},
		"its place in the rack": {"b200-8", nil, []check{has(0, 1, collector.PlatformInfo, "", "", "", "1", "6")}},
		"a board without a rack": {"h100-8", nil, []check{
			has(0, 1, collector.PlatformInfo, "", "", "", "", "7"),
			lacks(0, collector.MemoryUnrepairable),
			lacks(0, collector.PowerScope, "module"),
		}},
		"fans": {"t4", [][]string{{"set", "fan.count", "2", "0"}, {"set", "fan.speed", "103", "0"}, {"set", "fan.rpm", "1700", "0"}}, []check{
			has(0, 1, collector.FanRatio, "1"),
			has(0, 1700, collector.FanSpeed, "0"),
		}},
		"a licence": {"vgpu", nil, []check{
			has(0, 1, collector.VGPULicensed, "workstation"),
			lacks(0, collector.InforomValid),
		}},
		// Status, summary and partition of the fabric are read. A value that the program
		// does not know is other, and the rest of the family stays.
		"the fabric": {"b200-8", [][]string{
			{"fabric", "completed", "1", "--status=NOT_FOUND"},
			{"set", "fabric.health_summary", "2", "2"},
			{"set", "fabric.health_summary", "3", "3"},
			{"set", "fabric.health_mask", "0x20aa", "4"},
			{"set", "fabric.state", "7", "5"},
			{"set", "fabric.health_summary", "9", "5"},
			{"set", "fabric.status", "77", "6"},
			{"set", "fabric.cluster_uuid", "00000001-0000-0000-0000-000000000001", "7"},
			{"set", "fabric.health_mask", "0x11aa", "7"},
		}, []check{
			has(0, 1, collector.FabricState, "completed"),
			has(0, 1, collector.FabricStatus, "success"),
			has(0, 1, collector.FabricHealth, "healthy"),
			lacks(0, collector.FabricHealth, "other"),
			lacks(0, collector.FabricInfo), // its cluster UUID is all zeros
			has(1, 0, collector.FabricStatus, "success"),
			has(1, 1, collector.FabricStatus, "not_found"),
			has(2, 1, collector.FabricHealth, "unhealthy"),
			has(3, 1, collector.FabricHealth, "limited_capacity"),
			has(4, 0, collector.FabricPartition),
			has(5, 1, collector.FabricState, "other"),
			has(5, 0, collector.FabricState, "completed"),
			has(5, 1, collector.FabricHealth, "other"),
			lacks(5, collector.FabricStatus, "success"),
			has(6, 1, collector.FabricStatus, "other"),
			has(7, 1, collector.FabricInfo, "00000001-0000-0000-0000-000000000001", "0"),
			has(7, 1, collector.FabricPartition),
		}},
		// NVLink values that are not of one link are one series per GPU.
		"links": {"b200-8", [][]string{
			{"nvlink", "3", "errors", "0", "--counter=field.215", "--count=4"},
			{"nvlink", "1", "errors", "0", "--counter=field.237", "--count=5"},
			{"nvlink", "2", "errors", "0", "--counter=field.237", "--count=6"},
			{"nvlink", "0", "down", "1"},
			{"field", "166", "77", "2"},
			{"nvlink", "9", "errors", "0", "--counter=field.292", "--count=263"}, // 1e-7
		}, []check{
			has(0, 4, collector.NVLinkErrors, "3", "recovery"),
		}},
		"links to the CPU": {"gb200-4", [][]string{{"field", "171", "5", "1"}, {"field", "234", "1", "1"}, {"field", "231", "error:UNKNOWN", "1"}}, []check{
			has(0, 10, collector.C2CErrors, "replay"),
			has(0, 1, collector.FabricInfo, "00000001-0000-0000-0000-000000000001", "2"),
			lacks(1, collector.C2CErrors, "crc"),
			has(1, 10, collector.C2CErrors, "replay"),
		}},
		// A value that is newer than this program is other; the rest of the state set
		// stays, and nothing is rejected.
		"newer values": {"b200-8", [][]string{{"set", "recovery_action", "99", "0"}, {"set", "recovery_action", "7", "1"}, {"set", "compute_mode", "9", "0"}, {"set", "architecture", "99", "0"}}, []check{
			has(0, 1, collector.RecoveryAction, "other"),
			has(0, 0, collector.RecoveryAction, "none"),
			lacks(0, collector.RecoveryAction, "system_reboot"),
			has(1, 1, collector.RecoveryAction, "system_reboot"),
			has(0, 1, collector.ComputeMode, "other"),
			has(0, 0, collector.ComputeMode, "default"),
			has(0, 1, collector.DeviceInfo, "gpu", "nvidia", "NVIDIA B200", "other"),
		}},
		"R615": {"b200-8", [][]string{
			{"driver-reload", "--driver=615.36.04"},
			{"set", "throttle.reasons", "0x600", "0"},
			{"set", "throttle.reasons", "0x40103", "1"}, // idle, two settings, and a bit that is not in the header
			{"set", "fabric.health_mask", "0x60aa", "0"},
			{"set", "fabric.health_mask", "0x90aa", "1"},
			{"set", "fabric.health_mask", "0x200aa", "2"},
			{"set", "link.4.state", "3", "0"},
			{"set", "bank_remap.active", "5", "3"},
			{"set", "bank_remap.inactive", "1", "3"},
			{"set", "bank_remap.pending", "1", "3"},
			{"set", "bank_remap.groups.max", "30", "3"},
			{"set", "bank_remap.groups.none", "2", "3"},
			{"set", "architecture", "15", "3"},
		}, []check{
			has(0, 1, collector.ThrottleActive, "board_limit"),
			has(0, 1, collector.ThrottleActive, "reliability"),
			has(0, 0, collector.ThrottleActive, "hw_slowdown"),
			lacks(0, collector.ThrottleActive, "other"),
			has(1, 1, collector.ThrottleActive, "other"),
			has(1, 0, collector.ThrottleActive, "hw_slowdown"),
			lacks(1, collector.ThrottleActive, "board_limit"),
			has(0, 0, collector.FabricFault, "global_fabric_manager_disconnected"), // 1 is connected
			has(1, 1, collector.FabricFault, "global_fabric_manager_disconnected"),
			lacks(2, collector.FabricFault, "global_fabric_manager_disconnected"),
			has(2, 1, collector.FabricFault, "other"),
			lacks(1, collector.FabricFault, "other"),
			has(0, 0, collector.NVLinkUp, "4"),
			has(0, 1, collector.NVLinkTrafficDisabled, "4"),
			has(0, 1, collector.NVLinkUp, "5"),
			lacks(0, collector.NVLinkTrafficDisabled, "5"),
			has(3, 1, collector.BankRemapPending),
			has(3, 30, collector.BankRemapGroups, "max"),
			has(3, 2, collector.BankRemapGroups, "none"),
			lacks(0, collector.BankRemapPending),
			has(3, 1, collector.DeviceInfo, "gpu", "nvidia", "NVIDIA B200", "npu3"),
		}},
		// T.Limit is that of the GPU or of the memory, whichever is nearer to its limit. The
		// margin of the memory is its own, on GPUs without T.Limit too.
		"hot memory": {"h100-8", [][]string{{"set", "temperature.gpu", "59", "0"}, {"set", "temperature.memory", "75", "0"}, {"set", "temperature.gpu", "76", "1"}, {"set", "temperature.memory", "73", "1"}}, []check{
			has(0, 95, collector.TemperatureLimit, "memory", "max_operating"),
			has(0, 20, collector.TemperatureMargin, "memory_max_operating"),
			has(0, 20, collector.TemperatureMargin, "max_operating"),
			has(0, 22, collector.TemperatureMargin, "slowdown"),
			has(1, 22, collector.TemperatureMargin, "memory_max_operating"),
			has(1, 11, collector.TemperatureMargin, "max_operating"),
		}},
		"memory without T.Limit": {"a100", [][]string{{"set", "temperature.memory", "90", "0"}, {"set", "temperature.memory", "error:NOT_SUPPORTED", "1"}}, []check{
			has(0, 5, collector.TemperatureMargin, "memory_max_operating"),
			lacks(1, collector.TemperatureMargin, "memory_max_operating"),
			hasAtLeast(1, -50, collector.TemperatureMargin, "max_operating"),
		}},
		// R545 declares the memory temperature as a double and fills in the integer.
		"an integer declared as a double": {"h100-8", [][]string{{"driver-reload", "--driver=545.29.06"}, {"set", "temperature.memory", "61", "0"}}, []check{
			has(0, 61, collector.TemperatureCelsius, "memory"),
		}},
		// A direct NVLink to a GPU in MIG mode reads as down and is left out. Links to
		// switches are not affected.
		"direct links to MIG": {"a100", [][]string{{"mig", "2", "1g.10gb"}, {"nvlink", "5", "down", "0"}}, []check{
			has(0, 1, collector.NVLinkUp, "0"),
			lacks(2, collector.NVLinkUp, "0"), // NVML does not support it
			lacks(0, collector.NVLinkUp, "4"),
			lacks(0, collector.NVLinkUp, "7"),
			has(0, 1, collector.NVLinkUp, "8"),
		}},
		"links of MIG to switches": {"h100-8", [][]string{{"mig", "2", "1g.10gb"}, {"nvlink", "5", "down", "0"}}, []check{
			has(0, 1, collector.NVLinkUp, "0"),
			lacks(2, collector.NVLinkUp, "0"),
			has(0, 0, collector.NVLinkUp, "5"),
		}},
	} {
		t.Run(name, func(t *testing.T) {
			inChild(t, tc.scenario, tc.faults, func(s *sampling) {
				r, err := s.Sample(simtest.Patience)
				if err != nil && !strings.Contains(err.Error(), "field_231") { // which a driver refuses in one case
					s.Fatal(err)
				}
				for _, check := range tc.checks {
					check(s, gpus(r))
				}
				for _, d := range gpus(r) {
					if len(d.Rejects) > 0 {
						s.Errorf("rejects: %v", d.Rejects)
					}
				}
			})
		})
	}
}

// TestLinkStateUnread: a link is closed to traffic only where the round has read it so.
func TestLinkStateUnread(t *testing.T) {
	inChild(t, "b200-8", [][]string{{"driver-reload", "--driver=615.36.04"}, {"set", "link.4.state", "3", "0"}}, func(s *sampling) {
		s.open(Options{SlowInterval: time.Millisecond})
		closed := func(r collector.Round) bool {
			_, ok := find(gpus(r)[0].Readings, collector.NVLinkTrafficDisabled, []string{"4"})
			return ok
		}
		s.Until("link 4 is closed", func(r collector.Round, _ error) bool { return closed(r) })
		s.Inject("error", "nvmlDeviceGetFieldValues", "UNKNOWN", "0")
		s.Until("nothing is known of link 4", func(r collector.Round, _ error) bool { return !closed(r) })
	})
}

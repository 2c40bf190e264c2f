package sim

import "strings"

// The keys of fixtures/nvml/keys.def; a test compares both.

// quirks are differences of a driver, or of its caller's environment, from the
// usual: QUIRKS of fixtures/nvml/state.h.
var quirks = []string{"unprivileged", "no-libcuda", "fixed-list", "other-pids", "capacity-counts", "growing-counts", "gpm-races"}

// locations are where ECC errors are counted.
var locations = []string{"l1", "l2", "dram", "register", "texture", "shm", "cbu", "sram"}

// valueKeys are numbers of a GPU, a line or more for each group.
var valueKeys = append(strings.Fields(`
	minor_number module_id board_id numa_node memory_numa_node brand architecture
	compute_capability.major compute_capability.minor
	cores
	memory.bus_width
	irq pdi multi_gpu_board persistence_mode compute_mode display_mode display_active virtualization_mode addressing_mode performance_state
	gsp.enabled gsp.default
	inforom.valid inforom.checksum
	bbx.flush_time bbx.flush_duration bbx.time_run
	event_types load
	model.power_idle model.power_memory_idle model.power_busy model.temperature_idle model.temperature_busy model.memory_temperature_offset
	model.tlimit_base model.pcie_tx_bytes_per_second model.pcie_rx_bytes_per_second model.nvlink_tx_bytes_per_second
	model.nvlink_rx_bytes_per_second
	utilization.gpu utilization.memory utilization.encoder utilization.decoder utilization.jpg utilization.ofa
	memory.total memory.reserved memory.used
	bar1.total bar1.used
	temperature.gpu temperature.memory temperature.margin
	threshold.shutdown threshold.slowdown threshold.memory_max threshold.gpu_max
	tlimit.shutdown tlimit.slowdown tlimit.memory_max tlimit.gpu_max
	fan.count fan.speed fan.rpm
	power.usage power.instant power.average power.memory power.module power.limit power.default_limit power.min_limit power.max_limit
	power.enforced_limit power.source
	energy energy.base
	clock.graphics clock.sm clock.memory clock.video
	idle_clock.graphics idle_clock.sm idle_clock.memory idle_clock.video
	max_clock.graphics max_clock.sm max_clock.memory max_clock.video
	app_clock.graphics app_clock.memory
	boost_clock.graphics
	throttle.idle throttle.app_clocks throttle.sw_power_cap throttle.hw_slowdown throttle.sync_boost throttle.sw_thermal throttle.hw_thermal
	throttle.hw_power_brake throttle.display throttle.supported throttle.reasons throttle.sw_power_cap.ns throttle.sync_boost.ns
	throttle.sw_thermal.ns throttle.hw_thermal.ns throttle.hw_power_brake.ns throttle.sw_power_cap.base throttle.sync_boost.base
	throttle.sw_thermal.base throttle.hw_thermal.base throttle.hw_power_brake.base
	policy.thermal.ns policy.board_limit.ns policy.low_utilization.ns policy.reliability.ns policy.app_clocks.ns policy.base_clocks.ns
	ecc.mode ecc.pending ecc.default
	sram.aggregate.parity sram.aggregate.secded sram.volatile.parity sram.volatile.secded sram.bucket.l2 sram.bucket.sm sram.bucket.pcie
	sram.bucket.mcu sram.bucket.other sram.threshold_exceeded
	remap.correctable remap.uncorrectable remap.pending remap.failure remap.correctable_inactive remap.uncorrectable_inactive remap.banks.max
	remap.banks.high remap.banks.partial remap.banks.low remap.banks.none
	bank_remap.active bank_remap.inactive bank_remap.pending bank_remap.groups.max bank_remap.groups.none
	retired.single_bit retired.double_bit retired.pending
	repair.channel_pending repair.tpc_pending repair.unrepairable_memory
	platform.slot platform.tray platform.host
	license.licensed license.expiry
	recovery_action
	pci.device_id pci.subsystem_id
	pcie.generation pcie.width pcie.max_generation pcie.gpu_max_generation pcie.max_width pcie.tx_kib_per_second pcie.rx_kib_per_second
	pcie.tx_bytes pcie.rx_bytes pcie.replay pcie.replay_rollover pcie.l0_to_recovery pcie.correctable pcie.naks_received pcie.receiver
	pcie.bad_tlp pcie.naks_sent pcie.bad_dllp pcie.non_fatal pcie.fatal pcie.unsupported_request pcie.lcrc pcie.lane pcie.atomics_outbound
	pcie.atomics_inbound
	nvlink.count nvlink.version nvlink.speed_mbps nvlink.remote_type nvlink.counters
	c2c.count c2c.status c2c.speed_mbps c2c.crc c2c.replay c2c.replay_b2b c2c.power_state
	fabric.state fabric.status fabric.clique fabric.health_mask fabric.health_summary
	mig.mode mig.pending mig.max_devices
	gpm.supported gpm.streaming
	profiling.module
	activity.sm activity.occupancy activity.integer activity.tensor activity.dfma activity.hmma activity.dmma activity.imma activity.dram
	activity.fp64 activity.fp32 activity.fp16
`), eccKeys()...)

// eccKeys are the counters of ECC errors: ecc.volatile.corrected.l1 and others.
func eccKeys() (keys []string) {
	for _, counter := range []string{"volatile", "aggregate"} {
		for _, kind := range []string{"corrected", "uncorrected"} {
			for _, location := range locations {
				keys = append(keys, "ecc."+counter+"."+kind+"."+location)
			}
		}
	}
	return keys
}

// textKeys are texts of a GPU.
var textKeys = []string{
	"name", "uuid", "serial", "pci.bus_id", "vbios", "board_part_number", "inforom.image", "inforom.oem", "inforom.ecc", "inforom.power",
	"gsp.version", "fabric.cluster_uuid", "platform.chassis_serial",
}

// linkKeys are numbers of one NVLink.
var linkKeys = []string{"state", "crc_flit", "crc_data", "replay", "recovery", "ecc_data"}

// migKeys are numbers of one MIG device.
var migKeys = []string{"load", "memory.used", "ecc.volatile.uncorrected.sram"}

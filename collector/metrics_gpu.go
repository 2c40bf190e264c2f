package collector

import "strconv"

// Families of GPUs.
var (
	XidErrors = define(Metric{
		Name:   "accel_gpu_xid_errors_total",
		Help:   "Xid events of a GPU since the exporter started, by number. An event that NVML and the kernel log both report counts once. Important numbers are exported as 0 from the start, so that the first event is an increase.",
		Kind:   Counter,
		Labels: []string{"xid"},
		From:   []string{"NVML nvmlEventSetWait_v2, event type 0x8; 999 is the driver's mark for an unknown Xid", "kernel log, NVRM: Xid", "DCGM field 230"},
		Level:  inForce,
	})
	SXidErrors = define(Metric{
		Name:   "accel_nvswitch_sxid_errors_total",
		Help:   "SXid events of an NVSwitch since the exporter started, by number; device is the switch's PCI address.",
		Kind:   Counter,
		Labels: []string{"sxid"},
		From:   []string{"kernel log, SXid", "DCGM fields 856, 857 of a switch; an event that both report counts once"},
		Level:  inForce,
	})
	XidTimestamp = define(Metric{
		Name:   "accel_gpu_xid_last_timestamp_seconds",
		Help:   "Time of the last event with the Xid, seconds since the epoch; partition is the MIG device it was attributed to, or empty. Absent before the first event.",
		Kind:   Mark,
		Labels: []string{"xid", "partition"},
		Range:  timestamp,
		From:   []string{"exporter"},
	})
	RecoveryAction = define(Metric{
		Name:   "accel_gpu_recovery_action",
		Help:   "Recovery action that the driver recommends for the GPU: 1 for the current action, 0 for the others.",
		Kind:   Gauge,
		Labels: []string{"action"},
		Range:  boolean,
		Values: []string{"action: none, reset, reboot, drain_p2p, drain_and_reset, recover_imex_domain; present only while it is recommended: bus_reset, system_reboot (of R615), and other for a value that this version does not know"},
		From:   []string{"NVML field 230"},
		Level:  onAttention,
	})
	RepairPending = define(Metric{
		Name:   "accel_gpu_repair_pending",
		Help:   "1 if a repair of the kind is pending until the GPU is reset.",
		Kind:   Gauge,
		Labels: []string{"kind"},
		Range:  boolean,
		Values: []string{"kind: channel, tpc"},
		From:   []string{"NVML nvmlDeviceGetRepairStatus"},
		Level:  onAttention,
	})
	// Read by hand: a voltage that is off where clocks or errors are suspicious.
	GPUVoltage = define(Metric{
		Name:   "accel_gpu_voltage_volts",
		Help:   "Voltage of a rail of the GPU. Absent while the rail is switched off.",
		Kind:   Gauge,
		Labels: []string{"rail"},
		Range:  volts,
		Values: []string{"rail: vddgfx (graphics), vddnb (north bridge of an APU)"},
		From:   []string{"amdgpu hwmon in0_input, in1_input (mV)"},
	})
	PerformanceState = define(Metric{
		Name:  "accel_gpu_performance_state",
		Help:  "P-state: 0 is the fastest, 15 the slowest. Read every 5 s.",
		Kind:  Gauge,
		Range: Range{0, 15},
		From:  []string{"NVML nvmlDeviceGetPerformanceState"},
	})
	ComputeMode = define(Metric{
		Name:   "accel_gpu_compute_mode",
		Help:   "Compute mode of the GPU (which processes may use it): 1 for the current mode, 0 for the others. Read every minute.",
		Kind:   Gauge,
		Labels: []string{"mode"},
		Range:  boolean,
		Values: []string{"mode: default, prohibited, exclusive_process; other for a value that this version does not know, present only then"},
		From:   []string{"NVML nvmlDeviceGetComputeMode"},
		Level:  onAttention,
	})
	PersistenceMode = define(Metric{
		Name:  "accel_gpu_persistence_mode",
		Help:  "1 if persistence mode is on: the driver stays initialized on the GPU without a client. Read every minute.",
		Kind:  Gauge,
		Range: boolean,
		From:  []string{"NVML nvmlDeviceGetPersistenceMode"},
	})
	BAR1Total = define(Metric{
		Name:  "accel_gpu_bar1_memory_total_bytes",
		Help:  "Size of the BAR1 window, through which other PCIe devices access the memory of the GPU.",
		Kind:  Gauge,
		From:  []string{"NVML nvmlDeviceGetBAR1MemoryInfo", "amdgpu mem_info_vis_vram_total"},
		Level: onAttention,
	})
	BAR1Used = define(Metric{
		Name:  "accel_gpu_bar1_memory_used_bytes",
		Help:  "BAR1 window in use. NVML is read every minute.",
		Kind:  Gauge,
		From:  []string{"NVML nvmlDeviceGetBAR1MemoryInfo", "amdgpu mem_info_vis_vram_used"},
		Level: onAttention,
	})

	VGPULicensed = define(Metric{
		Name:   "accel_vgpu_licensed",
		Help:   "1 if the vGPU software has a licence for the feature. Absent where the GPU needs none. Read every minute.",
		Kind:   Gauge,
		Labels: []string{"feature", "product"},
		Range:  boolean,
		Values: []string{"feature: vgpu, workstation, gaming, compute, other"},
		From:   []string{"NVML nvmlDeviceGetGridLicensableFeatures_v4"},
	})

	ECCMode = define(Metric{
		Name:   "accel_ecc_mode_enabled",
		Help:   "1 if ECC is on, now and after the next reset. NVML is read every minute.",
		Kind:   Gauge,
		Labels: []string{"when"},
		Range:  boolean,
		Values: []string{"when: current, pending"},
		From:   []string{"NVML nvmlDeviceGetEccMode"},
		Level:  only("when", "current"),
	})
	ECCErrors = define(Metric{
		Name:   "accel_ecc_errors_total",
		Help:   "ECC errors since the driver was loaded (volatile counters).",
		Kind:   Counter,
		Labels: []string{"severity", "location"},
		Values: []string{"severity: corrected, uncorrected; on AMD GPUs also deferred (found, not yet used)", "location: on AMD GPUs the RAS block, dram for umc; dram, sram, l1_cache, l2_cache, register_file, texture_memory, texture_shm, cbu; all on boards that only report a sum"},
		From:   []string{"NVML nvmlDeviceGetMemoryErrorCounter, nvmlDeviceGetTotalEccErrors (volatile); on MIG devices uncorrected errors outside DRAM", "DCGM fields 310, 311, where NVML is not read", "amdgpu ras/*_err_count, ras/aca_*, read every minute"},
		Level:  except("location", amdBlocks...),
	})
	ECCAggregateErrors = define(Metric{
		Name:   "accel_ecc_aggregate_errors_total",
		Help:   "ECC errors over the life of the board, kept in its InfoROM. NVML is read every minute.",
		Kind:   Counter,
		Labels: []string{"severity", "location"},
		Values: []string{"severity: corrected, uncorrected", "location: as in accel_ecc_errors_total"},
		From:   []string{"NVML nvmlDeviceGetMemoryErrorCounter, nvmlDeviceGetTotalEccErrors (aggregate)", "DCGM fields 312, 313, where NVML is not read"},
		Level:  onAttention,
	})
	SRAMThreshold = define(Metric{
		Name:  "accel_ecc_sram_threshold_exceeded",
		Help:  "1 if the uncorrectable SRAM errors exceed the threshold at which the board should be replaced.",
		Kind:  Gauge,
		Range: boolean,
		From:  []string{"NVML nvmlDeviceGetSramEccErrorStatus bThresholdExceeded"},
	})
	RowRemaps = define(Metric{
		Name:   "accel_row_remaps_total",
		Help:   "Memory rows replaced by spare ones over the life of the board, by the errors that caused it.",
		Kind:   Counter,
		Labels: []string{"cause"},
		Values: []string{"cause: corrected, uncorrected"},
		From:   []string{"NVML fields 142, 143, else nvmlDeviceGetRemappedRows", "DCGM fields 394, 393, where NVML is not read"},
	})
	MemoryUnrepairable = define(Metric{
		Name:  "accel_memory_unrepairable",
		Help:  "1 if the memory of the GPU has a fault that cannot be repaired: the board should be replaced. From R590 on.",
		Kind:  Gauge,
		Range: boolean,
		From:  []string{"NVML nvmlDeviceGetUnrepairableMemoryFlag_v1"},
		Level: onAttention,
	})
	RowRemapPending = define(Metric{
		Name:  "accel_row_remap_pending",
		Help:  "1 if a remap is pending until the next reset. Running work is not affected.",
		Kind:  Gauge,
		Range: boolean,
		From:  []string{"NVML field 144, else nvmlDeviceGetRemappedRows", "DCGM field 396, where NVML is not read"},
	})
	RowRemapFailed = define(Metric{
		Name:  "accel_row_remap_failed",
		Help:  "1 if a remap has failed: the board should be replaced.",
		Kind:  Gauge,
		Range: boolean,
		From:  []string{"NVML field 145, else nvmlDeviceGetRemappedRows", "DCGM field 395, where NVML is not read"},
	})
	RowRemapBanks = define(Metric{
		Name:   "accel_row_remap_banks",
		Help:   "Memory banks by how many spare rows they have left. Read every minute.",
		Kind:   Gauge,
		Labels: []string{"spare"},
		Values: []string{"spare: max, high, partial, low, none"},
		From:   []string{"NVML nvmlDeviceGetRowRemapperHistogram"},
		Level:  onAttention,
	})
	BankRemapPending = define(Metric{
		Name:  "accel_bank_remap_pending",
		Help:  "1 if the remap of a bank is pending until the next reset. Running work is not affected.",
		Kind:  Gauge,
		Range: boolean,
		From:  []string{"NVML field 307"},
	})
	BankRemapGroups = define(Metric{
		Name:   "accel_bank_remap_groups",
		Help:   "Groups of memory banks that have all their spare banks, or none.",
		Kind:   Gauge,
		Labels: []string{"spare"},
		Values: []string{"spare: max, none"},
		From:   []string{"NVML fields 305, 306"},
		Level:  onAttention,
	})
	RetiredPages = define(Metric{
		Name:   "accel_retired_pages_total",
		Help:   "Memory pages taken out of use over the life of the board (NVIDIA GPUs before Ampere, AMD GPUs).",
		Kind:   Counter,
		Labels: []string{"cause"},
		Values: []string{"cause: corrected, uncorrected; on AMD GPUs unknown"},
		From:   []string{"NVML nvmlDeviceGetRetiredPages", "DCGM fields 390, 391, where NVML is not read", "amdgpu ras/gpu_vram_bad_pages, states R and F"},
	})
	RetiredPagesPending = define(Metric{
		Name:  "accel_retired_pages_pending",
		Help:  "1 if the retirement of a page is pending until the driver is reloaded.",
		Kind:  Gauge,
		Range: boolean,
		From:  []string{"NVML nvmlDeviceGetRetiredPagesPendingStatus", "DCGM field 392, where NVML is not read", "amdgpu ras/gpu_vram_bad_pages, state P"},
	})

	XGMIUp = define(Metric{
		Name:   "accel_xgmi_up",
		Help:   "1 if the XGMI link between AMD GPUs is active, 0 if it is inactive; absent where it is disabled. The numbers of links differ between kernels before 6.13 and from it on. XGMI has no counters of errors by link, so it does not share the families of NVLink.",
		Kind:   Gauge,
		Labels: []string{"link"},
		Range:  boolean,
		From:   []string{"amdgpu gpu_metrics xgmi_link_status (1.7 and newer)"},
		Level:  onAttention,
	})
	XGMITransmit = define(Metric{
		Name:   "accel_xgmi_transmit_bytes_total",
		Help:   "Bytes sent over the XGMI link.",
		Kind:   Counter,
		Labels: []string{"link"},
		From:   []string{"amdgpu gpu_metrics xgmi_write_data_acc (KB, taken as 1024 bytes)"},
		Level:  onAttention,
	})
	XGMIReceive = define(Metric{
		Name:   "accel_xgmi_receive_bytes_total",
		Help:   "Bytes received over the XGMI link.",
		Kind:   Counter,
		Labels: []string{"link"},
		From:   []string{"amdgpu gpu_metrics xgmi_read_data_acc (KB, taken as 1024 bytes)"},
		Level:  onAttention,
	})
	GPUPartitionInfo = define(Metric{
		Name:   "accel_gpu_partition_info",
		Help:   "Modes in which an AMD GPU and its memory are partitioned; value 1. They apply to the whole GPU, where MIG has instances of different sizes.",
		Kind:   Info,
		Labels: []string{"compute", "memory"},
		Values: []string{"compute: spx (not partitioned), dpx, tpx, qpx, cpx, unknown", "memory: nps1, nps2, nps3, nps4, nps6, nps8, unknown, or empty"},
		From:   []string{"amdgpu current_compute_partition, current_memory_partition"},
	})
	GTTTotal = define(Metric{
		Name:  "accel_gpu_gtt_memory_total_bytes",
		Help:  "System memory that an AMD GPU can map (GTT). It is not memory of the device.",
		Kind:  Gauge,
		From:  []string{"amdgpu mem_info_gtt_total"},
		Level: onAttention,
	})
	GTTUsed = define(Metric{
		Name:  "accel_gpu_gtt_memory_used_bytes",
		Help:  "System memory that an AMD GPU has mapped (GTT).",
		Kind:  Gauge,
		From:  []string{"amdgpu mem_info_gtt_used"},
		Level: onAttention,
	})

	NVLinkUp = define(Metric{
		Name:   "accel_nvlink_up",
		Help:   "1 if the NVLink is active.",
		Kind:   Gauge,
		Labels: []string{"link"},
		Range:  boolean,
		From:   []string{"NVML nvmlDeviceGetNvLinkState, field 165 (0 if it is 3)", "DCGM field 870 of a switch (1 if it is 2, active)"},
		Level:  onAttention,
	})
	NVLinkTrafficDisabled = define(Metric{
		Name:   "accel_nvlink_traffic_disabled",
		Help:   "1 while the NVLink is active but closed to traffic; accel_nvlink_up is 0 then. Absent otherwise. From R615 on.",
		Kind:   Gauge,
		Labels: []string{"link"},
		Range:  boolean,
		From:   []string{"NVML field 165 (3)"},
	})
	NVLinkErrors = define(Metric{
		Name:   "accel_nvlink_errors_total",
		Help:   "Errors counted by one NVLink. The types overlap: read one, do not add them up.",
		Kind:   Counter,
		Labels: []string{"link", "type"},
		Values: []string{"type to Hopper: crc, replay, recovery; from Blackwell: recovery, malformed_packet, buffer_overrun, receive, receive_remote, receive_general, local_integrity, transmit_discard, recovery_successful, recovery_failed, effective, symbol; on switches fatal, non_fatal, replay, recovery, flit, crc, ecc"},
		From:   []string{"NVML fields 163, 161, 162, else nvmlDeviceGetNvLinkErrorCounter; fields 206 to 215, 219, 221", "DCGM fields 782 to 788 of a switch"},
		Level:  onAttention,
	})
	C2CErrors = define(Metric{
		Name:   "accel_gpu_c2c_errors_total",
		Help:   "Errors of all C2C links of a GPU. The types overlap: read one, do not add them up.",
		Kind:   Counter,
		Labels: []string{"type"},
		Values: []string{"type: crc, replay, replay_back_to_back"},
		From:   []string{"NVML fields 231, 232, 233, summed over links"},
		Level:  onAttention,
	})
	NVLinkTransmit = define(Metric{
		Name:   "accel_nvlink_transmit_bytes_total",
		Help:   "Payload bytes sent over one NVLink.",
		Kind:   Counter,
		Labels: []string{"link"},
		From:   []string{"NVML field 202 (bytes), else field 138 (KiB)"},
		Level:  onAttention,
	})
	NVLinkReceive = define(Metric{
		Name:   "accel_nvlink_receive_bytes_total",
		Help:   "Payload bytes received over one NVLink.",
		Kind:   Counter,
		Labels: []string{"link"},
		From:   []string{"NVML field 204 (bytes), else field 139 (KiB)"},
		Level:  onAttention,
	})
	NVLinkTransmitRate = define(Metric{
		Name: "accel_nvlink_transmit_bytes_per_second",
		Help: "Send rate over all NVLinks, averaged over the time since the previous sample. NVML is read every 2 s.",
		Kind: Gauge,
		From: []string{"NVML GPM metric 61 (MiB/s)", "DCGM field 1011 (bytes/s), where NVML gives none"},
	})
	NVLinkReceiveRate = define(Metric{
		Name: "accel_nvlink_receive_bytes_per_second",
		Help: "Receive rate over all NVLinks, averaged over the time since the previous sample. NVML is read every 2 s.",
		Kind: Gauge,
		From: []string{"NVML GPM metric 60 (MiB/s)", "DCGM field 1012 (bytes/s), where NVML gives none"},
	})
	FabricState = define(Metric{
		Name:   "accel_gpu_fabric_state",
		Help:   "Registration of the GPU with the NVLink fabric: 1 for the current state, 0 for the others. Absent where the GPU has no fabric.",
		Kind:   Gauge,
		Labels: []string{"state"},
		Range:  boolean,
		Values: []string{"state: not_started, in_progress, completed; other for a value that this version does not know, present only then"},
		From:   []string{"NVML nvmlDeviceGetGpuFabricInfoV"},
		Level:  inForce,
	})
	FabricStatus = define(Metric{
		Name:   "accel_gpu_fabric_status",
		Help:   "Result of the registration of the GPU with the NVLink fabric: 1 for the current result. Present once registration is completed.",
		Kind:   Gauge,
		Labels: []string{"status"},
		Range:  boolean,
		Values: []string{"status: success, at 0 or 1; otherwise the name of the NVML return code at 1, as in accel_native_call_errors_total"},
		From:   []string{"NVML nvmlDeviceGetGpuFabricInfoV status"},
		Level:  onAttention,
	})
	FabricHealth = define(Metric{
		Name:   "accel_gpu_fabric_health",
		Help:   "Health of the GPU in the NVLink fabric as the driver sums it up: 1 for the current state, 0 for the others. Absent where the driver does not report it.",
		Kind:   Gauge,
		Labels: []string{"state"},
		Range:  boolean,
		Values: []string{"state: healthy, unhealthy, limited_capacity; other for a value that this version does not know, present only then"},
		From:   []string{"NVML nvmlDeviceGetGpuFabricInfoV healthSummary"},
		Level:  inForce,
	})
	FabricPartition = define(Metric{
		Name:  "accel_gpu_fabric_partition_assigned",
		Help:  "1 if the GPU is in a partition of the NVLink fabric, 0 if it is in none and cannot reach other GPUs. Absent where the fabric does not report it.",
		Kind:  Gauge,
		Range: boolean,
		From:  []string{"NVML nvmlDeviceGetGpuFabricInfoV healthMask"},
	})
	FabricInfo = define(Metric{
		Name:   "accel_gpu_fabric_info",
		Help:   "NVLink domain that the GPU belongs to; value 1. Present once registration is completed with success. Absent on a single node with NVSwitches: its cluster UUID is all zeros and names no domain.",
		Kind:   Info,
		Labels: []string{"cluster_uuid", "clique"},
		From:   []string{"NVML nvmlDeviceGetGpuFabricInfoV"},
	})
	FabricFault = define(Metric{
		Name:   "accel_gpu_fabric_fault",
		Help:   "1 if the fabric reports the fault for this GPU, 0 if it reports that there is none. Absent where the fabric does not report it.",
		Kind:   Gauge,
		Labels: []string{"fault"},
		Range:  boolean,
		Values: []string{"fault: degraded_bandwidth, route_recovery, route_unhealthy, access_timeout_recovery, incorrect_configuration, global_fabric_manager_disconnected (of R615); present only then: other, where a part of the mask is set that this version does not know, which need not be a fault"},
		From:   []string{"NVML nvmlDeviceGetGpuFabricInfoV healthMask"},
		Level:  inForce,
	})

	MIGMode = define(Metric{
		Name:   "accel_mig_mode_enabled",
		Help:   "1 if MIG mode is on, now and after the next reset. Read every 5 s, and after an event of the driver.",
		Kind:   Gauge,
		Labels: []string{"when"},
		Range:  boolean,
		Values: []string{"when: current, pending"},
		From:   []string{"NVML nvmlDeviceGetMigMode"},
	})
	MIGInstances = define(Metric{
		Name:   "accel_mig_instances",
		Help:   "MIG devices that exist on the GPU, by profile.",
		Kind:   Gauge,
		Labels: []string{"profile"},
		From:   []string{"NVML nvmlDeviceGetMigDeviceHandleByIndex"},
	})
	PowerSmoothingLifetime = define(Metric{
		Name:  "accel_gpu_power_smoothing_lifetime_ratio",
		Help:  "Life left in the power-smoothing circuit, 0 to 1.",
		Kind:  Gauge,
		Range: ratio,
		From:  []string{"NVML field 258 (percent); 263 from driver 575 to 580.65"},
		Level: onAttention,
	})
)

// xidBaseline are the Xids that are exported as 0 for every NVIDIA GPU from its
// first sample: all Xids with an action in the catalogue that still occur on
// supported boards, and the newest, which no catalogue ranks yet.
var xidBaseline = baseline(
	13, 31, 32, 43, 45, 46, 48, 54, 61, 62, 63, 64, 68, 69, 74, 78, 79, 92, 94, 95,
	109, 110, 119, 120, 121, 123, 136, 137, 140, 143, 144, 145, 146, 147, 148, 149, 150,
	151, 154, 155, 156, 157, 158, 159, 160, 161, 167, 169, 171, 172, 173, 175,
)

func baseline(xids ...int) [][]string {
	labels := make([][]string, len(xids))
	for i, x := range xids {
		labels[i] = []string{strconv.Itoa(x)}
	}
	return labels
}

// amdBlocks are the RAS blocks of AMD GPUs of which only the full page has the
// errors. The verdict is drawn from all of them.
var amdBlocks = []string{
	"athub", "df", "fuse", "hdp", "ih", "jpeg", "mca_mp0", "mca_mp1", "mca_mpio", "mmhub", "mp0", "mp1", "mpio", "mmsch",
	"pcie_bif", "sdma", "sem", "smn", "vcn",
}

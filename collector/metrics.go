package collector

// Families of every accelerator and of the exporter's own sources. A row is
// the only place where a name is written; docs/metrics.md is generated from
// it.
var (
	DeviceInfo = define(Metric{
		Name:   "accel_device_info",
		Help:   "Identity of a device; value 1. Join the other families to it on device.",
		Kind:   Info,
		Labels: []string{"class", "vendor", "model", "architecture", "index", "pci_address", "numa_node", "serial", "board_part_number", "profile"},
		Values: []string{"class: gpu, fpga, switch, cpu (NVIDIA Grace)", "architecture: of the GPU; the part of an FPGA where its driver reports it", "index: NVML index, empty for a missing device whose index the driver has given to another; for a MIG instance parent:gi:ci; of an AMD GPU its place by PCI address, with :partition", "profile: of a partition, as 3g.40gb of MIG or cpx_nps4 of AMD, else empty"},
		From:   []string{"NVML nvmlDeviceGetName, nvmlDeviceGetArchitecture, nvmlDeviceGetIndex, nvmlDeviceGetPciInfo, nvmlDeviceGetNumaNodeId, nvmlDeviceGetSerial, nvmlDeviceGetBoardPartNumber, nvmlDeviceGetAttributes_v2", "procfs driver/nvidia/gpus/*/information for a GPU that has not answered since the start", "amdgpu product_name, serial_number, product_number, else a table of PCI device ids", "FPGAs: PCI files, XRT xmc and rom, device tree model", "DCGM fields 50, 53, 54, 57, 866 to 869, 1141, where NVML does not know the device"},
	})
	FirmwareInfo = define(Metric{
		Name:   "accel_firmware_info",
		Help:   "Version of one firmware component of a device; value 1.",
		Kind:   Info,
		Labels: []string{"component", "version"},
		Values: []string{"component: vbios, inforom, inforom_oem, inforom_ecc, inforom_power, gsp; on FPGA cards fim (static region), max10, bmc, nios, sc (satellite controller), sc_expected (that the shell requires), cmc, amc; on AMD GPUs vbios and the names of fw_version/*"},
		From:   []string{"NVML nvmlDeviceGetVbiosVersion, nvmlDeviceGetInforomImageVersion, nvmlDeviceGetInforomVersion, nvmlDeviceGetGspFirmwareVersion", "amdgpu vbios_version, fw_version/*_fw_version", "FPGAs: attributes of the board controller, bitstream_id"},
		Level:  except("component", append([]string{"inforom_oem", "inforom_ecc", "inforom_power"}, amdComponents...)...),
	})
	// No rule or board reads it; it is queried by whoever replaces a board: its chassis, slot and tray.
	PlatformInfo = define(Metric{
		Name:   "accel_device_platform_info",
		Help:   "Place of a device in its rack; value 1. A label is empty where the driver does not know it.",
		Kind:   Info,
		Labels: []string{"chassis_serial", "slot", "tray", "host", "module"},
		Values: []string{"slot: in the chassis, switches included", "tray: in the chassis, switches not included", "host: node within the slot", "module: GPU within the node"},
		From:   []string{"NVML nvmlDeviceGetPlatformInfo; module by nvmlDeviceGetModuleId where the driver knows no rack"},
	})
	InforomValid = define(Metric{
		Name:  "accel_device_inforom_valid",
		Help:  "1 if the checksums of the InfoROM, which holds the configuration and error history of the board, are right. Read every hour.",
		Kind:  Gauge,
		Range: boolean,
		From:  []string{"NVML nvmlDeviceValidateInforom"},
		Level: onAttention,
	})
	ReadingImplausible = define(Metric{
		Name:   "accel_device_reading_implausible",
		Help:   "1 while a value of the device contradicts a limit of the device, as power of more than twice the highest limit of the board. The value is not served.",
		Kind:   Gauge,
		Labels: []string{"metric"},
		Range:  boolean,
		Values: []string{"metric: accel_power_watts, accel_memory_used_bytes, accel_clock_hertz, accel_temperature_celsius"},
		From:   []string{"exporter: a reading compared with a limit of the same device"},
		Level:  onAttention,
	})
	DriverInfo = define(Metric{
		Name:   "accel_driver_info",
		Help:   "Versions of a vendor's driver stack on this node; value 1. cuda_version is the newest CUDA the driver supports.",
		Kind:   Info,
		Scope:  PerNode,
		Labels: []string{"vendor", "version", "branch", "library_version", "cuda_version"},
		From:   []string{"NVML nvmlSystemGetDriverVersion, nvmlSystemGetDriverBranch, nvmlSystemGetNVMLVersion, nvmlSystemGetCudaDriverVersion_v2", "amdgpu module/amdgpu/version, which only the driver of ROCm has"},
	})
	DeviceUp = define(Metric{
		Name:   "accel_device_up",
		Help:   "1 if the device answered in the last round of its source, else 0 with the reason. Absent while the source is down, because the state of the device is then unknown.",
		Kind:   Gauge,
		Labels: []string{"reason"},
		Range:  boolean,
		Values: []string{"reason: empty when up, else lost, reset_required, stuck, missing, unbound (missing, and on the bus without a kernel driver), error, unavailable"},
		From:   []string{"exporter"},
	})
	DeviceSeen = define(Metric{
		Name:   "accel_device_seen",
		Help:   "1 if the source named by the label sees the device, 0 if it answers but does not see a device that it should see: for example a GPU on the PCI bus that NVML does not list. Absent while the source is down and for devices assigned to a virtual machine.",
		Kind:   Gauge,
		Labels: []string{"by"},
		Range:  boolean,
		Values: []string{"by: nvidia (NVML), amd (the driver amdgpu), fpga (the drivers of FPGAs), pcie (the PCI core)"},
		From:   []string{"exporter"},
		Level:  onAttention,
	})
	DeviceSampleTime = define(Metric{
		Name:  "accel_device_last_sample_timestamp_seconds",
		Help:  "Time of the last successful read of the device, seconds since the epoch. Kept while the device is down.",
		Kind:  Mark,
		Range: timestamp,
		From:  []string{"exporter"},
	})
	DeviceEvents = define(Metric{
		Name:   "accel_device_events_total",
		Help:   "Events that the driver or the kernel reported for a device since the exporter started, by kind. accel_gpu_xid_errors_total and accel_nvswitch_sxid_errors_total count Xids and SXids.",
		Kind:   Counter,
		Labels: []string{"event"},
		Values: []string{"event: mig_config_change, recovery_action_change, gpu_unavailable, poison, poison_fatal, ecc_single_bit, ecc_double_bit, ecc_single_bit_storm, dram_retirement, dram_retirement_failure, power_source_change, bus_loss (the kernel reports that it fell off the bus), aer (a PCIe error in the kernel log), reconfiguration (of an FPGA), driver_loaded, probe_failed (a driver could not start the device); of AMD's driver hang, hang_recovered, queue_reset (of the queue that hung), reset_begin, reset, reset_failed, wedged (it cannot be used until it is reset), pcie_recovery, pcie_recovery_failed, ecc_uncorrected, ecc_corrected, ecc_deferred (lines that report new errors, not their number), dram_retirement_limit, dram_retirement_table, boot_error, thermal_shutdown, throttled, firmware_stuck, page_fault (of a program); GPU Operational Events (--nvml.operational-events) by severity operational_informational, operational_corrected, operational_recoverable, operational_fatal, operational_other, and operational_propagated (another event is its cause), operational_simulated (a test), which have no effect on health; error_record (a Common Platform Error Record of NVIDIA's driver, which is read with --bundle.directory and has no effect on health); of a driver of FPGAs firewall_tripped, clocks_stopped, load_failed, overheating, thermal_shutdown"},
		From:   []string{"NVML nvmlEventSetWait_v2, nvmlEventSetWait_v3, nvmlSystemGetCPER_v1", "kernel log", "FPGA drivers"},
		Level:  inForce,
	})

	SourceUp = define(Metric{
		Name:   "accel_source_up",
		Help:   "1 if the source answered its last round, else 0 with the reason. The reason absent is not a fault: this machine has no hardware or driver for the source. A source that has found none since the start has no other series.",
		Kind:   Gauge,
		Scope:  PerNode,
		Labels: []string{"source", "reason"},
		Range:  boolean,
		Values: []string{"reason: empty when up, else absent, released, starting, crashed, garbage, timeout, version_mismatch, driver (not loaded or not answering), library (the driver is loaded, its library cannot be opened), driver_reloaded, host_engine (the DCGM host engine is absent or does not answer), error"},
		From:   []string{"exporter"},
	})
	SourceReleasedMetric = define(Metric{
		Name:   "accel_source_released",
		Help:   "1 while the source is released: every handle to its hardware is closed on request.",
		Kind:   Gauge,
		Scope:  PerNode,
		Labels: []string{"source"},
		Range:  boolean,
		From:   []string{"exporter"},
	})
	SourceStuck = define(Metric{
		Name:   "accel_source_stuck",
		Help:   "1 while the source does not answer: its last round returned nothing within its timeout, or has not returned.",
		Kind:   Gauge,
		Scope:  PerNode,
		Labels: []string{"source"},
		Range:  boolean,
		From:   []string{"exporter"},
	})
	SourceAge = define(Metric{
		Name:   "accel_source_age_seconds",
		Help:   "Time since the source last answered a round, by the exporter's own clock: compare it, not the timestamp, where clocks may differ. Absent before the first answer.",
		Kind:   Gauge,
		Scope:  PerNode,
		Labels: []string{"source"},
		From:   []string{"exporter"},
	})
	SourceDuration = define(Metric{
		Name:   "accel_source_round_duration_seconds",
		Help:   "Duration of the last finished round of the source. Absent before the first round.",
		Kind:   Gauge,
		Scope:  PerNode,
		Labels: []string{"source"},
		From:   []string{"exporter"},
	})
	SourceRounds = define(Metric{
		Name:   "accel_source_rounds_total",
		Help:   "Rounds of the source by outcome: ok, partial (answered, something missing), failed.",
		Kind:   Counter,
		Scope:  PerNode,
		Labels: []string{"source", "outcome"},
		Values: []string{"outcome: ok, partial, failed"},
		From:   []string{"exporter"},
	})
	SourceRestarts = define(Metric{
		Name:   "accel_source_worker_exits_total",
		Help:   "Unexpected exits of the worker process of the source, by how it ended.",
		Kind:   Counter,
		Scope:  PerNode,
		Labels: []string{"source", "how"},
		Values: []string{"how: exit_N, signal_NAME, garbage, hung, memory (above its budget), none (always 0: sums of the exits begin at 0)"},
		From:   []string{"exporter"},
	})
	SourceRejected = define(Metric{
		Name:   "accel_source_rejected_values_total",
		Help:   "Values returned by a device that are not valid measurements, by the family they were meant for.",
		Kind:   Counter,
		Scope:  PerNode,
		Labels: []string{"source", "family", "reason"},
		Values: []string{"reason: range (impossible number), sentinel (the driver's own mark for not available), limit (beyond a limit of the device), type, version (a table of an unknown version: nothing of it is used)", "family, reason: other once there are too many"},
		From:   []string{"exporter"},
	})
	SourceEventsLost = define(Metric{
		Name:   "accel_source_events_lost_total",
		Help:   "Events that could not be attributed to a device or exceeded a limit, and reports of a driver that it has dropped events. They are only counted.",
		Kind:   Counter,
		Scope:  PerNode,
		Labels: []string{"source"},
		From:   []string{"exporter"},
	})
	NativeCallErrors = define(Metric{
		Name:   "accel_native_call_errors_total",
		Help:   "Failed calls of a native library, by function or field and return code. not_supported is counted once per device, call and start of the worker; the call is not repeated after that. no_permission and a lasting unknown are counted each time the call is repeated: see accel_device_call_refused.",
		Kind:   Counter,
		Scope:  PerNode,
		Labels: []string{"source", "call", "code"},
		Values: []string{"call, code: other once there are too many"},
		From:   []string{"NVML nvmlReturn_t of every call and of every field of nvmlDeviceGetFieldValues", "DCGM dcgmReturn_t of every call and status of every field"},
		Level:  except("code", "not_supported", "function_not_found"),
	})

	CallRefused = define(Metric{
		Name:   "accel_device_call_refused",
		Help:   "1 while the driver refuses the call, or field, for this device: its values are missing. It is repeated after 1 minute, then less often, at most every 30 minutes. docs/privileges.md explains what is missing and which privilege permits it.",
		Kind:   Gauge,
		Labels: []string{"call", "code"},
		Range:  boolean,
		Values: []string{"call, code: as in accel_native_call_errors_total; code is no_permission, or unknown where it was returned three times in a row"},
		From:   []string{"NVML NVML_ERROR_NO_PERMISSION and NVML_ERROR_UNKNOWN of every call and of every field of nvmlDeviceGetFieldValues", "amdgpu: fdinfo of processes, EACCES"},
	})

	UtilizationRatio = define(Metric{
		Name:   "accel_utilization_ratio",
		Help:   "Share of time in the driver's last sampling window during which the engine had any work, 0 to 1. NVML's media engines (encoder to ofa) are read every 10 s.",
		Kind:   Gauge,
		Labels: []string{"engine"},
		Range:  ratio,
		Values: []string{"engine: compute (a kernel ran), memory (device memory was read or written), encoder, decoder, jpeg, ofa; video (encoder and decoder of AMD GPUs, which are one engine)"},
		From:   []string{"NVML nvmlDeviceGetUtilizationRates, nvmlDeviceGetEncoderUtilization, nvmlDeviceGetDecoderUtilization, nvmlDeviceGetJpgUtilization, nvmlDeviceGetOfaUtilization (percent)", "DCGM fields 203, 204, 206, 207 (percent), where NVML is not read", "amdgpu gpu_metrics average_gfx_activity, average_umc_activity (of MI300 the share of the bandwidth), vcn and jpeg activity, else gpu_busy_percent, mem_busy_percent, vcn_busy_percent"},
		Level:  only("engine", "compute", "memory", "encoder", "decoder", "video"),
	})
	ActivityRatio = define(Metric{
		Name:   "accel_activity_ratio",
		Help:   "Share of cycles in which the unit was active, averaged over the time since the previous sample and over all units of its kind, 0 to 1. From hardware counters; finer than accel_utilization_ratio. NVML is read every 2 s.",
		Kind:   Gauge,
		Labels: []string{"unit"},
		Range:  ratio,
		Values: []string{"unit: graphics, sm, tensor, tensor_dfma, tensor_hmma, tensor_dmma, tensor_imma, integer, fp64, fp32, fp16, dram; nvdec, nvjpg (decoders of video and of JPEG)"},
		From:   []string{"NVML GPM metrics 1, 2, 5, 6, 7, 8, 9, 4, 11, 12, 13, 10, 30 to 37, 40 to 47 (percent); per MIG instance by nvmlGpmMigSampleGet", "DCGM fields 1001, 1002, 1004, 1013, 1014, 1015, 1016, 1006 to 1008, 1005, where NVML gives none; per GPU instance"},
		Level:  only("unit", "graphics", "sm", "tensor", "dram"),
	})
	OccupancyRatio = define(Metric{
		Name:  "accel_sm_occupancy_ratio",
		Help:  "Resident warps as a share of the maximum of the SMs, averaged over the time since the previous sample, 0 to 1. NVML is read every 2 s.",
		Kind:  Gauge,
		Range: ratio,
		From:  []string{"NVML GPM metric 3 (percent)", "DCGM field 1003, where NVML gives none"},
	})

	MemoryTotal = define(Metric{
		Name: "accel_memory_total_bytes",
		Help: "Device memory installed, or assigned to the partition.",
		Kind: Gauge,
		From: []string{"NVML nvmlDeviceGetMemoryInfo_v2", "amdgpu mem_info_vram_total; of a partition its share, as the driver divides it", "XRT memstat, without host memory", "DCGM field 250 (MiB), where NVML is not read"},
	})
	MemoryUsed = define(Metric{
		Name: "accel_memory_used_bytes",
		Help: "Device memory allocated, without the part that the driver reserves.",
		Kind: Gauge,
		From: []string{"NVML nvmlDeviceGetMemoryInfo_v2; from nvmlDeviceGetMemoryInfo, which counts the reserved part as used, where v2 is missing", "amdgpu mem_info_vram_used", "XRT memstat, without host memory", "DCGM field 252 (MiB), where NVML is not read"},
	})
	// Read by dcgm-exporter's page only.
	MemoryFree = define(Metric{
		Name: "accel_memory_free_bytes",
		Help: "Device memory that can still be allocated.",
		Kind: Gauge,
		From: []string{"NVML nvmlDeviceGetMemoryInfo_v2", "amdgpu: the difference", "DCGM field 251 (MiB), where NVML is not read"},
	})
	MemoryReserved = define(Metric{
		Name:  "accel_memory_reserved_bytes",
		Help:  "Device memory reserved by the driver and firmware.",
		Kind:  Gauge,
		From:  []string{"NVML nvmlDeviceGetMemoryInfo_v2", "DCGM field 253 (MiB), where NVML is not read"},
		Level: onAttention,
	})
	Processes = define(Metric{
		Name:   "accel_processes",
		Help:   "Processes with a context on the device. NVML is read every 4 s, for graphics and MPS every 12 s while there is no such process. Absent while the device is in use and NVML lists none because the exporter is outside the host's PID namespace.",
		Kind:   Gauge,
		Labels: []string{"type"},
		Values: []string{"type: compute (on AMD GPUs: with /dev/kfd open), graphics, mps"},
		From:   []string{"NVML nvmlDeviceGetComputeRunningProcesses_v3, nvmlDeviceGetGraphicsRunningProcesses_v3, nvmlDeviceGetMPSComputeRunningProcesses_v3", "amdgpu: open DRM files of processes, /proc/PID/fdinfo, where the exporter may trace processes"},
		Level:  only("type", "compute"),
	})

	TemperatureCelsius = define(Metric{
		Name:   "accel_temperature_celsius",
		Help:   "Temperature by sensor. That of GPU memory is read from NVML every 5 s.",
		Kind:   Gauge,
		Labels: []string{"sensor"},
		Range:  celsius,
		Values: []string{"sensor: gpu, memory; on AMD GPUs gpu is the edge, and junction the hottest point, vrsoc a regulator, soc of a processor; switch, cpu; on FPGA cards the names that the board reports, and on SoCs pl, ps_fpd, ps_lpd"},
		From:   []string{"NVML nvmlDeviceGetTemperatureV or nvmlDeviceGetTemperature; field 82 for memory", "amdgpu gpu_metrics (°C), else hwmon temp1, temp2, temp3 (m°C)", "FPGAs: hwmon temp*_input (m°C), IIO of xilinx-ams and xadc, XRT xmc_* (°C)", "DCGM fields 858 (switch), 1110 (cpu); 150, 140, where NVML is not read"},
	})
	TemperatureLimit = define(Metric{
		Name:   "accel_temperature_limit_celsius",
		Help:   "Temperature at which the device takes the action that the label limit names. NVML is read every minute.",
		Kind:   Gauge,
		Labels: []string{"sensor", "limit"},
		Range:  celsius,
		Values: []string{"limit: shutdown, slowdown, max_operating; of CPUs warning, critical; on FPGAs warning, critical, fatal, shutdown, slowdown"},
		From:   []string{"NVML nvmlDeviceGetTemperatureThreshold", "amdgpu hwmon temp*_crit (slowdown), temp*_emergency (shutdown)", "FPGAs: hwmon temp*_max, temp*_crit, temp*_emergency (m°C); a limit that its sensor exceeds while the driver reports no alarm is dropped", "DCGM fields 859, 860 (switch), 1111, 1112 (cpu)"},
	})
	TemperatureMargin = define(Metric{
		Name:   "accel_temperature_margin_celsius",
		Help:   "Degrees left before the device takes the action that the label limit names; negative beyond the limit. T.Limit of NVIDIA GPUs is that of the GPU or of its memory, whichever is nearer.",
		Kind:   Gauge,
		Labels: []string{"limit"},
		Range:  celsius,
		Values: []string{"limit: max_operating, slowdown, shutdown, memory_max_operating (clocks are lowered to cool the memory)"},
		From:   []string{"NVML nvmlDeviceGetMarginTemperature (T.Limit) less fields 196, 194, 193; of the memory, and where T.Limit is not supported, the limit less the temperature; of memory without one of these, T.Limit less field 195, which is the least that may be left", "amdgpu: the smallest difference of limit and temperature"},
		Level:  only("limit", "slowdown", "memory_max_operating"),
	})

	PowerWatts = define(Metric{
		Name:  "accel_power_watts",
		Help:  "Power drawn by the device now.",
		Kind:  Gauge,
		Range: watts,
		From:  []string{"NVML field 186, else nvmlDeviceGetPowerUsage (mW)", "amdgpu gpu_metrics curr_socket_power (W), else hwmon power1_input; where the card reports only an average, that", "FPGAs: hwmon power1_input (µW; mW on N6000 boards), XRT xmc_power_ins, else xmc_power (µW), else hwmon power1_input; D5005 and N5010: sum of the two 12 V supplies", "DCGM field 1130 (cpu); 157, else 155, where NVML is not read"},
	})
	// No rule or board reads it; it is queried by whoever plans the power of a rack: a module, and its memory.
	PowerScope = define(Metric{
		Name:   "accel_power_scope_watts",
		Help:   "Power drawn by more or less than the device: by the module that it is on, with its CPUs and other GPUs, or by its memory. They contain or are part of accel_power_watts: do not add them up.",
		Kind:   Gauge,
		Labels: []string{"scope"},
		Range:  watts,
		Values: []string{"scope: module (now; on Grace systems), memory (average of one second, read every 5 s)"},
		From:   []string{"NVML field 186, scope 1; field 185, scope 2 (mW)"},
		Level:  only("scope", "module"),
	})
	PowerAverage = define(Metric{
		Name:  "accel_power_average_watts",
		Help:  "Power drawn by the device, averaged by the driver over one second. NVML is read every 5 s.",
		Kind:  Gauge,
		Range: watts,
		From:  []string{"NVML field 185 (mW)", "amdgpu gpu_metrics average_socket_power, else hwmon power1_average", "DCGM field 155, where NVML is not read"},
		Level: onAttention,
	})
	PowerLimit = define(Metric{
		Name:   "accel_power_limit_watts",
		Help:   "Power limits of the device.",
		Kind:   Gauge,
		Labels: []string{"limit"},
		Range:  watts,
		Values: []string{"limit: enforced (in force now, from any origin), requested, default, min, max; on FPGAs max, shutdown, slowdown"},
		From:   []string{"NVML fields 190, 192, 189, 187, 188, else nvmlDeviceGetEnforcedPowerLimit, nvmlDeviceGetPowerManagementLimit, nvmlDeviceGetPowerManagementDefaultLimit, nvmlDeviceGetPowerManagementLimitConstraints (mW)", "amdgpu hwmon power1_cap, power1_cap_default, power1_cap_min, power1_cap_max (µW)", "DCGM field 1131 (cpu)"},
		Level:  except("limit", "default", "min", "requested"),
	})
	EnergyJoules = define(Metric{
		Name: "accel_energy_joules_total",
		Help: "Energy used by the device since its driver was loaded. NVML is read every 2 s.",
		Kind: Counter,
		From: []string{"NVML field 83, else nvmlDeviceGetTotalEnergyConsumption (mJ)", "amdgpu gpu_metrics energy_accumulator (2^-16 J), of MI200 and newer", "DCGM field 156 (mJ), where NVML is not read"},
	})
	ClockHertz = define(Metric{
		Name:   "accel_clock_hertz",
		Help:   "Clock frequency. NVML is read every 5 s.",
		Kind:   Gauge,
		Labels: []string{"clock"},
		Values: []string{"clock: graphics, sm (of AMD GPUs the fastest gfxclk, at which the compute units run), memory, video; on XRT data, kernel, system, extra, by slot where there are several"},
		From:   []string{"NVML nvmlDeviceGetClockInfo (MHz)", "amdgpu gpu_metrics current_gfxclk, current_uclk, current_vclk0 (MHz), else hwmon freq1_input, freq2_input", "XRT icap/clock_freqs (MHz)", "DCGM fields 100, 101 (MHz), where NVML is not read"},
		Level:  except("clock", "graphics", "video"),
	})
	ClockMax = define(Metric{
		Name:   "accel_clock_max_hertz",
		Help:   "Highest clock frequency of the device. NVML is read every minute.",
		Kind:   Gauge,
		Labels: []string{"clock"},
		Values: []string{"clock: graphics, sm, memory, video"},
		From:   []string{"NVML nvmlDeviceGetMaxClockInfo (MHz)", "amdgpu pp_dpm_sclk, pp_dpm_mclk"},
		Level:  except("clock", "graphics", "video", "memory"),
	})
	ThrottleActive = define(Metric{
		Name:   "accel_throttle_active",
		Help:   "1 if the clocks are reduced at this moment for the reason. Idleness and clocks set by the operator are not included.",
		Kind:   Gauge,
		Labels: []string{"reason"},
		Range:  boolean,
		Values: []string{"reason: sw_power_cap, hw_slowdown (any of the hw_ reasons), sync_boost, sw_thermal, hw_thermal, hw_power_brake; present only while active: board_limit, reliability (of R615), and other for a bit that this version does not know"},
		From:   []string{"NVML nvmlDeviceGetCurrentClocksEventReasons bits 0x4, 0x8, 0x10, 0x20, 0x40, 0x80, 0x200, 0x400"},
		Level:  inForce,
	})
	ThrottleSeconds = define(Metric{
		Name:   "accel_throttle_seconds_total",
		Help:   "Time during which the clocks were reduced for the reason, since the driver was loaded. Of AMD GPUs an estimate since the exporter first saw them: the share of the firmware's samples, times the time between two reads.",
		Kind:   Counter,
		Labels: []string{"reason"},
		Values: []string{"reason: sw_power_cap, sync_boost, sw_thermal, hw_thermal, hw_power_brake, board_limit, reliability, below_app_clocks and below_base_clocks (for any reason, and while the GPU is idle); on drivers of which the ids of those fields are not known, and from DCGM, thermal for both thermal ones"},
		From:   []string{"NVML fields 74, 76, 77, 79 to 81, 269, 270, 271 (ns); the last three are 251, 252, 253 from driver 575 to 580.65, and field 75 on drivers before and between", "amdgpu gpu_metrics 1.6 and newer: sw_power_cap is ppt_residency_acc, sw_thermal the greater of socket_thm and hbm_thm, hw_thermal of prochot and vr_thm", "DCGM fields 240 to 242 (ns), where NVML is not read"},
		Level:  except("reason", "below_app_clocks", "below_base_clocks", "sync_boost", "board_limit", "reliability"),
	})

	PCIeGeneration = define(Metric{
		Name:  "accel_pcie_link_generation",
		Help:  "Current PCIe generation of the link. An idle device may lower it to save power.",
		Kind:  Gauge,
		Range: Range{1, 16},
		From:  []string{"NVML nvmlDeviceGetCurrPcieLinkGeneration", "amdgpu gpu_metrics pcie_link_speed"},
	})
	PCIeGenerationMax = define(Metric{
		Name:   "accel_pcie_link_generation_max",
		Help:   "Highest PCIe generation possible, for the device in this slot and for the device alone. NVML is read every minute.",
		Kind:   Gauge,
		Labels: []string{"of"},
		Range:  Range{1, 16},
		Values: []string{"of: slot (device and slot together), device"},
		From:   []string{"NVML nvmlDeviceGetMaxPcieLinkGeneration, nvmlDeviceGetGpuMaxPcieLinkGeneration", "amdgpu max_link_speed of the GPU and of each port up to the root"},
		Level:  only("of", "slot"),
	})
	PCIeWidth = define(Metric{
		Name:  "accel_pcie_link_width_lanes",
		Help:  "Current number of lanes of the PCIe link.",
		Kind:  Gauge,
		Range: Range{1, 32},
		From:  []string{"NVML nvmlDeviceGetCurrPcieLinkWidth", "amdgpu gpu_metrics pcie_link_width"},
	})
	PCIeWidthMax = define(Metric{
		Name:   "accel_pcie_link_width_max_lanes",
		Help:   "Most lanes possible, for the device in this slot and for the device alone. Of an NVIDIA GPU whose port is not visible, as in a virtual machine, slot is the most lanes seen since the start.",
		Kind:   Gauge,
		Labels: []string{"of"},
		Range:  Range{1, 32},
		Values: []string{"of: slot (device and slot together), device"},
		From:   []string{"NVML nvmlDeviceGetMaxPcieLinkWidth, sysfs max_link_width of the port", "amdgpu max_link_width of the GPU and of each port up to the root"},
		Level:  only("of", "slot"),
	})
	PCIeTransmit = define(Metric{
		Name: "accel_pcie_transmit_bytes_total",
		Help: "Bytes sent by the device over PCIe. Of a GPU, the sum of its rate over time since the exporter first saw it; of a card, the driver's counter.",
		Kind: Counter,
		From: []string{"exporter: sum of accel_pcie_transmit_bytes_per_second over time, which is NVML GPM metric 20 or DCGM field 1009", "XRT channel_stat_raw: DMA through the driver"},
	})
	PCIeReceive = define(Metric{
		Name: "accel_pcie_receive_bytes_total",
		Help: "Bytes received by the device over PCIe. Of a GPU, the sum of its rate over time since the exporter first saw it; of a card, the driver's counter.",
		Kind: Counter,
		From: []string{"exporter: sum of accel_pcie_receive_bytes_per_second over time, which is NVML GPM metric 21 or DCGM field 1010", "XRT channel_stat_raw: DMA through the driver"},
	})
	PCIeReplays = define(Metric{
		Name: "accel_pcie_replays_total",
		Help: "PCIe transactions repeated by the device because of link errors. NVML is read every 5 s.",
		Kind: Counter,
		From: []string{"NVML field 94, else nvmlDeviceGetPcieReplayCounter", "amdgpu gpu_metrics pcie_replay_count_acc, else pcie_replay_count", "DCGM field 202, where NVML is not read"},
	})
	PCIeErrors = define(Metric{
		Name:   "accel_pcie_errors_total",
		Help:   "PCIe errors counted by the device. The types overlap (a bad TLP is also a correctable error): read one, do not add them up. NVML is read every 5 s.",
		Kind:   Counter,
		Labels: []string{"type"},
		Values: []string{"type: replay_rollover, l0_to_recovery, correctable, nak_received, receiver, bad_tlp, nak_sent, bad_dllp, non_fatal, fatal, unsupported_request, lcrc, lane"},
		From:   []string{"NVML fields 95, 169, 173 to 183", "amdgpu gpu_metrics 1.4 and newer"},
		Level:  onAttention,
	})
	PCIeTransmitRate = define(Metric{
		Name:  "accel_pcie_transmit_bytes_per_second",
		Help:  "PCIe send rate, averaged over the time since the previous sample. NVML is read every 2 s.",
		Kind:  Gauge,
		From:  []string{"NVML GPM metric 20 (MiB/s)", "DCGM field 1009 (bytes/s), where NVML gives none"},
		Level: onAttention,
	})
	PCIeReceiveRate = define(Metric{
		Name:  "accel_pcie_receive_bytes_per_second",
		Help:  "PCIe receive rate, averaged over the time since the previous sample. NVML is read every 2 s.",
		Kind:  Gauge,
		From:  []string{"NVML GPM metric 21 (MiB/s)", "DCGM field 1010 (bytes/s), where NVML gives none"},
		Level: onAttention,
	})
)

// amdComponents are firmwares that one package installs together: the standard
// page has the package, the power firmware and the VBIOS.
var amdComponents = []string{
	"vce", "uvd", "mc", "me", "pfp", "ce", "rlc", "rlc_srlc", "rlc_srlg", "rlc_srls", "mec", "mec2", "imu", "sos", "asd",
	"ta_ras", "ta_xgmi", "sdma", "sdma2", "vcn", "dmcu", "dmcub", "mes", "mes_kiq",
}

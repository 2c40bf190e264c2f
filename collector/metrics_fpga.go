package collector

// volts and amperes are the ranges of a supply rail of a card.
var (
	volts   = Range{-1000, 1000}
	amperes = Range{-10_000, 10_000}
)

// Families of FPGAs. There is no utilization: DFL cards, Zynq and Versal, V80
// and AWS instances have no counter of it.
var (
	FPGAInfo = define(Metric{
		Name:   "accel_fpga_info",
		Help:   "How an FPGA is attached; value 1. Join it to the other families on device.",
		Kind:   Info,
		Labels: []string{"family", "driver", "pci_id", "manager"},
		Values: []string{"family: dfl, intel-fpga (Intel's driver of before DFL), xrt, ami, aws, manager", "pci_id: vendor:device of the card, lower-case hex; empty on SoCs", "manager: name of the FPGA manager, where there is one"},
		From:   []string{"PCI driver, vendor, device; /sys/class/fpga_manager/*/name"},
	})
	FPGABitstreamInfo = define(Metric{
		Name:   "accel_fpga_bitstream_info",
		Help:   "Design that is loaded in a region of an FPGA; value 1. Absent where nothing is loaded or the driver does not report it.",
		Kind:   Info,
		Labels: []string{"region", "kind", "id"},
		Values: []string{
			"region: static, the name of the reconfigurable region, port or slot",
			"kind: fim (static region of a DFL card), fim_metadata (its date and seed), pr_interface (interface that designs for the region must match), afu (accelerator function), boot_image (flash image that the card has booted), power_on_image (order in which it tries the images), xclbin, shell (name of the static region of an Alveo card), shell_timestamp (the second part of its name in device plugins), logic and interface (uuids of a shell of two stages), pci_ids (ids of an AWS image, chosen by its author: a weak identity), firmware (name of the image in the device tree, which does not prove what is in the fabric)",
			"id: as the driver prints it, in lower case",
		},
		From: []string{"DFL bitstream_id, bitstream_metadata, compat_id, afu_id, control/fpga_boot_image, control/power_on_image; device tree firmware-name; XRT xclbinuuid, rom.*/VBNV, rom.*/timestamp, logic_uuids, interface_uuids, xgq_vmr.m.*/vmr_status; AMI logic_uuid; AWS vendor, device, subsystem_vendor, subsystem_device of the application function; mainline has no identity of a bitstream for Zynq and Versal, AWS none in sysfs, OFS none of an AFU behind a VF"},
	})
	FPGABitstreamLoaded = define(Metric{
		Name:   "accel_fpga_bitstream_loaded",
		Help:   "1 if the region has a usable design, 0 while it is empty or being configured. Absent where the driver does not report it.",
		Kind:   Gauge,
		Labels: []string{"region"},
		Range:  boolean,
		From:   []string{"DFL afu_id (EBUSY: 0; all ones: 0); ZynqMP status word bit 14; XRT xclbinuuid; AWS absence of the application function: 0"},
	})
	FPGAReconfigurations = define(Metric{
		Name:   "accel_fpga_reconfigurations_total",
		Help:   "Reconfigurations of a region observed since the exporter started, by outcome. A reconfiguration that is shorter than the polling interval and loads the same design can be missed.",
		Kind:   Counter,
		Labels: []string{"region", "outcome"},
		Values: []string{"outcome: ok, failed"},
		From:   []string{"exporter: excursions of /sys/class/fpga_manager/*/state, EBUSY of DFL afu_id, absence of the compute units of an Alveo card and of the application function of an AWS one, changes of identity"},
	})
	FPGAManagerState = define(Metric{
		Name:   "accel_fpga_manager_state",
		Help:   "State of an FPGA manager: 1 for the current state, 0 for the others. It describes the kernel's last operation, not the content of the fabric: unknown is normal until the kernel itself has loaded a design.",
		Kind:   Gauge,
		Labels: []string{"manager", "state"},
		Range:  boolean,
		Values: []string{"state: unknown, power off, power up, reset, firmware request, firmware request error, parse header, parse header error, write init, write init error, write, write error, write complete, write complete error, operating; one that a newer kernel adds"},
		From:   []string{"/sys/class/fpga_manager/*/state"},
		Level:  inForce,
	})
	FPGAManagerError = define(Metric{
		Name:   "accel_fpga_manager_error",
		Help:   "1 if the driver of an FPGA manager reports the error for the last load, 0 if it has reported it since the exporter started and no longer does.",
		Kind:   Gauge,
		Labels: []string{"manager", "error"},
		Range:  boolean,
		Values: []string{"error: operation, crc, incompatible_image, ip_protocol, fifo_overflow, security, initialization, reported (an unknown line)"},
		From:   []string{"/sys/class/fpga_manager/*/status"},
	})
	FPGABridgeEnabled = define(Metric{
		Name:   "accel_fpga_bridge_enabled",
		Help:   "1 if the bridge connects the region to the rest of the system, 0 while it isolates the region, as during a reconfiguration and after a failed one.",
		Kind:   Gauge,
		Labels: []string{"bridge"},
		Range:  boolean,
		From:   []string{"/sys/class/fpga_bridge/*/state"},
	})
	FPGAConfigurationStatus = define(Metric{
		Name:   "accel_fpga_configuration_status",
		Help:   "One bit of the configuration status that the fabric reports, also for a design loaded by JTAG or firmware.",
		Kind:   Gauge,
		Labels: []string{"bit"},
		Range:  boolean,
		Values: []string{"bit: crc_error, pll_locked, startup_done, io_active, write_enabled, init_complete, init_pin, done_released, done_pin, idcode_error, security_error, over_temperature"},
		From:   []string{"/sys/bus/platform/drivers/zynqmp_fpga_manager/*/status (Linux 6.4)"},
		Level:  inForce,
	})

	FPGAErrorLatched = define(Metric{
		Name:   "accel_fpga_error_latched",
		Help:   "1 if the bit of an error register is set, 0 if it has been set since the exporter started and is now clear. A bit stays set until it is cleared by software.",
		Kind:   Gauge,
		Labels: []string{"unit", "error"},
		Range:  boolean,
		Values: []string{"unit: fme, pcie0, pcie1, nonfatal, fatal, inject, port and its number; XRT: firewall", "error: name of the bit, bit_N if it has two meanings and the driver does not report which"},
		From:   []string{"DFL errors/fme_errors, pcie0_errors, pcie1_errors, nonfatal_errors, catfatal_errors, inject_errors, dfl-port.*/errors/errors; names from OPAE"},
	})
	FPGAErrorsLatched = define(Metric{
		Name:   "accel_fpga_errors_latched",
		Help:   "Number of bits set in an error register; 0 if it is clear. Absent if the register is not read.",
		Kind:   Gauge,
		Labels: []string{"unit"},
		Range:  Range{0, 64},
		Values: []string{"unit: as in accel_fpga_error_latched"},
		From:   []string{"as accel_fpga_error_latched"},
	})
	FPGAErrors = define(Metric{
		Name:   "accel_fpga_errors_total",
		Help:   "Errors of a unit since the exporter started: bits that changed from clear to set. An error that occurs while its bit is still set is not counted.",
		Kind:   Counter,
		Labels: []string{"unit"},
		Values: []string{"unit: as in accel_fpga_error_latched"},
		From:   []string{"exporter, from the registers of accel_fpga_error_latched"},
	})

	FPGAVoltage = define(Metric{
		Name:   "accel_fpga_voltage_volts",
		Help:   "Voltage by sensor, with the sensor name of the driver.",
		Kind:   Gauge,
		Labels: []string{"sensor"},
		Range:  volts,
		From:   []string{"hwmon in*_input (mV); IIO in_voltage*_raw times in_voltage*_scale (mV); XRT xmc.*/xmc_* (mV), sysmon.m.*/vcc_* (mV), hwmon_sdm.*/voltage_sensors_raw; not read on AMI cards, where reading can end programs"},
		Level:  onAttention,
	})
	// Read by hand: which limit a rail is near, when its voltage or an alarm is
	// suspicious.
	FPGAVoltageLimit = define(Metric{
		Name:   "accel_fpga_voltage_limit_volts",
		Help:   "Voltage limits at which the board controller warns or acts.",
		Kind:   Gauge,
		Labels: []string{"sensor", "limit"},
		Range:  volts,
		Values: []string{"limit: low_warning, low_critical, warning, critical (AMI: programs that use the card are ended), fatal (the card powers down)"},
		From:   []string{"hwmon in*_min, in*_lcrit, in*_max, in*_crit (mV); on AMI cards lcrit is the upper critical limit"},
		Level:  onAttention,
	})
	// Read by hand: which rail draws the power of a card.
	FPGACurrent = define(Metric{
		Name:   "accel_fpga_current_amperes",
		Help:   "Current by sensor, with the sensor name of the driver.",
		Kind:   Gauge,
		Labels: []string{"sensor"},
		Range:  amperes,
		From:   []string{"hwmon curr*_input (mA); XRT xmc.*/xmc_*_curr and others (mA), hwmon_sdm.*/current_sensors_raw; not read on AMI cards"},
		Level:  onAttention,
	})
	// Read by hand, beside the current.
	FPGACurrentLimit = define(Metric{
		Name:   "accel_fpga_current_limit_amperes",
		Help:   "Current limits at which the board controller warns or acts.",
		Kind:   Gauge,
		Labels: []string{"sensor", "limit"},
		Range:  amperes,
		Values: []string{"limit: warning, critical, fatal"},
		From:   []string{"hwmon curr*_max, curr*_crit (mA)"},
		Level:  onAttention,
	})
	// Read by hand: on Kria modules the only power there is.
	FPGARailPower = define(Metric{
		Name:   "accel_fpga_rail_power_watts",
		Help:   "Power by sensor, except the power of the whole card, which is accel_power_watts.",
		Kind:   Gauge,
		Labels: []string{"sensor"},
		Range:  watts,
		From:   []string{"hwmon power*_input (uW)"},
	})
	FPGAPowerThreshold = define(Metric{
		Name:   "accel_fpga_power_threshold_watts",
		Help:   "Power at which the card takes the action that the label limit names. Absent where no limit is set.",
		Kind:   Gauge,
		Labels: []string{"limit"},
		Range:  watts,
		Values: []string{"limit: warning, critical, fatal"},
		From:   []string{"hwmon dfl_fme_power power1_max, power1_crit (uW); AMI power1_max, power1_lcrit, power1_crit (uW)"},
	})
	FPGASensorAlarm = define(Metric{
		Name:   "accel_fpga_sensor_alarm",
		Help:   "1 if the driver reports that the sensor exceeds the limit.",
		Kind:   Gauge,
		Labels: []string{"sensor", "limit"},
		Range:  boolean,
		Values: []string{"limit: low_warning, low_critical, warning, critical (AMI: programs that use the card are ended), fatal (the card powers down)"},
		From:   []string{"hwmon temp*_max_alarm, temp*_crit_alarm, power*_max_alarm, power*_crit_alarm; AMI also in*, curr* and *_lcrit_alarm; XRT xmc.*/xmc_power_warn"},
	})
	FPGAThrottleState = define(Metric{
		Name:   "accel_fpga_throttle_state",
		Help:   "Throttling of a port to protect the card: 1 for the current state, 0 for the others.",
		Kind:   Gauge,
		Labels: []string{"port", "state"},
		Range:  boolean,
		Values: []string{"state: normal, ap1 (half the rate), ap2 (a tenth), ap6 (shut down), other"},
		From:   []string{"DFL dfl-port.*/power_state 0, 1, 2, 6"},
		Level:  inForce,
	})
	FPGAMemoryCalibrated = define(Metric{
		Name:   "accel_fpga_memory_calibrated",
		Help:   "1 if the memory interface of the card has been calibrated and can be used. 0 is normal while the card is being configured.",
		Kind:   Gauge,
		Labels: []string{"bank"},
		Range:  boolean,
		From:   []string{"DFL dfl_dev.*/inf*_init_done and not inf*_cal_fail; XRT mig_calibration, for all banks together, once it has been 1"},
	})
	FPGAMemoryECCErrors = define(Metric{
		Name:   "accel_fpga_memory_ecc_errors_total",
		Help:   "ECC errors of a memory bank since the last load, by severity.",
		Kind:   Counter,
		Labels: []string{"bank", "severity"},
		Values: []string{"severity: corrected, uncorrected"},
		From:   []string{"XRT mig.*/ecc_ce_cnt; ecc_ue_cnt for HBM, as DDR does not count it"},
	})
	FPGAMemoryECCLatched = define(Metric{
		Name:   "accel_fpga_memory_ecc_error_latched",
		Help:   "1 if the memory bank has had an ECC error of the severity since the last load.",
		Kind:   Gauge,
		Labels: []string{"bank", "severity"},
		Range:  boolean,
		Values: []string{"severity: corrected, uncorrected"},
		From:   []string{"XRT mig.*/ecc_status bits 1, 0"},
	})
	FPGAFirewallTripped = define(Metric{
		Name:   "accel_fpga_firewall_tripped",
		Help:   "1 if an AXI firewall has tripped and isolates the loaded design, until the card is reset.",
		Kind:   Gauge,
		Labels: []string{"firewall"},
		Range:  boolean,
		From:   []string{"XRT firewall.*/level, 18446744073709551615 when none has tripped"},
	})
	FPGAComputeUnitState = define(Metric{
		Name:   "accel_fpga_compute_unit_state",
		Help:   "State of a compute unit of the loaded design: 1 for the current state, 0 for the others.",
		Kind:   Gauge,
		Labels: []string{"unit", "state"},
		Range:  boolean,
		Values: []string{"state: idle, running, done, ready, reset, crashed"},
		From:   []string{"XRT kds_custat_raw and kds_scustat_raw status"},
		Level:  inForce,
	})
	FPGAExecutions = define(Metric{
		Name:   "accel_fpga_executions_total",
		Help:   "Runs of a compute unit since its design was loaded. Kernels that a program starts by itself are not counted.",
		Kind:   Counter,
		Labels: []string{"unit"},
		From:   []string{"XRT kds_custat_raw usage"},
	})

	FPGAFirmwareUpdateError = define(Metric{
		Name:   "accel_fpga_firmware_update_error",
		Help:   "1 if the last update of the flash of the card failed with the error.",
		Kind:   Gauge,
		Labels: []string{"error"},
		Range:  boolean,
		Values: []string{"error: hw-error, timeout, user-abort, device-busy, invalid-file-size, read-write-error, flash-wearout, firmware-invalid, other"},
		From:   []string{"/sys/class/firmware/*/error"},
	})
	FPGARootKeyInfo = define(Metric{
		Name:   "accel_fpga_root_key_info",
		Help:   "Hash of the root key that images for a region must be signed with; value 1. none if no key is programmed, in which case any image is accepted.",
		Kind:   Info,
		Labels: []string{"key", "hash"},
		Values: []string{"key: sr (static region), pr (partial reconfiguration), bmc (board controller)"},
		From:   []string{"DFL *-sec-update.*/security/{sr,pr,bmc}_root_entry_hash"},
	})
)

// Families of the cards under XRT and AMI.
var (
	FPGACardState = define(Metric{
		Name:   "accel_fpga_card_state",
		Help:   "State of the card as reported by its driver: 1 for the current state, 0 for the others. Sensors can be read in every state.",
		Kind:   Gauge,
		Labels: []string{"state"},
		Range:  boolean,
		Values: []string{"state of XRT: ready, not_ready (the driver of the user function has no peer), offline (being reset), reset_required (the scheduler has given up)", "state of AMI: init, ready, missing_info, no_amc (no controller), init_error, shutdown, compat (firmware of another version)", "state of DFL cards with a function: ready, function_dead (its identity reads as all ones)"},
		From:   []string{"DFL afu_id; XRT ready, dev_offline, device_bad_state; AMI dev_state"},
		Level:  inForce,
	})
	// Read by hand: why the sensors of a card are absent.
	FPGAControllerReady = define(Metric{
		Name:   "accel_fpga_controller_ready",
		Help:   "1 if a controller of the card is ready. At 0 its sensors are out of date and absent. Absent for a controller of a Versal card that has not been ready since the exporter started: not every card has each of them.",
		Kind:   Gauge,
		Labels: []string{"controller"},
		Range:  boolean,
		Values: []string{"controller: cmc (measures the board of an Alveo card); of a Versal card sc (satellite controller, which measures the board), ps (processors), pl (programmable logic)"},
		From:   []string{"XRT xgq_vmr.m.*/vmr_status, SC_IS_READY, PS_IS_READY, PL_IS_READY; xmc.m.*/xmc_heartbeat_stall, in a virtual machine xmc.u.*/xmc_heartbeat_count"},
		Level:  onAttention,
	})
	FanSpeed = define(Metric{
		Name:   "accel_fan_speed_rpm",
		Help:   "Fan speed in revolutions per minute; of a GPU the speed that the driver has set for its first fan.",
		Kind:   Gauge,
		Labels: []string{"fan"},
		Range:  Range{0, 100_000},
		From:   []string{"NVML nvmlDeviceGetFanSpeedRPM", "amdgpu gpu_metrics current_fan_speed, hwmon fan1_input", "XRT xmc.*/xmc_fan_rpm"},
	})
	FanRatio = define(Metric{
		Name:   "accel_fan_speed_ratio",
		Help:   "Speed that the driver has set for a fan, as a share of its highest speed, 0 to 1. A blocked fan is not noticed.",
		Kind:   Gauge,
		Labels: []string{"fan"},
		Range:  ratio,
		From:   []string{"NVML nvmlDeviceGetFanSpeed_v2 (percent; more than 100 is 1)", "amdgpu hwmon fan1_input over fan1_max"},
	})
)

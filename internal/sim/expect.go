package sim

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Expectation is what an exporter with its default flags serves after a fault. A
// test injects each Example and waits for the line.
type Expectation struct {
	// Fault is its name, and which of its arguments have which value or, with no
	// value after "=", any.
	Fault, Example string
	// Line is a series, with all or some of its labels, and its value: a number,
	// "> 0" or absent; what follows a semicolon is for people. {NAME} is an argument
	// of the fault, {DEVICE} the name of its first device.
	Line   string
	Within time.Duration
}

// Times after which a reading shows a fault.
const (
	nextSample  = 2 * time.Second  // --collect.interval, and the reading itself
	nextTimeout = 10 * time.Second // sources.nvidia.timeout
	nextSlow    = 15 * time.Second // what is read at slow_interval
	nextList    = 12 * time.Second // --podresources.interval
	lateList    = 60 * time.Second // the list is old
	nextMinute  = 62 * time.Second // what is read every minute; a verdict on what has lasted for half of one
)

// Expectations has the faults with a visible effect that depends on nothing
// else. The effect of the others depends on what a program calls and when.
var Expectations = []Expectation{
	{"xid", "xid 79 1", `accel_gpu_xid_errors_total{device="{DEVICE}",xid="{code}"} > 0`, nextSample},
	{"event", "event ecc-double 1", `accel_device_events_total{device="{DEVICE}"} > 0`, nextSample},
	{"lost", "lost 1", `accel_device_up{device="{DEVICE}",reason="lost"} 0`, nextSample},
	{"reset-required", "reset-required 1", `accel_device_up{device="{DEVICE}",reason="reset_required"} 0`, nextSample},
	{"gone", "gone 1", `accel_device_up{device="{DEVICE}",reason="missing"} 0`, nextSample},
	{"return", "return 1", `accel_device_up{device="{DEVICE}",reason=""} 1`, nextSample},
	{"hang", "hang 1", `accel_device_up{device="{DEVICE}",reason="stuck"} 0; a minute later it is failed, and an alert fires`, nextTimeout},
	{"crash", "crash", `accel_source_worker_exits_total{how="signal_segv",source="nvidia"} > 0`, nextSample},
	{"exit", "exit", `accel_source_worker_exits_total{how="exit_{code}",source="nvidia"} > 0`, nextSample},
	{"kill", "kill", `accel_source_worker_exits_total{how="signal_kill",source="nvidia"} > 0`, nextSample},
	{"error", "error nvmlDeviceGetTemperature NO_PERMISSION 1", `accel_native_call_errors_total{call="{call}"} > 0`, nextSlow},
	{"driver-mismatch", "driver-mismatch", `accel_source_up{reason="version_mismatch",source="nvidia"} 0`, nextSample},
	{"driver-unload", "driver-unload", `accel_source_up{reason="driver",source="nvidia"} 0`, nextSample},
	{"driver-reload", "driver-reload", `accel_source_up{reason="",source="nvidia"} 1`, nextSample},
	{"mig", "mig 0 3g.40gb", `accel_device_events_total{device="{DEVICE}",event="mig_config_change"} > 0`, nextSample},
	{"recovery-action", "recovery-action reset 1", `accel_device_events_total{device="{DEVICE}",event="recovery_action_change"} > 0`, nextSample},
	{"ecc", "ecc uncorrected 1", `accel_ecc_errors_total{device="{DEVICE}",severity="{type}"} > 0`, nextSlow},
	{"remap pending=1", "remap 1 --pending=1", `accel_row_remap_pending{device="{DEVICE}"} 1`, nextSlow},
	{"remap failure=1", "remap 1 --failure=1", `accel_row_remap_failed{device="{DEVICE}"} 1`, nextSlow},
	{"remap correctable=", "remap 1 --correctable=1", `accel_row_remaps_total{cause="corrected",device="{DEVICE}"} > 0`, nextSlow},
	{"remap uncorrectable=", "remap 1 --uncorrectable=1", `accel_row_remaps_total{cause="uncorrected",device="{DEVICE}"} > 0`, nextSlow},
	{"nvlink what=errors", "nvlink 3 errors 1", `accel_gpu_nvlink_errors_total{device="{DEVICE}"} > 0`, nextSlow},
	{"nvlink what=down", "nvlink 3 down 1", `accel_device_health_reason{device="{DEVICE}",reason="nvlink_down"} 1`, nextMinute},
	{"set key=temperature", "set temperature 45 1", `accel_temperature_celsius{device="{DEVICE}",sensor="gpu"} {value}`, nextSample},
	{"throttle", "throttle hw-thermal 1", `accel_throttle_active{device="{DEVICE}"} > 0`, nextSlow},
	{"fabric", "fabric in-progress 1", `accel_gpu_fabric_state{device="{DEVICE}",state="completed"} 0`, nextSlow},
	{"bus-loss", "bus-loss 1", `accel_device_seen{by="pcie",device="{DEVICE}"} 0`, nextSample},
	{"link-degraded", "link-degraded 1", `accel_pcie_link_width_lanes{device="{DEVICE}"} {width}`, nextSlow},
	{"pod-start", "pod-start team/new gpu:7", `accel_allocation_info{POD} 1`, nextList},
	{"pod-end", "pod-end training/llm-0", `accel_allocation_info{POD} absent`, nextList},
	{"pod-evict", "pod-evict training/llm-0", `accel_allocation_info{POD} absent`, nextList},
	{"kubelet-down", "kubelet-down", `accel_podmap_state{state="fresh"} 0`, lateList},
	{"kubelet-hang", "kubelet-hang", `accel_podmap_state{state="fresh"} 0`, lateList},
	{"kubelet-garbage", "kubelet-garbage", `accel_podmap_state{state="fresh"} 0`, lateList},
	{"device-unhealthy", "device-unhealthy 1", `accel_device_allocatable{device="{DEVICE}"} 0`, nextList},
	{"fpga-firewall", "fpga-firewall xilinx-u250", `accel_device_health_reason{device="{DEVICE}",reason="fpga_firewall_tripped"} 1`, nextSample},
	{"fpga-error", "fpga-error intel-n3000-dfl 0x80", `accel_fpga_errors_total{device="{DEVICE}"} > 0`, nextSample},
	{"fpga-temperature", "fpga-temperature intel-n3000-dfl 99", `accel_temperature_celsius{device="{DEVICE}"} {celsius}`, nextSample},
	{"fpga-reconfigure", "fpga-reconfigure intel-n3000-dfl --fail", `accel_device_events_total{device="{DEVICE}",event="reconfiguration"} > 0`, nextSample},
	{"amd-ecc", "amd-ecc corrected 1", `accel_device_events_total{device="{DEVICE}",event="ecc_{type}"} > 0`, nextSample},
	{"amd-hang", "amd-hang 1", `accel_device_events_total{device="{DEVICE}",event="reset"} > 0`, nextSample},
	{"amd-reset", "amd-reset 1", `accel_device_events_total{device="{DEVICE}",event="reset"} > 0`, nextSample},
	{"amd-throttle", "amd-throttle power 1 --for=4s", `accel_throttle_seconds_total{device="{DEVICE}"} > 0`, nextSample},
	{"amd-retire", "amd-retire 3 1", `accel_retired_pages_total{device="{DEVICE}"} > 0`, nextMinute},
	{"amd-xgmi", "amd-xgmi 2 down 1", `accel_xgmi_up{device="{DEVICE}",link="{link}"} 0`, nextSample},
	{"amd-sleep", "amd-sleep 0", `accel_pcie_function_suspended{device="{DEVICE}"} 1`, nextSlow},
	{"amd-overheat", "amd-overheat 1", `accel_device_events_total{device="{DEVICE}",event="thermal_shutdown"} > 0`, nextSample},
	{"aer", "aer 1 fatal", `accel_pcie_aer_errors_total{device="{DEVICE}",severity="{severity}"} > 0`, nextSample},
}

// Expect returns what an exporter shows after a fault, with the time in which,
// "" where that depends on something else.
func (s *State) Expect(fault string, given map[string]string) (line string, within time.Duration) {
	for _, flag := range []string{"call", "register", "counter"} {
		if given[flag] != "" && (fault != "error" && fault != "fpga-error") {
			return "", 0
		}
	}
	if ends := given["ends"]; ends != "" && ends != "reset" && ends != "ok" || fault == "amd-throttle" && !s.countsThrottling(given["card"]) {
		return "", 0
	}
	if _, err := strconv.ParseUint(given["value"], 10, 8); fault == "set" && err != nil {
		return "", 0 // no number, or an absurd one, which no exporter serves
	}
	device := s.SeenAs(given["device"])
	if card := given["card"]; card != "" {
		device = s.cardSeenAs(card)
	}
	if _, err := s.devices(given["device"]); err != nil && fault == "device-unhealthy" {
		return "", 0 // an id of the device plugin, which may be that of no device here
	}
	for _, e := range Expectations {
		words := strings.Fields(e.Fault)
		other := func(condition string) bool {
			name, value, _ := strings.Cut(condition, "=")
			return given[name] == "" || value != "" && given[name] != value
		}
		if words[0] != fault || slices.ContainsFunc(words[1:], other) || given["pending"] == "true" || given["switch"] == "off" || given["width"] == "0" {
			continue
		}
		namespace, name, _ := strings.Cut(given["pod"], "/")
		texts := []string{"{DEVICE}", device, "{POD}", fmt.Sprintf(`{namespace=%q,pod=%q}`, namespace, name)}
		for k, v := range given {
			texts = append(texts, "{"+k+"}", v)
		}
		return strings.NewReplacer(texts...).Replace(e.Line), e.Within
	}
	return "", 0
}

// SeenAs returns the label device of the first device that an argument names.
func (s *State) SeenAs(arg string) string {
	if ds, err := s.devices(arg); err == nil {
		return s.deviceUUID(ds[0])
	}
	return s.cardSeenAs(arg)
}

// cardSeenAs returns the label device of a card, whose numbers are not the numbers of GPUs.
func (s *State) cardSeenAs(arg string) string {
	c, tree, err := s.card(arg)
	if err != nil {
		return arg
	}
	if id, _ := tree.Get(c.dir + "/unique_id"); c.kind == "amd" && id != "" {
		return "GPU-" + strings.TrimSpace(id)
	}
	return c.at
}

package main

import (
	"bytes"
	_ "embed"
	"fmt"
	"slices"
	"strings"

	"github.com/accel-exporter/accel-exporter/collector"
	"github.com/accel-exporter/accel-exporter/internal/compat"
	"github.com/accel-exporter/accel-exporter/internal/exposition"
	"github.com/accel-exporter/accel-exporter/internal/judge/health"
	"github.com/accel-exporter/accel-exporter/internal/remediation"
)

//go:embed metrics_intro.md
var intro string

// subject is one chapter of the page: the families whose names, without
// accel_, begin with one of the prefixes. The first matching subject wins.
type subject struct {
	title    string
	prefixes []string
	note     string // a sentence below the title, or none
}

var subjects = []subject{
	{"Health", []string{"device_health", "device_action", "device_incident_", "device_recovery_", "device_failures_"}, ""},
	{"Drift", []string{"drift", "baseline_"}, ""},
	{"Allocation", []string{"allocation_", "device_holders", "unattributed_", "resource_", "podmap_", "pod_", "podmeta_"}, ""},
	{"FPGA", []string{"fpga_"}, "No FPGA driver reports utilization, so FPGAs have no `accel_utilization_ratio`. The closest values are executions, the state of compute units and the bytes moved by DMA under XRT, and memory and PCIe transactions on DFL cards with `--collector.fpga.transactions`. Zynq and other SoCs have none."},
	{"Device", []string{"device_", "firmware_", "driver_", "mig_", "gpu_partition_", "vgpu_", "confidential_compute_"}, ""},
	{"Use", []string{"utilization_", "activity_", "sm_occupancy_", "processes", "clock_", "gpu_performance_state", "gpu_compute_mode", "gpu_persistence_mode"}, ""},
	{"Memory", []string{"memory_", "gpu_bar1_", "gpu_gtt_"}, ""},
	{"Power and temperature", []string{"power_", "energy_", "gpu_power_", "temperature_", "throttle_", "fan_"}, ""},
	{"PCIe", []string{"pcie_"}, ""},
	{"Kernel log", []string{"kernel_log_"}, ""},
	{"NVLink, XGMI and fabric", []string{"nvlink_", "gpu_nvlink_", "gpu_fabric_", "gpu_c2c_", "xgmi_"}, ""},
	{"Xid, recovery and repair", []string{"gpu_xid_", "gpu_recovery_", "gpu_repair_", "nvswitch_"}, ""},
	{"ECC, row remaps and retired pages", []string{"ecc_", "row_remap", "retired_pages_"}, ""},
	{"DCGM and Grace CPUs", []string{"dcgm_", "cpu_"}, "Only with `--dcgm.address` or `--dcgm.embedded`: [dcgm.md](dcgm.md)."},
	{"Sources and the exporter itself", []string{"source_", "native_call_", "exporter_", "compat_"}, ""},
	{"accel-remediator", []string{"remediator_"}, "Served by [accel-remediator](remediator.md), not by the exporter. Families about nodes are absent on a replica that is not the leader."},
}

// metricsPage returns docs/metrics.md.
func metricsPage() ([]byte, error) {
	chapters := make([][]*collector.Metric, len(subjects))
	for _, m := range slices.Concat(collector.Table(), exposition.Metrics(), compat.Metrics(), remediation.Metrics()) {
		i := slices.IndexFunc(subjects, func(s subject) bool { return s.contains(m.Name) })
		if i < 0 {
			return nil, fmt.Errorf("%s fits no subject: add its prefix in internal/gen/docs", m.Name)
		}
		chapters[i] = append(chapters[i], m)
	}
	var b bytes.Buffer
	b.WriteString(intro)
	b.WriteString("\n## Contents\n\n")
	for i, s := range subjects {
		fmt.Fprintf(&b, "- [%s](#%s): %d families\n", s.title, anchor(s.title), len(chapters[i]))
	}
	for i, s := range subjects {
		fmt.Fprintf(&b, "\n## %s\n", s.title)
		if s.note != "" {
			fmt.Fprintf(&b, "\n%s\n", s.note)
		}
		for _, m := range chapters[i] {
			writeMetric(&b, m)
		}
	}
	return b.Bytes(), nil
}

func (s subject) contains(name string) bool {
	return slices.ContainsFunc(s.prefixes, func(p string) bool { return strings.HasPrefix(name, "accel_"+p) })
}

// anchor is the fragment that renderers of Markdown give a title.
func anchor(title string) string {
	return strings.ReplaceAll(strings.ReplaceAll(strings.ToLower(title), ",", ""), " ", "-")
}

func writeMetric(b *bytes.Buffer, m *collector.Metric) {
	fmt.Fprintf(b, "\n### `%s`\n\n%s\n\n", m.Name, m.Help)
	fmt.Fprintf(b, "- Type: %s, %s.\n", m.Kind.Type(), unit(m))
	fmt.Fprintf(b, "- Labels: %s.\n", labels(m))
	if m.Kind == collector.Histogram {
		fmt.Fprintf(b, "- Buckets: %s.\n", strings.Trim(fmt.Sprint(m.Buckets), "[]"))
	}
	for _, v := range slices.Concat(m.Values, catalogued(m)) {
		names, values, _ := strings.Cut(v, ":")
		for name := range strings.SplitSeq(names, ", ") {
			label, when, _ := strings.Cut(name, " ") // "type from Blackwell: …"
			if when != "" {
				when = " " + when
			}
			fmt.Fprintf(b, "- Values of `%s`%s:%s.\n", label, when, values)
		}
	}
	if m.Level.String() != "all" {
		fmt.Fprintf(b, "- At `--metrics.detail=standard`: %s.\n", m.Level)
	}
	fmt.Fprintf(b, "- On failure: %s.\n", failure(m))
	fmt.Fprintf(b, "- From: %s.\n", strings.Join(m.From, "; "))
}

func labels(m *collector.Metric) string {
	var names []string
	if m.Scope == collector.PerDevice {
		names = append(names, "`device` (partitions also `parent`)")
	}
	for _, l := range m.Labels {
		names = append(names, "`"+l+"`")
	}
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, ", ")
}

// units maps suffixes of names to units; the first match wins.
var units = []struct{ suffix, unit string }{
	{"_info", "always 1"},
	{"_timestamp_seconds", "seconds since the epoch"},
	{"_bytes_per_second", "bytes per second"},
	{"_bytes", "bytes"},
	{"_seconds", "seconds"},
	{"_celsius", "degrees Celsius"},
	{"_volts", "volts"},
	{"_amperes", "amperes"},
	{"_transfers_per_second", "transfers per second"},
	{"_watts", "watts"},
	{"_joules", "joules"},
	{"_hertz", "hertz"},
	{"_lanes", "lanes"},
	{"_rpm", "revolutions per minute"},
	{"_ratio", "0 to 1"},
}

func unit(m *collector.Metric) string {
	name := strings.TrimSuffix(m.Name, "_total")
	for _, u := range units {
		if strings.HasSuffix(name, u.suffix) {
			return u.unit
		}
	}
	switch {
	case m.Range == collector.Range{Min: 0, Max: 1}:
		return "0 or 1"
	case m.Range.Max < 1000:
		return fmt.Sprintf("%g to %g", m.Range.Min, m.Range.Max)
	}
	return "a count"
}

// failure describes the series of the family while its device or source fails.
func failure(m *collector.Metric) string {
	switch {
	case m == collector.DeviceUp:
		return "0 while the device is down; absent while the source is down"
	case m.Kind.Stays():
		return "keeps its last value"
	case slices.Equal(m.From, []string{"accel-remediator"}):
		return "keeps its last value"
	case m.From[0] == "exporter, by the catalogue in docs/health.md":
		return "present: the failure is part of the verdict"
	case m.Scope == collector.PerNode && slices.Equal(m.From, []string{"exporter"}):
		return "present: it describes the source"
	}
	if m.Scope == collector.PerNode {
		return "absent while the source is down"
	}
	return "absent while the device is down"
}

// catalogued returns the values of the family's labels that come from the health
// catalogue, in the format of Metric.Values.
func catalogued(m *collector.Metric) []string {
	if m != collector.DeviceHealthReason {
		return nil
	}
	var events, actions, conditions []string
	for _, r := range health.Builtin().Reasons() {
		switch {
		case strings.HasPrefix(r, "xid_"), strings.HasPrefix(r, "sxid_"): // hundreds, by the pattern in the table
		case strings.HasPrefix(r, "event_"):
			events = append(events, r)
		case strings.HasPrefix(r, "recovery_action_"):
			actions = append(actions, r)
		default:
			conditions = append(conditions, r)
		}
	}
	return []string{
		"reason of another event: " + strings.Join(events, ", "),
		"reason of a recovery action of the driver: " + strings.Join(actions, ", "),
		"reason of a measured condition: " + strings.Join(conditions, ", ") + "; and those that the file of --health.catalogue adds",
	}
}

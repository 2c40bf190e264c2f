package main

import (
	"bytes"
	_ "embed"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/accel-exporter/accel-exporter/collector"
	"github.com/accel-exporter/accel-exporter/internal/compat"
	"github.com/accel-exporter/accel-exporter/internal/exposition"
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
	{"Health", []string{"device_faults_", "device_health", "device_action", "device_incident_", "device_recovery_", "device_failures_"}, "A failed device keeps these series: the failure is part of the verdict. [health.md](health.md) explains the verdict; the values of `reason` are the entries of its catalogue."},
	{"Drift", []string{"drift", "baseline_"}, ""},
	{"Allocation", []string{"allocation_", "device_holders", "unattributed_", "resource_", "podmap_", "pod_"}, ""},
	{"FPGA", []string{"fpga_"}, "No FPGA driver reports utilization, so FPGAs have no `accel_utilization_ratio`. The closest values are executions, the state of compute units and the bytes moved by DMA under XRT. DFL cards, Zynq and other SoCs have none."},
	{"Device", []string{"device_", "firmware_", "driver_", "mig_", "gpu_partition_", "vgpu_", "confidential_compute_"}, ""},
	{"Use", []string{"utilization_", "activity_", "sm_occupancy_", "processes", "clock_", "gpu_performance_state", "gpu_compute_mode", "gpu_persistence_mode"}, ""},
	{"Memory", []string{"memory_", "gpu_bar1_", "gpu_gtt_"}, ""},
	{"Power and temperature", []string{"power_", "energy_", "gpu_power_", "gpu_voltage_", "temperature_", "throttle_", "fan_"}, ""},
	{"PCIe", []string{"pcie_"}, "Values of *sysfs* are read every 5 s. The bus is listed in every round."},
	{"Kernel log", []string{"kernel_log_"}, ""},
	{"NVLink, XGMI and fabric", []string{"nvlink_", "gpu_nvlink_", "gpu_fabric_", "gpu_c2c_", "xgmi_"}, ""},
	{"Xid, recovery and repair", []string{"gpu_xid_", "gpu_recovery_", "gpu_repair_", "nvswitch_"}, ""},
	{"ECC, row remaps and retired pages", []string{"ecc_", "row_remap", "bank_remap", "retired_pages_"}, ""},
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
	for i, s := range subjects {
		fmt.Fprintf(&b, "\n## %s\n", s.title)
		if s.note != "" {
			fmt.Fprintf(&b, "\n%s\n", s.note)
		}
		b.WriteString("\n| metric | type | labels | meaning | from |\n|---|---|---|---|---|\n")
		for _, m := range chapters[i] {
			writeMetric(&b, m)
		}
	}
	return b.Bytes(), nil
}

func (s subject) contains(name string) bool {
	return slices.ContainsFunc(s.prefixes, func(p string) bool { return strings.HasPrefix(name, "accel_"+p) })
}

// writeMetric writes the row of a family. The whole help text is in the HELP line of
// the page.
func writeMetric(b *bytes.Buffer, m *collector.Metric) {
	meaning := []string{firstSentence(m.Help)}
	if m.Range.Max < 1000 && m.Range.Min == 0 && m.Range.Max > 1 && !strings.Contains(m.Name, "_celsius") {
		meaning = append(meaning, fmt.Sprintf("0 to %g.", m.Range.Max))
	}
	for _, v := range m.Values {
		names, values, _ := strings.Cut(v, ":")
		label, when, qualified := strings.Cut(names, " ") // "type from Blackwell: …"
		if qualified && !strings.HasSuffix(label, ",") {
			names = "`" + label + "` " + when
		} else {
			names = "`" + strings.ReplaceAll(names, ", ", "`, `") + "`"
		}
		meaning = append(meaning, names+": "+plain(values)+".")
	}
	text := strings.NewReplacer("|", `\|`, "*", `\*`).Replace(strings.Join(meaning, " "))
	if level := m.Level.String(); level != "all" {
		if strings.Count(level, ",") > 5 {
			level, _, _ = strings.Cut(level, ":")
			level = "a part, by `" + level + "`"
		}
		text += " *Standard: " + level + "*"
	}
	fmt.Fprintf(b, "| `%s` | %s | %s | %s | %s |\n", m.Name, m.Kind.Type(), labels(m), text, origin(m))
}

// firstSentence returns the text up to its first full stop, of a long sentence up to its
// first semicolon.
func firstSentence(text string) string {
	first, _, more := strings.Cut(text, ". ")
	if main, _, long := strings.Cut(first, "; "); long && len(first) > 90 {
		first, more = main, true
	}
	if more {
		return first + "."
	}
	return text
}

// aside is an explanation of a value in brackets.
var aside = regexp.MustCompile(` ?\([^)]*\)`)

// maxValues is the length of the values of a label in a row; the table has all.
const maxValues = 110

// plain returns the values of a label, without their explanations where these would
// make the row longer than a person reads.
func plain(values string) string {
	values = strings.TrimSpace(values)
	if len(values) > 70 {
		values = aside.ReplaceAllString(values, "")
	}
	if len(values) > maxValues {
		values = strings.TrimRight(values[:strings.LastIndex(values[:maxValues], " ")], ",;") + " …"
	}
	return values
}

func labels(m *collector.Metric) string {
	names := m.Labels
	if m.Scope == collector.PerDevice {
		names = slices.Concat([]string{"device"}, names)
	}
	return strings.Join(names, ", ")
}

// origins are the words by which the table names where a value comes from.
var origins = regexp.MustCompile(`NVML|DCGM|amdgpu|XRT|DFL|AMI|ZynqMP|AWS|fpga_manager|hwmon|IIO|kernel log|/dev/kmsg|kubelet|Kubernetes API|sysfs|/sys/class/\w+|procfs|/proc`)

// origin names the sources of a family in a few words, none if the exporter derives the
// value from others.
func origin(m *collector.Metric) string {
	all := origins.FindAllString(strings.Join(m.From, "; "), -1)
	slices.Sort(all)
	all = slices.Compact(all)
	return strings.Join(all, ", ")
}

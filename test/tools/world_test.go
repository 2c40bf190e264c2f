package tools

import (
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// simulated is a node with an exporter: a scenario of fixtures/scenarios, what
// the exporter is given, and what happens to the node once it is scraped.
type simulated struct {
	name, scenario string
	flags          []string
	config         string
	baseline       string
	faults         []string
}

// nodes have, together, something for every panel.
var nodes = []simulated{
	{
		name: "n1", scenario: "h100-8",
		config: `allocation:
  idle: {grace: 1s}
  currency: EUR
  prices:
    - {resource: nvidia.com/mig-*, per_hour: 0.4}
    - {class: gpu, per_hour: 2.5}
`,
		baseline: `entries:
  - name: h100
    match: {class: gpu, model: NVIDIA H100*}
    approved: {driver: ["575.57.08"], mig: [disabled]}
`,
		faults: []string{
			"xid 48 2", "xid 13 0", "ecc uncorrected 2", "ecc corrected 0 --count=20", "remap 1 --correctable=2 --pending=1",
			"throttle hw-thermal 1", "nvlink 3 down 1", "nvlink 2 errors 0 --counter=replay --count=50", "aer 0 correctable --count=5",
			"link-degraded 7 --width=4", "process-start 77001 7", "pod-end training/llm-0", "pod-start jobs/new-0 gpu:7 --load=0.7",
			"event gpu-unavailable 3", "crash 0", "lost 6", "set pcie.replay 7 1", "set temperature 1e30 5", "error nvmlDeviceGetBAR1MemoryInfo NO_PERMISSION 5", "kernel-log NVRM: Xid (PCI:0000:53:00): nonsense",
		},
	},
	{
		name: "n2", scenario: "mixed-node", flags: []string{"--alertmanager.url=http://127.0.0.1:9"},
		baseline: `entries:
  - name: n3000
    match: {class: fpga, vendor: intel, model: Intel FPGA PAC N3000}
    approved: {bitstream: {fim: ["0x202000200000237"], afu: [9aeffe5f84570612c000c9660d824272]}}
`,
		faults: []string{
			"fpga-reconfigure n3000 --afu=00112233445566778899aabbccddeeff --duration=2s", "fpga-reconfigure zynqmp --firmware=other.bit.bin --duration=400ms --fail",
			"fpga-error n3000 0x1", "fpga-firewall u250", "aer n3000 correctable --count=5", "driver-reload --driver=595.91.07",
		},
	},
	{name: "n3", scenario: "t4", faults: []string{"driver-unload"}},
	{
		name: "n4", scenario: "hgx-nvswitch", // The simulated bus has no NVSwitches.
		flags: []string{"--dcgm.embedded", "--dcgm.health-interval=10s", "--dcgm.profiling=on", "--no-collector.pcie", "--dcgm.fields=testdata/fields.csv"},
		faults: []string{
			"dcgm-profiling in-use", "nvlink 3 down 1", "xid 48 0", "dcgm-part switch:1 fatal_error 20034", "dcgm-part switch:2 link.crc_errors 50 --link=3",
			"kernel-log nvidia-nvswitch3: SXid (PCI:0000:08:00.0): 12028, Non-fatal, Link 32 egress non-posted PRIV error (First)",
		},
	},
	{name: "n5", scenario: "grace", flags: []string{"--dcgm.embedded"}},
}

// run starts the exporter and returns its address and how to do something to
// its node.
func (s simulated) run(t *testing.T) (string, func(fault string)) {
	t.Helper()
	simulator, dir, address := program(t, "SIMULATOR"), t.TempDir(), freeAddress(t)
	state := "--state=" + filepath.Join(dir, "state")
	fixtures := "--fixtures=" + filepath.Join(root, "fixtures")
	args := []string{
		state, fixtures, "run", "--library=" + filepath.Join(filepath.Dir(simulator), "sim/libnvidia-ml.so.1"),
		"--scenario=" + s.scenario, "--", program(t, "EXPORTER"),
		"--web.listen-address=" + address, "--podresources.interval=1s",
	}
	args = append(args, s.flags...)
	for flag, text := range map[string]string{"config": s.config, "baseline": s.baseline} {
		if text != "" {
			path := filepath.Join(dir, flag+".yml")
			write(t, path, text)
			args = append(args, "--"+flag+".file="+path)
		}
	}
	start(t, address, simulator, args...)
	return address, func(fault string) {
		out, err := exec.Command(simulator, append([]string{state, fixtures, "inject"}, strings.Fields(fault)...)...).CombinedOutput()
		if err != nil {
			t.Errorf("%s: %s: %v %s", s.name, fault, err, out)
		}
	}
}

// remedied is the page of an accel-remediator that has something for every
// panel: the page of the remediator's test, with actions of the first minute and a pass
// just now.
func remedied(t *testing.T) string {
	page, err := os.ReadFile(filepath.Join(root, "internal/remediation/testdata/page.metrics"))
	if err != nil {
		t.Fatal(err)
	}
	number := regexp.MustCompile(`(?m)^(\w+_(timestamp_seconds|total)\S* )(\S+)$`)
	const lastPass = 1772366460
	began := time.Now()
	return served(t, func() string {
		return number.ReplaceAllStringFunc(string(page), func(line string) string {
			m := number.FindStringSubmatch(line)
			v, err := strconv.ParseFloat(m[3], 64)
			if err != nil {
				t.Error(err)
			}
			if m[2] == "total" {
				v = math.Floor(v * min(1, time.Since(began).Minutes()))
			} else {
				v += float64(time.Now().Unix() - lastPass)
			}
			return fmt.Sprintf("%s%.0f", m[1], v)
		})
	})
}

// beside is a page of kube-state-metrics, and of what the exporter knows of pods from the
// API server.
func beside(t *testing.T) string {
	return served(t, func() string {
		return `kube_pod_owner{namespace="research",pod="segment-0",owner_is_controller="true",owner_kind="StatefulSet",owner_name="segment"} 1
kube_pod_owner{namespace="notebooks",pod="jupyter-small-0",owner_is_controller="true",owner_kind="StatefulSet",owner_name="jupyter-small"} 1
accel_pod_info{namespace="research",pod="speech-0",workload_kind="StatefulSet",workload="speech"} 1
accel_pod_label_info{namespace="research",pod="speech-0",label="team",value="voice"} 1
accel_pod_label_info{namespace="notebooks",pod="jupyter-small-0",label="team",value="data"} 1
`
	})
}

// TestScreenshots draws the dashboards of a Prometheus that has scraped the nodes for
// some minutes, in which one fault happened after the other.
func TestScreenshots(t *testing.T) {
	into := os.Getenv("SCREENSHOTS")
	if into == "" {
		t.Skip("SCREENSHOTS is not set: make screenshots sets it")
	}
	program(t, "PROMETHEUS")
	dir := t.TempDir()
	var targets strings.Builder
	var faults []func()
	for i, n := range nodes {
		at, inject := n.run(t)
		for j, f := range n.faults {
			faults = slices.Insert(faults, min(len(faults), j*(i+1)), func() { inject(f) })
		}
		fmt.Fprintf(&targets, "      - {targets: ['%s'], labels: {instance: %s, node: %[2]s, pool: mixed, cluster: %s}}\n", at, n.name, []string{"east", "west"}[i/3])
	}
	copyRules(t, dir)
	p := startPrometheus(t, dir, `global: {scrape_interval: 2s, evaluation_interval: 2s}
rule_files: ['`+filepath.Join(dir, "*.yaml")+`']
scrape_configs:
  - job_name: accel-exporter
    honor_labels: true
    static_configs:
`+targets.String()+`  - job_name: beside
    honor_labels: true
    static_configs: [{targets: ['`+beside(t)+`'], labels: {cluster: east}}]
  - job_name: accel-remediator
    honor_labels: true
    static_configs: [{targets: ['`+remedied(t)+`'], labels: {cluster: east}}]
`)
	p.awaits(t, `pool_model:accel_devices:count`)
	const healthy, between, after = 2 * time.Minute, 5 * time.Second, 2 * time.Minute
	time.Sleep(healthy)
	for _, fault := range faults {
		fault()
		time.Sleep(between)
	}
	time.Sleep(after)

	minutes := (healthy + after + time.Duration(len(faults))*between).Minutes()
	out := t.TempDir()
	cmd := exec.Command("node", filepath.Join(root, "test/render/render.mjs"), "http://"+string(p), out, fmt.Sprint(minutes))
	cmd.Env = append(os.Environ(), "FORMAT=jpeg", "HEIGHT=1450", "SCALE=0.8")
	if text, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	pictures, err := filepath.Glob(filepath.Join(out, "*.jpeg"))
	if err != nil || len(pictures) == 0 {
		t.Fatalf("%d pictures: %v", len(pictures), err)
	}
	for _, path := range pictures {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(into, filepath.Base(path)), string(data))
	}
}

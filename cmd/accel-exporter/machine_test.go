package main

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/accel-exporter/accel-exporter/internal/sim"
)

// mixed is the scenario of a node with GPUs, and FPGAs of every family that has
// a fixture.
const mixed = "mixed-node"

const (
	n3000 = `0000:1b:00\.0`
	u250  = `0000:5e:00\.1`
)

// kernelLogRead matches once the exporter reads the kernel log: a line from before
// is no new event.
const kernelLogRead = `^accel_source_up\{reason="",source="kernellog"\} 1$`

var (
	gpuUp    = regexp.MustCompile(`(?m)^accel_device_up\{device="(GPU-[^"]+)"`)
	probeXid = regexp.MustCompile(`(?m)^accel_gpu_xid_reports_total\{device="([^"]+)",source="nvidia",xid="43"\} (\d+)$`)
)

// watchEvents waits until the worker receives the driver's events of every GPU. It
// registers for them concurrently with its rounds, and an event from before is lost.
// So Xid 43, which has no effect on the state of a GPU, is injected until it is
// counted.
func (n *node) watchEvents() {
	n.t.Helper()
	counted := func() (counts map[string]string, page string) {
		_, page = n.get("/metrics")
		counts = map[string]string{}
		for _, m := range probeXid.FindAllStringSubmatch(page, -1) {
			counts[m[1]] = m[2]
		}
		return counts, page
	}
	before, _ := counted()
	n.poll(func() bool {
		n.sim("inject", "xid", "43", "all", "--no-log")
		now, page := counted()
		up := gpuUp.FindAllStringSubmatch(page, -1)
		return len(up) > 0 && !slices.ContainsFunc(up, func(m []string) bool { return now[m[1]] == before[m[1]] })
	}, func() string { return "events of every GPU" })
}

// TestXidFromTwoSources checks that an Xid that NVML and the kernel log report is
// counted once, and that the GPU is failed until its driver is reloaded.
func TestXidFromTwoSources(t *testing.T) {
	t.Parallel()
	n := start(t, mixed, nil)
	gpu := device(t, n.until(`^accel_device_up\{device="GPU-.*\} 1`, kernelLogRead), "0")
	n.watchEvents()
	n.until(`^accel_device_health\{device="` + gpu + `",state="healthy"\} 1$`)
	n.sim("inject", "xid", "79", "0")
	n.until(
		`^accel_gpu_xid_reports_total\{device="`+gpu+`",source="nvidia",xid="79"\} 1$`,
		`^accel_gpu_xid_reports_total\{device="`+gpu+`",source="kernellog",xid="79"\} 1$`,
		`^accel_gpu_xid_errors_total\{device="`+gpu+`",xid="79"\} 1$`,
		`^accel_device_health\{device="`+gpu+`",state="failed"\} 1$`,
		`^accel_device_health_reason\{device="`+gpu+`",reason="xid_79",severity="failed"\} 1$`,
	)
	_, state := n.get("/debug/state")
	if !strings.Contains(state, `"kernellog"`) || !strings.Contains(state, "fallen off the bus") {
		t.Error("the state does not show the reports of both sources")
	}
	n.sim("inject", "driver-reload")
	n.until(
		`^accel_device_health\{device="`+gpu+`",state="healthy"\} 1$`,
		`^accel_gpu_xid_errors_total\{device="`+gpu+`",xid="79"\} 1$`,
	)
}

// TestReconfiguration loads another image into a card. The reconfiguration is
// counted and timed. The new image drifts from the baseline until the approved
// image is loaded again.
func TestReconfiguration(t *testing.T) {
	t.Parallel()
	file := tempFile(t, "baseline.yml", `entries:
  - name: n3000
    match: {class: fpga, vendor: intel, pci_id: "8086:0b30"}
    approved: {bitstream: {port0/afu: ["9aeffe5f84570612c000c9660d824272"]}}
`)
	n := start(t, mixed, nil, "--baseline.file="+file)
	drift := func(actual, v string) string {
		return `^accel_drift\{actual="` + actual + `",component="port0/afu",device="` + n3000 + `",.*\} ` + v + `$`
	}
	n.until(drift("9aeffe5f84570612c000c9660d824272", "0"))
	afu := "d8424dc4a4a3c413f89e433683f9040b"
	// The image is loaded once the exporter has seen the card without one.
	load := []string{"inject", "fpga-reconfigure", "intel-n3000-dfl", "--afu=" + afu}
	begun := simCommand(t, n.state, append(load, "--duration=10h")...)
	if err := begun.Start(); err != nil {
		t.Fatal(err)
	}
	n.until(`^accel_fpga_bridge_enabled\{.*device="` + n3000 + `"\} 0$`)
	_ = begun.Process.Kill()
	_ = begun.Wait()
	n.sim(append(load, "--duration=0s")...)
	n.until(drift(afu, "1"),
		`^accel_fpga_reconfigurations_total\{device="`+n3000+`",outcome="ok",region="port0"\} 1$`,
		`^accel_fpga_reconfiguration_seconds_count\{device="`+n3000+`",region="port0"\} 1$`,
		`^accel_fpga_bitstream_info\{device="`+n3000+`",id="`+afu+`",kind="afu",region="port0"\} 1$`,
		`!^accel_fpga_bitstream_info\{device="`+n3000+`",id="9aeffe5f`,
		`^accel_device_up\{device="`+u250+`",reason=""\} 1$`)
	n.sim("inject", "fpga-reconfigure", "intel-n3000-dfl", "--afu=9aeffe5f84570612c000c9660d824272", "--duration=1s")
	n.until(drift("9aeffe5f84570612c000c9660d824272", "0"), `!^accel_drift\{actual="`+afu)
	n.sim("inject", "fpga-reconfigure", "intel-n3000-dfl", "--fail", "--duration=1s")
	n.until(`^accel_fpga_reconfigurations_total\{device="` + n3000 + `",outcome="failed",region="port0"\} 1$`)
}

// TestBaselineFile checks that the baseline that a node prints has no drift, and
// that an invalid baseline is rejected with its line while the previous one is
// kept.
func TestBaselineFile(t *testing.T) {
	t.Parallel()
	state, flags := compile(t, mixed, "--no-pods")
	printed, stderr, err := outcome(t.Context(), append([]string{"baseline", "print"}, flags...)...)
	if err != nil {
		t.Fatalf("%v\n%s", err, stderr)
	}
	file := tempFile(t, "baseline.yml", printed)
	n := startOn(t, state, append(flags, "--baseline.file="+file, "--web.enable-lifecycle")...)
	n.until(`^accel_drift\{.*component="driver".*\} 0$`, `^accel_drift\{.*device="`+n3000+`".*\} 0$`, `!^accel_drift\{.*\} 1$`)
	wrong := regexp.MustCompile(`(?m)^( +)approved:`).ReplaceAllString(printed, "${1}aproved:")
	writeFile(t, file, wrong)
	if code, body := n.post("/-/reload"); code == 200 || !regexp.MustCompile(`baseline\.yml:\d+: .*aproved.*did you mean approved`).MatchString(body) {
		t.Errorf("reload of an invalid baseline: %d %s", code, body)
	}
	n.until(`^accel_config_last_reload_successful 0$`, `^accel_drift\{.*component="driver".*\} 0$`)
	other := regexp.MustCompile(`driver: .*`).ReplaceAllString(printed, `driver: ["550.54.15"]`)
	writeFile(t, file, other)
	n.request("/-/reload")
	n.until(`^accel_config_last_reload_successful 1$`, `^accel_drift\{.*component="driver".*expected="550\.54\.15".*\} 1$`)
}

// TestExpectations checks that a fault shows what accel-sim prints for it, and
// that clear ends it.
func TestExpectations(t *testing.T) {
	t.Parallel()
	groups := map[string][]string{}
	for _, e := range sim.Expectations {
		node := scenario + " gpu"
		switch {
		case e.Fault == "amd-sleep":
			node = "radeon amd"
		case strings.HasPrefix(e.Fault, "amd-"):
			node = "mi300x-8 amd"
		case strings.Contains(e.Fault, "fpga"):
			node = mixed + " fpga"
		case strings.Contains(e.Fault, "kubelet"), strings.Contains(e.Fault, "pod"):
			node = scenario + " pods"
		case strings.Contains(e.Fault, "driver"), e.Fault == "crash", e.Fault == "exit", e.Fault == "kill":
			node = scenario + " driver"
		}
		groups[node] = append(groups[node], e.Example)
	}
	printed := regexp.MustCompile(`^Within \S+: (\w+)\{(.*)\} (.*)\n$`)
	for name, examples := range groups {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			where, _, _ := strings.Cut(name, " ")
			begin := startPods
			if where == "radeon" { // a workstation
				begin = start
			}
			n := begin(t, where, nil, "--podresources.interval=1s",
				configured(t, "sources:", "  nvidia: {slow_interval: 1s, timeout: 2s}"))
			source := "nvidia"
			if strings.HasSuffix(name, " amd") {
				source = "amd"
			}
			healthy := []string{kernelLogRead, `^accel_source_up\{reason="",source="` + source + `"\} 1$`, `^accel_device_health\{.*state="healthy"\} 1$`, `!^accel_device_health\{.*state="healthy"\} 0$`}
			if where != "radeon" {
				healthy = append(healthy, `^accel_podmap_state\{state="fresh"\} 1$`)
			}
			n.until(healthy...)
			for _, example := range examples {
				switch fault, _, _ := strings.Cut(example, " "); fault {
				case "xid", "event", "mig", "recovery-action":
					n.watchEvents() // the fault before it may have ended the registration
				}
				out := n.sim(append([]string{"inject"}, strings.Fields(example)...)...)
				m := printed.FindStringSubmatch(out)
				if m == nil {
					t.Fatalf("%s printed %q", example, out)
				}
				series, value := `^`+m[1]+`\{`, ` `+regexp.QuoteMeta(m[3])+`$`
				for _, label := range regexp.MustCompile(`\w+="[^"]*"`).FindAllString(m[2], -1) {
					series += `(.*,)?` + regexp.QuoteMeta(label)
				}
				switch m[3] {
				case "> 0":
					value = ` [1-9].*$`
				case "absent":
					series, value = "!"+series, ""
				}
				n.until(series + `.*` + value)
				n.sim("clear")
				if !strings.HasPrefix(example, "aer ") { // which degrades for an hour
					n.until(healthy...)
				}
			}
		})
	}
}

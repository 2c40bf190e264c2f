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
	probeXid = regexp.MustCompile(`(?m)^accel_gpu_xid_errors_total\{device="([^"]+)",xid="43"\} (\d+)$`)
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
	n := startOn(t, state, append(flags, "--baseline.file="+file)...)
	n.until(`^accel_drift\{.*component="driver".*\} 0$`, `^accel_drift\{.*device="`+n3000+`".*\} 0$`, `!^accel_drift\{.*\} 1$`)
	wrong := regexp.MustCompile(`(?m)^( +)approved:`).ReplaceAllString(printed, "${1}aproved:")
	writeFile(t, file, wrong)
	n.log.await(regexp.MustCompile(`Configuration rejected.*baseline\.yml:\d+: .*aproved: unknown key`))
	n.until(`^accel_config_last_reload_successful 0$`, `^accel_drift\{.*component="driver".*\} 0$`)
	other := regexp.MustCompile(`driver: .*`).ReplaceAllString(printed, `driver: ["550.54.15"]`)
	writeFile(t, file, other)
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
		case strings.HasPrefix(e.Fault, "amd-"), e.Fault == "bus-loss": // the card's tree goes
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
	printed := regexp.MustCompile(`^Within \S+: (\w+)\{(.*)\} ([^;]*).*\n$`)
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

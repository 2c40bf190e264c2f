package main

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
)

// compatLines matches series of dcgm-exporter's families and their HELP and TYPE
// lines.
var compatLines = regexp.MustCompile(`^(# (HELP|TYPE) )?(DCGM_|accel_compat_)`)

func compatPage(page string) string {
	var b strings.Builder
	for line := range strings.Lines(page) {
		if compatLines.MatchString(line) {
			b.WriteString(line)
		}
	}
	return b.String()
}

// counterFile writes a counters file.
func counterFile(t *testing.T, rows ...string) string {
	t.Helper()
	return tempFile(t, "counters.csv", strings.Join(rows, "\n")+"\n")
}

// TestGoldenCompat compares the families of dcgm-exporter with golden pages, for
// the default fields and for a counters file. The node has whole GPUs, a GPU
// with MIG devices, and a GPU that two pods share.
func TestGoldenCompat(t *testing.T) {
	t.Parallel()
	for name, args := range map[string][]string{
		"compat":      {"--compat.hostname=node-1"},
		"compat-user": {"--compat.hostname=node-1", "--collectors=testdata/counters.csv"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := startPods(t, scenario, []string{"--frozen=600"}, append(args, "--compat.dcgm-exporter")...)
			n.until(`^accel_podmap_state\{state="fresh"\} 1$`)
			settleAs(n, scenario+"."+name+".metrics", compatPage)
		})
	}
}

// TestCompatArguments checks that the exporter starts with flags of
// dcgm-exporter, and logs each flag without effect once.
func TestCompatArguments(t *testing.T) {
	t.Parallel()
	file := counterFile(t, "DCGM_FI_DEV_GPU_TEMP, gauge, Heat", "DCGM_FI_DEV_PLATFORM_TRAY_INDEX, gauge, Tray", "DCGM_FI_DEV_SERIAL, label, Serial")
	n := start(t, scenario, []string{"--frozen=600"}, "--compat.dcgm-exporter", "-f", file, "-k=false", "-n", "--kubernetes-virtual-gpus", "--dump-enabled")
	settle(n)
	good := func(page string) bool {
		page = compatPage(page)
		return strings.Contains(page, "# HELP DCGM_FI_DEV_GPU_TEMP Heat\n") && strings.Count(page, "\nDCGM_FI_DEV_GPU_TEMP{") == 8 &&
			strings.Contains(page, `DCGM_FI_DEV_SERIAL="1650000000001"`) && !strings.Contains(page, "hostname") &&
			strings.Contains(page, `accel_compat_field_skipped{field="DCGM_FI_DEV_PLATFORM_TRAY_INDEX",reason="no_source"} 1`)
	}
	if page := n.rounds(good); !good(page) {
		t.Error(compatPage(page))
	}
	log := n.log.String()
	for text, times := range map[string]int{
		"have no effect": 1, "--kubernetes-virtual-gpus: not needed": 1, "--dump-enabled: /debug/state": 1,
		"DCGM_FI_DEV_PLATFORM_TRAY_INDEX (no_source)": 1,
	} {
		if strings.Count(log, text) != times {
			t.Errorf("%q is not %d times in the log:\n%s", text, times, log)
		}
	}
}

// TestFieldsReload checks that a changed counters file is applied while the page
// is scraped, and that an invalid file is rejected with line and column.
func TestFieldsReload(t *testing.T) {
	t.Parallel()
	file := counterFile(t, "DCGM_FI_DEV_GPU_TEMP, gauge, Heat")
	n := start(t, scenario, nil, "--compat.dcgm-exporter", "--dcgm.fields="+file, "--web.enable-lifecycle")
	n.until(`^DCGM_FI_DEV_GPU_TEMP\{`, `!^DCGM_FI_DEV_SM_CLOCK\{`)
	// Each page has either the old rows or the new ones.
	stop, ended := make(chan struct{}), make(chan error, 1)
	go func() {
		for {
			select {
			case <-stop:
				ended <- nil
				return
			default:
			}
			if code, page := n.get("/metrics"); code != 200 || strings.Contains(page, "\nDCGM_FI_DEV_GPU_TEMP{") == strings.Contains(page, "\nDCGM_FI_DEV_SM_CLOCK{") {
				ended <- fmt.Errorf("status %d, %.300s", code, compatPage(page))
				<-stop
				return
			}
		}
	}()
	for i := range 10 {
		row := []string{"DCGM_FI_DEV_SM_CLOCK, gauge, Clock", "DCGM_FI_DEV_GPU_TEMP, gauge, Heat"}[i%2]
		writeFile(t, file, row)
		if code, body := n.post("/-/reload"); code != 200 {
			t.Errorf("reload: %d %s", code, body)
		}
	}
	close(stop)
	if err := <-ended; err != nil {
		t.Error(err)
	}
	writeFile(t, file, "DCGM_FI_DEV_SM_CLOCK, gauge, Clock\nDCGM_FI_DEV_SM_CLCK, gauge, Clock\n")
	if code, body := n.post("/-/reload"); code == 200 || !strings.Contains(body, `counters.csv:2:1: field "DCGM_FI_DEV_SM_CLCK"`) {
		t.Errorf("reload of an invalid file: %d %s", code, body)
	}
	n.until(`^accel_config_last_reload_successful 0$`, `^DCGM_FI_DEV_GPU_TEMP\{`, `!^DCGM_FI_DEV_SM_CLOCK\{`)
	// A change is detected without a request.
	writeFile(t, file, "DCGM_FI_DEV_POWER_USAGE, gauge, Power\n")
	n.until(`^accel_config_last_reload_successful 1$`, `^DCGM_FI_DEV_POWER_USAGE\{`, `!^DCGM_FI_DEV_GPU_TEMP\{`)
}

// TestCompatOfDCGM checks the values that only DCGM has: fields without another
// source, switches and their links, CPUs and their cores. A row that is added to
// the file is read from DCGM.
func TestCompatOfDCGM(t *testing.T) {
	t.Parallel()
	for scenario, want := range map[string][]string{
		"hgx-nvswitch": {
			`^DCGM_FI_DEV_NVSWITCH_TEMPERATURE_CURRENT\{hostname="n1",nvswitch="nvswitch\d+"\} \d+$`,
			`^DCGM_FI_DEV_NVSWITCH_LINK_FATAL_ERRORS\{hostname="n1",nvlink="\d+",nvswitch="nvswitch\d+"\} 0$`,
			`^DCGM_FI_DEV_RELIABILITY_VIOLATION\{DCGM_FI_DEV_BRAND=".+",UUID="GPU-.*",device="nvidia\d",gpu="\d",hostname="n1",`,
		},
		"grace": {
			`^DCGM_FI_DEV_CPU_UTIL_TOTAL\{cpu="\d+",cpucore="\d+",hostname="n1"\} `,
			`^DCGM_FI_DEV_CPU_POWER_UTIL_CURRENT\{cpu="\d+",hostname="n1"\} `,
			`!^DCGM_FI_DEV_POWER_USAGE\{cpu`,
		},
	} {
		t.Run(scenario, func(t *testing.T) {
			t.Parallel()
			rows := []string{
				"DCGM_FI_DEV_NVSWITCH_TEMPERATURE_CURRENT, gauge, x", "DCGM_FI_DEV_NVSWITCH_LINK_FATAL_ERRORS, counter, x",
				"DCGM_FI_DEV_RELIABILITY_VIOLATION, counter, x", "DCGM_FI_DEV_BRAND, label, x", "DCGM_FI_DEV_POWER_USAGE, gauge, x",
				"DCGM_FI_DEV_CPU_UTIL_TOTAL, gauge, x", "DCGM_FI_DEV_CPU_POWER_UTIL_CURRENT, gauge, x",
			}
			file := counterFile(t, rows...)
			n := startDCGM(t, scenario, nil, "--dcgm.embedded", "--compat.dcgm-exporter", "--compat.hostname=n1", "--dcgm.fields="+file)
			n.until(append(want, dcgmUp)...)
			writeFile(t, file, strings.Join(append(rows, "DCGM_FI_DEV_LOW_UTIL_VIOLATION, counter, x"), "\n"))
			n.until(`^DCGM_FI_DEV_LOW_UTIL_VIOLATION\{.*UUID="GPU-`)
		})
	}
}

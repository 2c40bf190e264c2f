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
		"compat":      {"--kubernetes.node=node-1"},
		"compat-user": {"--kubernetes.node=node-1", "--collectors=testdata/counters.csv"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := startPods(t, scenario, []string{"--frozen=600"}, append(args, "--compat.dcgm-exporter")...)
			n.until(`^accel_podmap_state\{state="fresh"\} 1$`)
			settleAs(n, scenario+"."+name+".metrics", compatPage)
		})
	}
}

// TestFieldsReload checks that a changed counters file is applied while the page
// is scraped, and that an invalid file is rejected with line and column.
func TestFieldsReload(t *testing.T) {
	t.Parallel()
	file := counterFile(t, "DCGM_FI_DEV_GPU_TEMP, gauge, Heat")
	n := start(t, scenario, nil, "--compat.dcgm-exporter", "--dcgm.fields="+file)
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
		n.until("^" + strings.Split(row, ",")[0] + `\{`)
	}
	close(stop)
	if err := <-ended; err != nil {
		t.Error(err)
	}
	writeFile(t, file, "DCGM_FI_DEV_SM_CLOCK, gauge, Clock\nDCGM_FI_DEV_MEM_CLOCK, meter, Clock\n")
	n.log.await(regexp.MustCompile(`counters\.csv:2:24: type .*meter`))
	n.until(`^accel_config_last_reload_successful 0$`, `^DCGM_FI_DEV_GPU_TEMP\{`, `!^DCGM_FI_DEV_SM_CLOCK\{`)
	// An unknown field costs only its row.
	writeFile(t, file, "DCGM_FI_DEV_POWER_USAGE, gauge, Power\nDCGM_FI_DEV_SM_CLCK, gauge, Clock\n")
	n.until(`^accel_config_last_reload_successful 1$`, `^DCGM_FI_DEV_POWER_USAGE\{`, `^accel_compat_field_skipped\{field="DCGM_FI_DEV_SM_CLCK",reason="unknown"\} 1$`, `!^DCGM_FI_DEV_GPU_TEMP\{`)
}

package main

import (
	"encoding/json"
	"strings"
	"testing"
)

// series returns the number of series that /debug/series counts.
func (n *node) series() (served, standard, full int) {
	n.t.Helper()
	var answer seriesJSON
	_, body := n.get("/debug/series")
	if err := json.Unmarshal([]byte(body), &answer); err != nil {
		n.t.Fatal(err)
	}
	for _, u := range answer.Families {
		if u.Full < u.Standard {
			n.t.Errorf("%s: %d series at full detail, %d at standard", u.Family, u.Full, u.Standard)
		}
		served += u.Served
		standard += u.Standard
		full += u.Full
	}
	return served, standard, full
}

// onPage counts the series of a page.
func onPage(page string) int {
	n := 0
	for line := range strings.Lines(page) {
		if !strings.HasPrefix(line, "#") {
			n++
		}
	}
	return n
}

// TestSeries: the command lists what the page has, and what the other level of
// detail would have.
func TestSeries(t *testing.T) {
	t.Parallel()
	n := startPods(t, scenario, []string{"--frozen=600"}, configured(t, "metrics: {detail: standard, drop: [accel_energy_joules_total]}"))
	n.until(`^accel_podmap_state\{state="fresh"\} 1$`)
	settle(n)
	var have, served, standard, full int
	good := func(page string) bool {
		have = onPage(page)
		served, standard, full = n.series()
		return served >= have && served <= have+10 // requests for the page add series of the process
	}
	if page := n.rounds(good); !good(page) {
		t.Errorf("%d series are listed, %d are on the page", served, have)
	}
	if standard <= served || full < 2*standard {
		t.Errorf("served %d, standard %d, full %d", served, standard, full)
	}
	// The bar of a node with eight GPUs and its kubelet.
	if standard > 1100 {
		t.Errorf("%d series at --metrics.detail=standard, at most 1100 are wanted", standard)
	}
	out, _, err := outcome(t.Context(), "series", "--url="+n.url)
	if err != nil || !strings.HasSuffix(out, "all (detail in force: standard)\n") || !strings.Contains(out, "accel_energy_joules_total") {
		t.Errorf("the list: %v\n%s", err, out)
	}
	if out, _, err := outcome(t.Context(), "series", "--url="+n.url, "accel_power_watts"); err != nil || strings.Count(out, "accel_") != 1 {
		t.Errorf("one family: %v\n%s", err, out)
	}
	if _, _, err := outcome(t.Context(), "series", "--url="+n.url, "accel_powr"); err == nil || !strings.Contains(err.Error(), "accel_powr") {
		t.Errorf("no family: %v", err)
	}
}

// TestAttention: an ill device has all its series at --metrics.detail=standard, its
// neighbours do not.
func TestAttention(t *testing.T) {
	t.Parallel()
	n := start(t, scenario, nil, configured(t, "metrics: {detail: standard}"))
	n.until(`^accel_device_health\{device="GPU-.*state="healthy"\} 1$`, kernelLogRead, `!^accel_nvlink_up\{`)
	n.sim("inject", "xid", "48", "2")
	page := n.until(`^accel_device_health\{.*state="failed"\} 1$`, `^accel_nvlink_up\{`, `^accel_device_action\{action="none".* 0$`)
	ill := map[string]bool{}
	for line := range strings.Lines(page) {
		if strings.HasPrefix(line, "accel_nvlink_up{") {
			_, rest, _ := strings.Cut(line, `device="`)
			id, _, _ := strings.Cut(rest, `"`)
			ill[id] = true
		}
	}
	if len(ill) != 1 {
		t.Errorf("links of %d devices are on the page, those of the ill one are wanted", len(ill))
	}
}

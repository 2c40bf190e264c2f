// Package compare compares the output of "nvidia-smi -q -x" with a metrics page of
// accel-exporter on the same machine, field by field. fields.tsv lists the fields, and
// device.sh captures both, and more, on a machine with GPUs.
package compare

import (
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// pages has the page of a scenario with the board of each capture. The others have a
// page of the exporter beside them, of the same machine and moment.
var pages = map[string]string{
	"qx-h100.xml": "h100-8", "qx-b200.xml": "b200-8", "qx-gb200.xml": "gb200-4", "qx-a100.xml": "a100", "qx-l40s.xml": "l40s", "qx-t4.xml": "t4",
}

// folder has the captures: NAME.xml, and the page of the same moment in NAME.metrics.
var folder = flag.String("captures", "../../fixtures/captures", "folder with the captures to compare")

// expectation is a line of testdata/expected.tsv.
type expectation struct {
	capture, reason string
	field           *regexp.Regexp
	seen            bool
}

// TestCaptures: a page has the values of the machine, and the simulated boards the values of
// the captured boards, except for the differences in testdata/expected.tsv, each with its reason.
func TestCaptures(t *testing.T) {
	data, err := os.ReadFile("testdata/expected.tsv")
	if err != nil {
		t.Fatal(err)
	}
	var expected []*expectation
	for line := range strings.Lines(string(data)) {
		if c := strings.Split(strings.TrimSpace(line), "\t"); len(c) == 3 {
			expected = append(expected, &expectation{c[0], c[2], regexp.MustCompile(c[1]), false})
		}
	}
	captures, err := filepath.Glob(filepath.Join(*folder, "*.xml"))
	if err != nil || len(captures) == 0 {
		t.Fatalf("no captures: %v", err)
	}
	for _, path := range captures {
		capture := filepath.Base(path)
		page := strings.TrimSuffix(path, ".xml") + ".metrics"
		if scenario := pages[capture]; scenario != "" {
			page = "../../cmd/accel-exporter/testdata/golden/" + scenario + ".metrics"
		}
		xml, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		results, err := compare(xml, text)
		if err != nil {
			t.Errorf("%s: %v", capture, err)
		}
		for _, r := range results {
			if r.verdict != differs && r.verdict != absentHere && r.verdict != absentThere {
				continue
			}
			known := false
			for _, e := range expected {
				if m, _ := filepath.Match(e.capture, capture); m && e.field.MatchString(r.gpu+" "+r.field) {
					e.seen, known = true, true
				}
			}
			if !known {
				t.Errorf("%s: GPU %s: %s is %q, %s is %q: %s", capture, r.gpu, r.field, r.xml, r.series, r.value, r.verdict)
			}
		}
	}
	for _, e := range expected {
		if !e.seen && *folder == flag.Lookup("captures").DefValue {
			t.Errorf("expected.tsv: %s %s: no difference of this kind is left", e.capture, e.field)
		}
	}
}

const machine = `<?xml version="1.0" ?>
<nvidia_smi_log>
	<driver_version>580.105.08</driver_version>
	<gpu id="00000000:53:00.0">
		<product_architecture>Ada Lovelace</product_architecture>
		<uuid>GPU-1</uuid>
		<pci><pci_bus_id>00000000:53:00.0</pci_bus_id><replay_counter>3</replay_counter></pci>
		<gpu_recovery_action>Drain and Reset</gpu_recovery_action>
		<performance_state>P2</performance_state>
		<fan_speed>N/A</fan_speed>
		<fb_memory_usage><total>81559 MiB</total><used>Unknown Error</used></fb_memory_usage>
		<utilization><gpu_util>50 %</gpu_util></utilization>
		<ecc_mode><current_ecc>Enabled</current_ecc></ecc_mode>
		<ecc_errors><volatile><sram_uncorrectable_parity>2</sram_uncorrectable_parity>
			<sram_uncorrectable_secded>3</sram_uncorrectable_secded></volatile></ecc_errors>
		<temperature><gpu_temp_tlimit>58 C</gpu_temp_tlimit><gpu_temp_max_tlimit_threshold>-8 C</gpu_temp_max_tlimit_threshold></temperature>
		<gpu_power_readings><instant_power_draw>68.92 W</instant_power_draw></gpu_power_readings>
		<clocks_event_reasons_counters><clocks_event_reasons_counters_sync_boost>7000000 us</clocks_event_reasons_counters_sync_boost></clocks_event_reasons_counters>
		<processes>
			<process_info><type>C</type></process_info>
			<process_info><type>C+G</type></process_info>
		</processes>
		<something_new>5 parsecs</something_new>
	</gpu>
</nvidia_smi_log>`

const metrics = `# TYPE accel_device_info gauge
accel_driver_info{vendor="nvidia",version="580.105.08"} 1
accel_device_info{architecture="ada",class="gpu",device="GPU-2",pci_address="0000:53:00.0",profile="",vendor="nvidia"} 1
accel_device_info{class="gpu",device="MIG-1",pci_address="0000:53:00.0",profile="1g.10gb",vendor="nvidia"} 1
accel_gpu_recovery_action{action="none",device="GPU-2"} 0
accel_gpu_recovery_action{action="drain_and_reset",device="GPU-2"} 1
accel_gpu_performance_state{device="GPU-2"} 2
accel_memory_total_bytes{device="GPU-2"} 8.5520809984e+10
accel_memory_used_bytes{device="GPU-2"} 5
accel_utilization_ratio{device="GPU-2",engine="compute"} 0.8
accel_ecc_mode_enabled{device="GPU-2",when="current"} 0
accel_ecc_errors_total{device="GPU-2",location="sram",severity="uncorrected"} 5
accel_temperature_margin_celsius{device="GPU-2",limit="shutdown"} 63
accel_power_watts{device="GPU-2"} 68.921
accel_throttle_seconds_total{device="GPU-2",reason="sync_boost"} 7
accel_processes{device="GPU-2",type="compute"} 2
`

func TestCompare(t *testing.T) {
	want := map[string]verdict{
		"fan_speed":             neither,
		"/driver_version":       equal,
		"product_architecture":  equal,
		"uuid":                  differs,
		"pci/pci_bus_id":        equal,
		"pci/replay_counter":    absentHere,
		"gpu_recovery_action":   equal,
		"performance_state":     equal,
		"fb_memory_usage/total": equal,
		"fb_memory_usage/used":  absentThere,
		"utilization/gpu_util":  differs,
		"ecc_mode/current_ecc":  differs,
		"ecc_errors/volatile/sram_uncorrectable_parity + ecc_errors/volatile/sram_uncorrectable_secded": equal,
		"temperature/gpu_temp_tlimit - temperature/gpu_temp_max_tlimit_threshold":                       near,
		"gpu_power_readings/instant_power_draw":                                                         equal,
		"clocks_event_reasons_counters/clocks_event_reasons_counters_sync_boost":                        equal,
		"#processes/process_info/type=C,C+G":                                                            equal,
		"#processes/process_info/type=G,C+G":                                                            absentHere,
		"#processes/process_info/type=M+C":                                                              absentHere,
		"something_new":                                                                                 noSeries,
	}
	results, err := compare([]byte(machine), []byte(metrics))
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range results {
		if v := want[r.field]; v != r.verdict {
			t.Errorf("%s: %q and %q: %s, want %s", r.field, r.xml, r.value, r.verdict, v)
		}
		delete(want, r.field)
	}
	for field := range want {
		t.Errorf("%s is not compared", field)
	}
}

// TestMatch: a GPU that only one side has differs.
func TestMatch(t *testing.T) {
	other := strings.ReplaceAll(metrics, "53:00.0", "64:00.0")
	results, err := compare([]byte(machine), []byte(other))
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, r := range results {
		if r.field == "gpu" && r.verdict == differs {
			n++
		}
	}
	if n != 2 {
		t.Errorf("%d GPUs without the other side, want 2: %v", n, results)
	}
}

func TestShortAddress(t *testing.T) {
	for long, want := range map[string]string{
		"00000000:53:00.0": "0000:53:00.0", "0000:0F:00.0": "0000:0f:00.0", "00010000:01:00.0": "00010000:01:00.0", "": "",
	} {
		if got := shortAddress(long); got != want {
			t.Errorf("%q: %q, want %q", long, got, want)
		}
	}
}

func FuzzCompare(f *testing.F) {
	f.Add([]byte(machine), []byte(metrics))
	f.Add([]byte(`<a><gpu><b/></gpu></a>`), []byte(`accel_device_info{device="\"",x="`+"\n"))
	f.Fuzz(func(t *testing.T, xml, text []byte) {
		results, err := compare(xml, text)
		if err == nil && len(results) == 0 {
			t.Error("neither a result nor an error")
		}
	})
}

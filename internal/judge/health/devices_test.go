package health_test

import (
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/accel-exporter/accel-exporter/collector"
	"github.com/accel-exporter/accel-exporter/collector/amd"
	"github.com/accel-exporter/accel-exporter/collector/fpga"
	"github.com/accel-exporter/accel-exporter/collector/sysfs"
	"github.com/accel-exporter/accel-exporter/internal/judge/health"
	"github.com/accel-exporter/accel-exporter/internal/sim/simtest"
)

// device returns a device that answers.
func device(id string, class collector.Class, now time.Time, facts ...fact) collector.Device {
	d := collector.Device{ID: id, Class: class, Sampled: now}
	up(&d)
	for _, f := range facts {
		f(&d)
	}
	return d
}

func childOf(parent string) fact { return func(d *collector.Device) { d.Parent = parent } }
func at(pci string, functions ...string) fact {
	return func(d *collector.Device) { d.PCI, d.Functions = pci, functions }
}

// verdicts judges one Snapshot and returns the verdict of each device.
func verdicts(t *testing.T, j *health.Judge, s *collector.Snapshot) map[string]string {
	t.Helper()
	j.Judge(s)
	consistent(t, s)
	out := map[string]string{}
	for i := range s.Devices {
		out[s.Devices[i].ID] = verdict(&s.Devices[i])
	}
	return out
}

func same(t *testing.T, got, want map[string]string) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestPartitionsInherit(t *testing.T) {
	j := health.New(health.Builtin(), health.Options{})
	// Sorted by ID, so a partition can come before its parent.
	node := func(facts ...fact) []collector.Device {
		child := device("A-child", collector.GPU, start, append(facts, childOf(gpuID))...)
		return []collector.Device{
			child, gpu(start), device("GPU-2", collector.GPU, start), device("Z-orphan", collector.GPU, start, childOf("GPU-9")),
		}
	}
	same(t, verdicts(t, j, snapshot(start, news(xid(95)), node()...)), map[string]string{
		"A-child": "failed reset xid_95", gpuID: "failed reset xid_95", "GPU-2": "healthy none", "Z-orphan": "healthy none",
	})
	same(t, verdicts(t, j, snapshot(start, nil, node(set(collector.ECCErrors, 1, "uncorrected", "sram"))...)), map[string]string{
		"A-child": "failed reset xid_95 ecc_uncorrected", gpuID: "failed reset xid_95", "GPU-2": "healthy none", "Z-orphan": "healthy none",
	})
	both := node(set(collector.RowRemapFailed, 1))
	both[1] = gpu(start, set(collector.RowRemapFailed, 1), set(collector.RowRemapPending, 1))
	same(t, verdicts(t, j, snapshot(start, nil, both[:2]...)), map[string]string{
		"A-child": "failed replace xid_95 row_remap_failed row_remap_pending", gpuID: "failed replace xid_95 row_remap_failed row_remap_pending",
	})
	devices := node(unseen)
	unseen(&devices[1])
	same(t, verdicts(t, j, snapshot(start, news(event(collector.EventDriverLoaded, of(""))), devices...)), map[string]string{
		"A-child": "failed reset xid_95 no_answer", gpuID: "failed reset xid_95 no_answer", "GPU-2": "healthy none", "Z-orphan": "healthy none",
	})
}

// TestOtherDriver: a load of NVIDIA's driver ends no fault of another vendor's device.
func TestOtherDriver(t *testing.T) {
	j := health.New(health.Builtin(), health.Options{})
	amd := gpu(start, family("accel_ecc_errors_total", 0, "corrected", "dram"))
	amd.Vendor = "amd"
	ofNVIDIA := event(collector.EventDriverLoaded, of(""))
	for i, news := range [][]collector.Event{news(event(collector.EventBootError)), news(ofNVIDIA), nil} {
		same(t, verdicts(t, j, snapshot(start.Add(time.Duration(i)*time.Second), news, amd)), map[string]string{gpuID: "failed reboot event_boot_error"})
	}
}

// TestSameFault: a fault that the kernel log and a reading show is one reason, and ends
// with the reading. Without a reading the event counts until a reset.
func TestSameFault(t *testing.T) {
	const condition, reported = "failed reset fpga_firewall_tripped", "failed reset event_firewall_tripped"
	sound := family("accel_fpga_card_state", 0, "reset_required")
	tripped := func(v float64) fact { return family("accel_fpga_firewall_tripped", v, "axi0") }
	for _, tc := range []struct {
		name  string
		reads []fact
		want  []string
	}{
		{"a reading", []fact{tripped(0), tripped(1), tripped(1), tripped(0)}, []string{reported, condition, condition, "healthy none"}},
		{"none", []fact{sound, sound, sound, sound}, []string{reported, reported, reported, reported}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			j := health.New(health.Builtin(), health.Options{})
			for i, read := range tc.reads {
				var news []collector.Event
				if i == 0 {
					news = append(news, event(collector.EventFirewall))
				}
				now := start.Add(time.Duration(i) * 20 * time.Second)
				same(t, verdicts(t, j, snapshot(now, news, device(gpuID, collector.FPGA, now, read))), map[string]string{gpuID: tc.want[i]})
			}
		})
	}
}

// TestEventBeforeTheDevice: an event waits for its device.
func TestEventBeforeTheDevice(t *testing.T) {
	j := health.New(health.Builtin(), health.Options{})
	verdicts(t, j, snapshot(start, news(xid(119, past(time.Hour)))))
	same(t, verdicts(t, j, snapshot(start, nil, gpu(start))), map[string]string{gpuID: "failed reset xid_119"})
}

// TestFaultsGoWithTheBoard: a board that replaces another one in its slot does not
// have the faults of that board.
func TestFaultsGoWithTheBoard(t *testing.T) {
	j := health.New(health.Builtin(), health.Options{})
	same(t, verdicts(t, j, snapshot(start, news(xid(119)), gpu(start))), map[string]string{gpuID: "failed reset xid_119"})
	other := device("GPU-2", collector.GPU, start, at(gpuAt))
	same(t, verdicts(t, j, snapshot(start, nil, other)), map[string]string{"GPU-2": "healthy none"})
	same(t, verdicts(t, j, snapshot(start, nil, gpu(start))), map[string]string{gpuID: "healthy none"})
}

func TestSwitches(t *testing.T) {
	const at = "0000:c1:00.0"
	j := health.New(health.Builtin(), health.Options{})
	sxid := func(code uint64, s string) collector.Event {
		return event(collector.EventSXid, of(at), sub(s), func(e *collector.Event) { e.Code = code })
	}
	unlisted := func() collector.Device { return collector.Device{ID: at, PCI: at, Class: collector.Switch} }
	for _, step := range []struct {
		e    collector.Event
		want string
	}{
		{sxid(12028, "nonfatal"), "unknown none no_answer"},
		{sxid(10004, "fatal"), "failed inspect sxid_10004 no_answer"},
		{sxid(10005, "nonfatal"), "unknown none no_answer"},
		{sxid(54321, "nonfatal"), "unknown inspect no_answer sxid_unknown"},
		{sxid(11001, "nonfatal"), "unknown reset no_answer sxid_11001 sxid_unknown"},
		{sxid(11001, "fatal"), "failed reset sxid_11001 no_answer sxid_unknown"}, // a later one is fatal
		{sxid(54321, "fatal"), "failed reset sxid_11001 sxid_unknown no_answer"},
		{sxid(22003, ""), "failed reset sxid_11001 sxid_22003 sxid_unknown no_answer"},
	} {
		same(t, verdicts(t, j, snapshot(start, news(step.e), unlisted())), map[string]string{at: step.want})
	}
}

func TestFPGAs(t *testing.T) {
	const firewall, latched, state = "accel_fpga_firewall_tripped", "accel_fpga_error_latched", "accel_fpga_manager_state"
	const card = "accel_fpga_card_state"
	sound := family(card, 0, "reset_required")
	for _, c := range []struct {
		name  string
		facts []fact
		after time.Duration
		want  string
	}{
		{"sound", facts(family(firewall, 0, "0"), family(latched, 0, "fme", "fabric"), family(state, 1, "fpga0", "operating"), family("accel_fpga_memory_calibrated", 1, "0")), hour, "healthy none"},
		{"a controller that is no longer ready", facts(family("accel_fpga_controller_ready", 0, "sc")), 2 * minute, "degraded inspect fpga_controller_not_ready"},
		{"stopped clocks", facts(family("accel_clock_hertz", 0, "kernel")), 0, "failed reset fpga_clocks_stopped"},
		{"a clock of a GPU that sleeps", facts(family("accel_clock_hertz", 0, "sm"), sound), hour, "healthy none"},
		{"rail, at first", facts(family("accel_fpga_voltage_volts", 4.1, "3.3v"), family("accel_fpga_voltage_limit_volts", 3.9, "3.3v", "critical")), 9 * second, "healthy none"},
		{"rail above its limit", facts(family("accel_fpga_voltage_volts", 4.1, "3.3v"), family("accel_fpga_voltage_limit_volts", 3.9, "3.3v", "critical")), 10 * second, "degraded inspect fpga_voltage_critical"},
		{"rail below its limit", facts(family("accel_fpga_voltage_volts", 9.2, "12v"), family("accel_fpga_voltage_limit_volts", 10.49, "12v", "low_warning")), minute, "degraded inspect fpga_voltage_low"},
		{"rail below its critical limit", facts(family("accel_fpga_voltage_volts", 8.9, "12v"), family("accel_fpga_voltage_limit_volts", 9, "12v", "low_critical")), 10 * second, "degraded inspect fpga_voltage_low_critical"},
		{"power above its last threshold", facts(family("accel_power_watts", 310), family("accel_fpga_power_threshold_watts", 300, "fatal")), 10 * second, "degraded inspect fpga_power_fatal"},
		{"rail within its limit", facts(family("accel_fpga_current_amperes", 9, "12v"), family("accel_fpga_current_limit_amperes", 9.5, "12v", "critical")), hour, "healthy none"},
		{"current above its limit", facts(family("accel_fpga_current_amperes", 9, "12v"), family("accel_fpga_current_limit_amperes", 6.045, "12v", "critical")), 10 * second, "degraded inspect fpga_current_critical"},
		{"power above its threshold", facts(family("accel_power_watts", 240), family("accel_fpga_power_threshold_watts", 225, "critical")), 10 * second, "degraded inspect fpga_power_critical"},
		{"a sensor above the last limit of the firmware", facts(family("accel_temperature_celsius", 108, "Device"), family("accel_temperature_limit_celsius", 107, "Device", "fatal"), sound), 10 * second, "failed inspect temperature_fatal"},
		{"a card that will power down", facts(family("accel_fpga_sensor_alarm", 1, "PCB", "fatal")), 10 * second, "degraded inspect fpga_sensor_critical"},
		{"injected errors", facts(family(latched, 1, "fatal", "injected_fatal"), family(latched, 1, "nonfatal", "injected_warning"), family(latched, 1, "inject", "fatal"), sound), hour, "healthy none"},
		{"a firewall that has tripped before", facts(family(latched, 1, "firewall", "3"), sound), hour, "healthy none"},
		{"calibration, at first", facts(family("accel_fpga_memory_calibrated", 0, "0")), 119 * second, "healthy none"},
		{"calibration", facts(family("accel_fpga_memory_calibrated", 0, "0")), 2 * minute, "failed reprogram fpga_memory_not_calibrated"},
		{"loading", facts(family(state, 1, "fpga0", "write")), minute, "healthy none"},
		{"load does not end", facts(family(state, 1, "fpga0", "write")), 2 * minute, "failed inspect fpga_load_stuck"},
		{"being reset", facts(family(card, 1, "offline")), 119 * second, "healthy none"},
		{"reset does not end", facts(family(card, 1, "offline")), 2 * minute, "failed inspect fpga_card_not_ready"},
		{"a card without errors to read", facts(family("accel_fpga_bitstream_loaded", 1, "slot0")), hour, "unknown none no_fault_source"},
		{"a card with nothing but errors of the bus", facts(family("accel_pcie_function_responding", 0)), hour, "failed reboot pci_not_responding no_fault_source"},
		{"a card whose driver is not read", facts(unseen, family("accel_device_seen", 0, "fpga"), family("accel_device_seen", 1, "pcie")), hour, "unknown none no_answer"},
	} {
		t.Run(c.name, func(t *testing.T) {
			j := health.New(health.Builtin(), health.Options{})
			verdicts(t, j, snapshot(start, nil, device("card", collector.FPGA, start, c.facts...)))
			now := start.Add(c.after)
			same(t, verdicts(t, j, snapshot(now, nil, device("card", collector.FPGA, now, c.facts...))), map[string]string{"card": c.want})
		})
	}
}

// TestSourcesOfFaults: a device whose faults no source reports is unknown, with the reason that
// lets a page end only if it never had a source.
func TestSourcesOfFaults(t *testing.T) {
	errors := family("accel_ecc_errors_total", 0, "uncorrected", "gfx")
	bus := family("accel_pcie_aer_reports_total", 0, "0000:63:00.0", "0", "device", "fatal")
	card := family("accel_fpga_card_state", 0, "reset_required")
	for _, c := range []struct {
		name    string
		class   collector.Class
		vendor  string
		reads   [][]fact
		logged  bool
		want    []string
		further string // of a partition
	}{
		{"the driver's counters", collector.GPU, "amd", [][]fact{{errors}, {}}, false, []string{"healthy none", "unknown none no_answer"}, "healthy none"},
		{"counters of the bus", collector.GPU, "amd", [][]fact{{bus}}, false, []string{"healthy none"}, "healthy none"},
		{"the kernel log", collector.GPU, "amd", [][]fact{{}}, true, []string{"healthy none"}, "healthy none"},
		{"nothing, as in a virtual machine", collector.GPU, "amd", [][]fact{{}, {errors}}, false, []string{"unknown none no_fault_source", "healthy none"}, "unknown none no_fault_source"},
		{"of an FPGA the driver's errors", collector.FPGA, "amd", [][]fact{{bus}, {card}, {bus}}, true, []string{"unknown none no_fault_source", "healthy none", "unknown none no_answer"}, ""},
		{"of a GPU of NVIDIA, NVML", collector.GPU, "nvidia", [][]fact{{}}, false, []string{"healthy none"}, "healthy none"},
	} {
		t.Run(c.name, func(t *testing.T) {
			j := health.New(health.Builtin(), health.Options{})
			for i, read := range c.reads {
				now := start.Add(time.Duration(i) * time.Second)
				d := device("card", c.class, now, read...)
				d.Vendor = c.vendor
				part := device("card/0", c.class, now)
				part.Vendor, part.Parent = c.vendor, "card"
				s := snapshot(now, nil, d)
				want := map[string]string{"card": c.want[i]}
				if i == 0 && c.class == collector.GPU {
					s.Devices, want["card/0"] = append(s.Devices, part), c.further
				}
				if c.logged {
					s.Node = append(s.Node, collector.Reading{Metric: collector.KernelLogBegin, Value: 1})
				}
				same(t, verdicts(t, j, s), want)
			}
		})
	}
}

// TestTrees: of the cards of the fixtures, by the files of their drivers alone, only a card
// without errors to read is unknown. The PCI core counts the errors of a Radeon.
func TestTrees(t *testing.T) {
	blind := []string{"aws-f2", "radeon"}
	files, err := filepath.Glob("../../../fixtures/trees/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".txt")
		sys := sysfs.New(simtest.WriteTree(t, simtest.LoadTree(t, name)))
		for _, source := range []collector.Source{amd.New(sys, sysfs.New(t.TempDir()), nil), fpga.New(sys, fpga.Options{PollInterval: -1})} {
			r, err := simtest.Fresh(t, source)
			if err != nil && !errors.Is(err, collector.ErrAbsent) {
				t.Fatal(err)
			}
			for _, d := range r.Devices {
				d.SetBool(collector.DeviceUp, d.Down == "", d.Down)
				got := verdicts(t, health.New(health.Builtin(), health.Options{}), snapshot(time.Now(), nil, d))[d.ID]
				if (got == "unknown none no_fault_source") != slices.Contains(blind, name) || strings.Contains(got, health.NoAnswer) {
					t.Errorf("%s: %s", name, got)
				}
			}
			if err := source.Close(); err != nil {
				t.Error(err)
			}
		}
	}
}

func TestBoot(t *testing.T) {
	j := health.New(health.Builtin(), health.Options{Boot: start.Add(-time.Hour)})
	same(t, verdicts(t, j, snapshot(start, news(
		event(collector.EventDriverLoaded, of(""), past(3*time.Hour)),
		xid(119, past(2*time.Hour)),
		xid(120, past(time.Hour)),
	), gpu(start))), map[string]string{gpuID: "failed reset xid_120"})
}

const maxFaults = 32 // of one device

// TestBounds: the number of faults of a device is bounded. Faults with the severity
// failed are kept.
func TestBounds(t *testing.T) {
	j := health.New(health.Builtin(), health.Options{})
	var storm []collector.Event
	for i := range 4096 {
		if i == 94 {
			continue // it ends 48
		}
		storm = append(storm, xid(uint64(i)))
	}
	verdicts(t, j, snapshot(start, storm[:500], gpu(start)))
	settled := start.Add(2 * time.Second)
	s := snapshot(settled, storm[500:], gpu(settled))
	verdicts(t, j, s)
	v := s.Devices[0].Verdict
	if len(v.Reasons) != maxFaults || v.State != "failed" {
		t.Fatalf("%s with %d reasons", v.State, len(v.Reasons))
	}
	severe := 0
	for code := range uint64(4096) {
		e := xid(code)
		if entry, _ := health.Builtin().Lookup(&e); entry.Severity == health.Failed {
			severe++
		}
	}
	for _, r := range v.Reasons {
		if r.Severity == "failed" {
			severe--
		}
	}
	if severe != 0 {
		t.Errorf("%d codes with the severity failed were dropped", severe)
	}
}

// kind distinguishes Xids from SXids, which have five digits.
func kind(e *health.Entry) collector.EventKind {
	switch {
	case e.Event != "":
		return collector.EventKind(e.Event)
	case e.Code >= 10_000:
		return collector.EventSXid
	}
	return collector.EventXid
}

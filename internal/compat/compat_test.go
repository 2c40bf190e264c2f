package compat_test

import (
	"strings"
	"testing"

	"github.com/accel-exporter/accel-exporter/collector"
	"github.com/accel-exporter/accel-exporter/internal/compat"
	"github.com/accel-exporter/accel-exporter/internal/compat/counters"
)

// h100 is the label set of gpu1 on the node n1.
const h100 = `UUID="` + gpu1 + `",device="nvidia1",gpu="1",hostname="n1",modelName="NVIDIA H100 80GB HBM3",pci_bus_id="00000000:11:00.0"`

// TestDefaults checks that the default pages of dcgm-exporter 4.8 and 4.9 have the same
// values, each in its units.
func TestDefaults(t *testing.T) {
	d := gpu(gpu1, "1").
		set(collector.UtilizationRatio, 0.875, "compute").
		set(collector.EnergyJoules, 12).
		set(collector.ClockHertz, 1.98e9, "sm").
		set(collector.MemoryTotal, 2048<<20).set(collector.MemoryUsed, 1536<<20).
		set(collector.NVLinkTransmitRate, 3e9).set(collector.NVLinkReceiveRate, 1.5e9).
		set(collector.TemperatureCelsius, 61, "gpu")
	labels := func(version string) string { return "{DCGM_FI_" + version + `="580.105.08",` + h100 + "} " }
	for release, want := range map[counters.Release][]string{
		counters.Unstated: {"FB_USED 1536", "GPU_TEMP 61", "GPU_UTIL 88", "NVLINK_BANDWIDTH_TOTAL 4500", "SM_CLOCK 1980", "TOTAL_ENERGY_CONSUMPTION 12000"},
		counters.Release49: {
			"FB_CAPACITY_BYTES 2.147483648e+09", "FB_USED_BYTES 1.610612736e+09", "GPU_ENERGY_JOULES_TOTAL 12", "GPU_TEMP_CELSIUS 61",
			"GPU_UTIL_RATIO 0.875", "NVLINK_THROUGHPUT_BYTES_PER_SECOND 4.5e+09", "SM_CLOCK_HERTZ 1.98e+09",
		},
	} {
		version := "DRIVER_VERSION"
		if release == counters.Release49 {
			version = "SYSTEM_DRIVER_VERSION"
		}
		for i, w := range want {
			name, value, _ := strings.Cut(w, " ")
			want[i] = "DCGM_FI_DEV_" + name + labels(version) + value
		}
		got := page(t, compat.Options{Hostname: "n1", Release: release}, snapshot([]*device{d}, driver), "DCGM_")
		expect(t, got, want...)
	}
}

// TestAbsentIsAbsent checks that a value that was not measured is absent, and
// that accel_compat_field_skipped names the field.
func TestAbsentIsAbsent(t *testing.T) {
	d := gpu(gpu1, "1").set(collector.ComputeMode, 0, "default").set(collector.ComputeMode, 0, "prohibited")
	o := compat.Options{Hostname: "n1", Counters: parseRows(t,
		"DCGM_FI_DEV_GPU_UTIL, gauge, x", "DCGM_FI_DEV_COMPUTE_MODE, gauge, x", "DCGM_FI_DEV_XID_ERRORS, gauge, x",
		"DCGM_FI_DEV_PLATFORM_TRAY_INDEX, gauge, x", "DCGM_FI_DEV_BRAND, label, x", "DCGM_FI_DEV_SERIAL, label, x",
		"DCGM_FI_DEV_ACCOUNTING_DATA, gauge, x", "DCGM_FI_DEV_FB_FREE, summary, x", "DCGM_EXP_CLOCK_EVENTS_COUNT, gauge, x")}
	s := snapshot([]*device{d})
	expect(t, page(t, o, s, "DCGM_"))
	expect(t, page(t, o, s, "accel_compat_"),
		`accel_compat_field_skipped{field="DCGM_EXP_CLOCK_EVENTS_COUNT",reason="derived"} 1`,
		`accel_compat_field_skipped{field="DCGM_FI_DEV_ACCOUNTING_DATA",reason="binary"} 1`,
		`accel_compat_field_skipped{field="DCGM_FI_DEV_BRAND",reason="no_source"} 1`,
		`accel_compat_field_skipped{field="DCGM_FI_DEV_COMPUTE_MODE",reason="not_measured"} 1`,
		`accel_compat_field_skipped{field="DCGM_FI_DEV_FB_FREE",reason="type"} 1`,
		`accel_compat_field_skipped{field="DCGM_FI_DEV_GPU_UTIL",reason="not_measured"} 1`,
		`accel_compat_field_skipped{field="DCGM_FI_DEV_PLATFORM_TRAY_INDEX",reason="no_source"} 1`,
		`accel_compat_field_skipped{field="DCGM_FI_DEV_XID_ERRORS",reason="not_measured"} 1`)
	if got := page(t, o, snapshot(nil), "accel_compat_"); strings.Contains(got, "not_measured") {
		t.Errorf("without a device: %s", got)
	}
	var names []string
	for _, s := range compat.New(o).Unserved() {
		names = append(names, s.Name+" "+s.Reason)
	}
	if got := strings.Join(names, ", "); got != "DCGM_FI_DEV_PLATFORM_TRAY_INDEX no_source, DCGM_FI_DEV_BRAND no_source, DCGM_FI_DEV_ACCOUNTING_DATA binary, DCGM_FI_DEV_FB_FREE type, DCGM_EXP_CLOCK_EVENTS_COUNT derived" {
		t.Error(got)
	}
}

// TestXid checks that the field is the code of the most recent Xid, independent
// of its count.
func TestXid(t *testing.T) {
	o := compat.Options{Hostname: "n1", Counters: parseRows(t, "DCGM_FI_DEV_XID_ERRORS, gauge, x", "DCGM_EXP_XID_ERRORS_TOTAL, counter, x")}
	quiet := func() *device {
		return gpu(gpu1, "1").set(collector.XidErrors, 0, "31").set(collector.XidErrors, 0, "79")
	}
	total := func(xid, v string) string { return "DCGM_EXP_XID_ERRORS_TOTAL{" + h100 + `,xid="` + xid + `"} ` + v }
	expect(t, page(t, o, snapshot([]*device{quiet()}), "DCGM_"),
		total("31", "0"), total("79", "0"), "DCGM_FI_DEV_XID_ERRORS{"+h100+"} 0")
	d := gpu(gpu1, "1").set(collector.XidErrors, 5, "31").set(collector.XidErrors, 1, "79").
		set(collector.XidTimestamp, 1.76e9+100, "31", mig0).set(collector.XidTimestamp, 1.76e9, "79", "")
	expect(t, page(t, o, snapshot([]*device{d}), "DCGM_"),
		total("31", "5"), total("79", "1"), "DCGM_FI_DEV_XID_ERRORS{"+h100+"} 31")
}

// TestHealth checks that the verdict is exported as DCGM's code, and that an
// unknown verdict is absent.
func TestHealth(t *testing.T) {
	o := compat.Options{Counters: parseRows(t, "DCGM_EXP_GPU_HEALTH_STATUS, gauge, x")}
	for state, want := range map[string]string{"healthy": "0", "degraded": "10", "failed": "20", "unknown": ""} {
		d := gpu(gpu1, "1")
		for _, s := range []string{"healthy", "degraded", "failed", "unknown"} {
			v := 0.0
			if s == state {
				v = 1
			}
			d.set(collector.DeviceHealth, v, s)
		}
		got := page(t, o, snapshot([]*device{d}), "DCGM_")
		if want == "" {
			expect(t, got)
			continue
		}
		if !strings.Contains(got, `health_watch="ALL"`) || !strings.HasSuffix(got, "} "+want+"\n") {
			t.Errorf("%s: %q", state, got)
		}
	}
}

// TestHealthOfDCGM checks that each DCGM health watch has a series.
func TestHealthOfDCGM(t *testing.T) {
	d := gpu(gpu1, "1").
		set(collector.DCGMHealth, 0, "pcie", "pass").set(collector.DCGMHealth, 1, "pcie", "warn").set(collector.DCGMHealth, 0, "pcie", "fail").
		set(collector.DCGMHealth, 0, "memory", "pass").set(collector.DCGMHealth, 0, "memory", "warn").set(collector.DCGMHealth, 1, "memory", "fail")
	o := compat.Options{Hostname: "n1", Counters: parseRows(t, "DCGM_EXP_GPU_HEALTH_STATUS, gauge, x")}
	watch := func(name, v string) string {
		return "DCGM_EXP_GPU_HEALTH_STATUS{" + strings.Replace(h100, `hostname`, `health_watch="`+name+`",hostname`, 1) + "} " + v
	}
	expect(t, page(t, o, snapshot([]*device{d}), "DCGM_"), watch("MEM", "20"), watch("PCIE", "10"))
}

// TestLabels checks the labels that each option adds or renames.
func TestLabels(t *testing.T) {
	s := snapshot([]*device{gpu(gpu1, "1").set(collector.TemperatureCelsius, 60, "gpu").allocate("team", "train-0").
		set(collector.FirmwareInfo, 1, "vbios", "96.00")},
		driver, of(collector.PodInfo, "team", "train-0", "uid-1", "Job", "train", "Job", "train"),
		of(collector.PodLabelInfo, "team", "train-0", "app.kubernetes.io/name", "train"),
		of(collector.PodLabelInfo, "team", "train-0", "gpu", "collides"), of(collector.PodLabelInfo, "team", "train-0", "1st", "x"))
	rows := []string{"DCGM_FI_DEV_GPU_TEMP, gauge, x", "DCGM_FI_DRIVER_VERSION, label, x", "DCGM_FI_DEV_SERIAL, label, x", "DCGM_FI_DEV_VBIOS_VERSION, label, x"}
	facts := `DCGM_FI_DEV_SERIAL="1651",DCGM_FI_DEV_VBIOS_VERSION="96.00",DCGM_FI_DRIVER_VERSION="580.105.08",`
	for name, c := range map[string]struct {
		o    compat.Options
		want string
	}{
		"plain":        {compat.Options{Hostname: "n1"}, facts + h100},
		"no host name": {compat.Options{}, facts + strings.Replace(h100, `hostname="n1",`, "", 1)},
		"older host name": {
			compat.Options{Hostname: "n1", HostnameLabel: "Hostname"},
			facts + `Hostname="n1",` + strings.Replace(h100, `hostname="n1",`, "", 1),
		},
		"pods": {
			compat.Options{Hostname: "n1", Pods: true},
			facts + strings.NewReplacer(`device=`, `container="main",device=`, `pci_bus`, `namespace="team",pci_bus`, `:00.0"`, `:00.0",pod="train-0"`).Replace(h100),
		},
		"old names": {
			compat.Options{Pods: true, OldNamespace: true},
			facts + `container_name="main",device="nvidia1",gpu="1",modelName="NVIDIA H100 80GB HBM3",pci_bus_id="00000000:11:00.0",pod_name="train-0",pod_namespace="team",uuid="` + gpu1 + `"`,
		},
		"all of pods": {
			compat.Options{Pods: true, PodUID: true, PodLabels: allLabels, Dashes: true},
			facts + `UUID="` + gpu1 + `",app_kubernetes_io_name="train",container="main",device="nvidia1",gpu="1",label_1st="x",modelName="NVIDIA-H100-80GB-HBM3",namespace="team",pci_bus_id="00000000:11:00.0",pod="train-0",pod_uid="uid-1"`,
		},
	} {
		c.o.Counters = parseRows(t, rows...)
		if got, want := page(t, c.o, s, "DCGM_"), "DCGM_FI_DEV_GPU_TEMP{"+c.want+"} 60\n"; got != want {
			t.Errorf("%s:\n%s\nwant\n%s", name, got, want)
		}
	}
}

// TestOfDCGM checks that DCGM's own values are exported for fields that no other
// source measures, and only for those.
func TestOfDCGM(t *testing.T) {
	value, total, info := collector.DCGMField, collector.DCGMFieldTotal, collector.DCGMFieldInfo
	d := gpu(gpu1, "1").set(collector.TemperatureCelsius, 60, "gpu").
		set(value, 61, "DCGM_FI_DEV_GPU_TEMP_CELSIUS", "", "celsius").
		set(value, 0, "DCGM_FI_DEV_PLATFORM_TRAY_INDEX", "", "").
		set(value, 9, "DCGM_FI_DEV_PLATFORM_TRAY_INDEX", "strange-1", "").
		set(total, 12, "DCGM_FI_DEV_NVLINK_PPCNT_PLR_SYNC_EVENT_TOTAL", "link-3", "").
		set(info, 1, "DCGM_FI_DEV_GPU_BRAND", "Tesla")
	sw := &device{collector.Device{ID: "0000:05:00.0", Class: collector.Switch, Vendor: "nvidia"}}
	sw.set(collector.DeviceInfo, 1, "switch", "nvidia", "NVSwitch", "", "2", "0000:05:00.0", "", "", "", "").
		set(collector.TemperatureCelsius, 41, "switch").
		set(collector.NVLinkErrors, 1, "7", "fatal").
		set(total, 4, "DCGM_FI_DEV_NVSWITCH_LINK_LATENCY_LOW_VC0", "link-7", "")
	cpu := &device{collector.Device{ID: "cpu-0", Class: "cpu", Vendor: "nvidia"}}
	cpu.set(collector.DeviceInfo, 1, "cpu", "nvidia", "Grace", "", "0", "", "", "", "", "").
		set(value, 0.5, "DCGM_FI_DEV_CPU_UTIL_RATIO", "core-11", "ratio").
		set(collector.PowerWatts, 88).set(collector.TemperatureCelsius, 50, "cpu").
		set(collector.CPUUtilization, 0.25, "user").set(collector.CPUUtilization, 0.125, "system")
	o := compat.Options{Counters: parseRows(t,
		"DCGM_FI_DEV_CPU_POWER_UTIL_CURRENT, gauge, x", "DCGM_FI_DEV_CPU_UTIL_TOTAL, gauge, x", "DCGM_FI_DEV_POWER_USAGE, gauge, x",
		"DCGM_FI_DEV_NVSWITCH_LINK_LATENCY_LOW_VC0, counter, x", "DCGM_FI_DEV_NVLINK_CRC_FLIT_ERROR_COUNT_TOTAL, counter, x",
		"DCGM_FI_DEV_GPU_TEMP, gauge, x",
		"DCGM_FI_DEV_NVLINK_PPCNT_PLR_SYNC_EVENT_TOTAL, counter, x",
		"DCGM_FI_DEV_NVSWITCH_LINK_FATAL_ERRORS, counter, x", "DCGM_FI_DEV_NVSWITCH_TEMPERATURE_CURRENT, gauge, x",
		"DCGM_FI_DEV_PLATFORM_TRAY_INDEX, gauge, x", "DCGM_FI_DEV_BRAND, label, x")}
	plain := `DCGM_FI_DEV_BRAND="Tesla",UUID="` + gpu1 + `",device="nvidia1",gpu="1",modelName="NVIDIA H100 80GB HBM3",pci_bus_id="00000000:11:00.0"`
	s := snapshot([]*device{d, sw, cpu})
	expect(t, page(t, o, s, "DCGM_"),
		`DCGM_FI_DEV_CPU_POWER_UTIL_CURRENT{cpu="0"} 88`,
		`DCGM_FI_DEV_CPU_UTIL_TOTAL{cpu="0",cpucore="11"} 0.5`,
		`DCGM_FI_DEV_GPU_TEMP{`+plain+`} 60`,
		`DCGM_FI_DEV_NVLINK_PPCNT_PLR_SYNC_EVENT_TOTAL{DCGM_FI_DEV_BRAND="Tesla",device="nvidia1",gpu="1",gpu_uuid="`+gpu1+`",model_name="NVIDIA H100 80GB HBM3",nvlink="3",pci_bus_id="00000000:11:00.0"} 12`,
		`DCGM_FI_DEV_NVSWITCH_LINK_FATAL_ERRORS{nvlink="7",nvswitch="nvswitch2"} 1`,
		`DCGM_FI_DEV_NVSWITCH_LINK_LATENCY_LOW_VC0{nvlink="7",nvswitch="nvswitch2"} 4`,
		`DCGM_FI_DEV_NVSWITCH_TEMPERATURE_CURRENT{nvswitch="nvswitch2"} 41`,
		`DCGM_FI_DEV_PLATFORM_TRAY_INDEX{`+plain+`} 0`)
	expect(t, page(t, o, s, "accel_compat_"),
		`accel_compat_field_skipped{field="DCGM_FI_DEV_NVLINK_CRC_FLIT_ERROR_COUNT_TOTAL",reason="not_measured"} 1`,
		`accel_compat_field_skipped{field="DCGM_FI_DEV_POWER_USAGE",reason="not_measured"} 1`)
}

// TestDeviceDown checks that a GPU that is down keeps its counters and loses its
// gauges. A GPU without an index and an FPGA have no series.
func TestDeviceDown(t *testing.T) {
	d := gpu(gpu1, "1").set(collector.EnergyJoules, 5)
	d.Down = collector.ReasonLost
	unnamed := &device{collector.Device{ID: "0000:20:00.0", Class: collector.GPU, Witness: true}}
	unnamed.set(collector.DeviceInfo, 1, "gpu", "nvidia", "", "", "", "0000:20:00.0", "", "", "", "").set(collector.TemperatureCelsius, 1, "gpu")
	fpga := &device{collector.Device{ID: "0000:30:00.0", Class: collector.FPGA}}
	fpga.set(collector.DeviceInfo, 1, "fpga", "intel", "N6001", "", "0", "0000:30:00.0", "", "", "", "").set(collector.TemperatureCelsius, 1, "gpu")
	o := compat.Options{Hostname: "n1", Counters: parseRows(t, "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION, counter, x", "DCGM_FI_DEV_GPU_TEMP, gauge, x")}
	expect(t, page(t, o, snapshot([]*device{d, unnamed, fpga}), "DCGM_"), "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION{"+h100+"} 5000")
}

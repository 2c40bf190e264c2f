package amd

import (
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/accel-exporter/accel-exporter/collector"
	"github.com/accel-exporter/accel-exporter/collector/sysfs"
	"github.com/accel-exporter/accel-exporter/internal/sim/gpumetrics"
)

// names are the quantities by the names of their fields in the kernel's header, as
// package gpumetrics has them in the header's order.
var names = map[quantity]string{
	edge: "temperature_edge", hotspot: "temperature_hotspot", memory: "temperature_mem", regulator: "temperature_vrsoc",
	power: "curr_socket_power", gfxActivity: "average_gfx_activity", memActivity: "average_umc_activity", mmActivity: "average_mm_activity",
	vcnActivity: "vcn_activity", jpegActivity: "jpeg_activity", energy: "energy_accumulator", accumulation: "accumulation_counter",
	prochot: "prochot_residency_acc", ppt: "ppt_residency_acc", socketThermal: "socket_thm_residency_acc", vrThermal: "vr_thm_residency_acc",
	hbmThermal: "hbm_thm_residency_acc", linkWidth: "pcie_link_width", linkSpeed: "pcie_link_speed", toRecovery: "pcie_l0_to_recov_count_acc",
	replays: "pcie_replay_count_acc", rollovers: "pcie_replay_rover_count_acc", naksSent: "pcie_nak_sent_count_acc",
	naksReceived: "pcie_nak_rcvd_count_acc", xgmiRead: "xgmi_read_data_acc", xgmiWrite: "xgmi_write_data_acc", xgmiStatus: "xgmi_link_status",
	gfxClock: "current_gfxclk", memClock: "current_uclk", videoClock: "current_vclk0", fan: "current_fan_speed", partitions: "num_partition",
	soc: "temperature_soc",
}

// ofProcessors are the quantities that are read from the table of a processor.
var ofProcessors = map[quantity]map[bool]string{
	soc:        {false: "temperature_soc", true: "temperature_soc"},
	memClock:   {false: "current_uclk", true: "average_uclk_frequency"},
	videoClock: {false: "current_vclk", true: "average_vclk_frequency"},
}

// fieldOf returns the name and the place of a quantity in the other layout.
func fieldOf(q quantity, version string) (string, gpumetrics.Field, bool) {
	name := names[q]
	switch {
	case q == power && version == "1.3":
		name = "average_socket_power"
	case version > "2":
		name = ofProcessors[q][version == "3.0"]
	}
	f, ok := gpumetrics.Fields(version)[name]
	return name, f, ok
}

// check decodes b and compares every quantity with the other layout's.
func check(t *testing.T, version string, b []byte) {
	t.Helper()
	got, err := decode(b)
	if err != nil {
		t.Fatalf("%s: %v", version, err)
	}
	same := func(what string, have []uint64, name string, f gpumetrics.Field) {
		for i := range min(len(have), f.Count) {
			want, err := gpumetrics.Get(b, name, i)
			if err != nil {
				t.Fatal(err)
			}
			if want == absent>>(64-8*f.Width) {
				want = absent
			}
			if have[i] != want {
				t.Errorf("%s %s[%d] is %d, want %d", version, what, i, have[i], want)
			}
		}
		if len(have) != f.Count {
			t.Errorf("%s %s has %d instances, want %d", version, what, len(have), f.Count)
		}
	}
	for q := range quantities {
		name, f, ok := fieldOf(q, version)
		if !ok && got.values[q] != nil {
			t.Errorf("%s has no %s, but %v", version, name, got.values[q])
		}
		if ok {
			same(name, got.values[q], name, f)
		}
	}
	for i, p := range got.parts {
		for what, have := range map[string][]uint64{"gfx_busy_inst": p.gfx, "vcn_busy": p.vcn} {
			name := fmt.Sprintf("xcp%d.%s", i, what)
			same(name, have, name, gpumetrics.Fields(version)[name])
		}
	}
}

// TestLayouts: every field at its place, by a value that occurs once.
func TestLayouts(t *testing.T) {
	for _, version := range gpumetrics.Versions() {
		b, err := gpumetrics.Build(version)
		if err != nil {
			t.Fatal(err)
		}
		check(t, version, b) // all absent
		n := uint64(0)
		for name, f := range gpumetrics.Fields(version) {
			for i := range f.Count {
				n++
				if err := gpumetrics.Set(b, name, i, n); err != nil {
					t.Fatal(err)
				}
			}
		}
		check(t, version, append(b, "a tail"...))
	}
}

// described returns a table of version 1.9 with attributes of (id, type, values).
func described(attributes ...[]uint64) []byte {
	b := binary.LittleEndian.AppendUint32([]byte{0, 0, 1, 9}, uint32(len(attributes)))
	for _, a := range attributes {
		b = binary.LittleEndian.AppendUint64(b, a[0]<<10|a[1]<<20|uint64(len(a)-2))
		for _, v := range a[2:] {
			b = append(b, binary.LittleEndian.AppendUint64(nil, v)[:1<<(a[1]/2)]...)
		}
	}
	binary.LittleEndian.PutUint16(b, uint16(len(b)))
	return b
}

func TestSelfDescribed(t *testing.T) {
	b := described([]uint64{999, 6, 7}, []uint64{0, 2, 51}, []uint64{33, 2, 2100, 0xffff}, []uint64{7, 6, 1 << 40}, []uint64{1, 2, 0xffff})
	got, err := decode(append(b, make([]byte, 100)...))
	if err != nil {
		t.Fatal(err)
	}
	if v, ok := got.get(hotspot); v != 51 || !ok {
		t.Errorf("hotspot is %v", v)
	}
	if v, ok := highest(got.values[gfxClock]); v != 2100 || !ok {
		t.Errorf("gfxclk is %v", v)
	}
	if v, _ := got.get(energy); v != 1<<40 {
		t.Errorf("energy is %v", v)
	}
	if v, ok := got.get(memory); ok {
		t.Errorf("memory is %v, want none", v)
	}
	if _, err := decode(b[:len(b)-1]); err == nil {
		t.Error("a table that ends within a value is accepted")
	}
}

// FuzzDecode: any bytes give an error or a table; a table of a version with
// fixed offsets has the values of the other layout.
func FuzzDecode(f *testing.F) {
	for _, version := range gpumetrics.Versions() {
		b, err := gpumetrics.Build(version + " average_gfx_activity=7")
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Add(described([]uint64{0, 2, 51}, []uint64{29, 6, 1, 2, 3}))
	f.Add([]byte{4, 0, 2, 1})
	f.Fuzz(func(t *testing.T, b []byte) {
		got, err := decode(b)
		if err != nil {
			return
		}
		if got.version != "1.9" {
			check(t, got.version, b)
			return
		}
		for q, v := range got.values {
			if len(v) > fields[q].count {
				t.Errorf("%s has %d instances", names[quantity(q)], len(v))
			}
		}
	})
}

// TestEnginesOfProcesses: the use of an engine is the difference of its time between
// two reads. Of a process that uses ROCm it is unknown.
func TestEnginesOfProcesses(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	link := func(name, target string) {
		write(name+".x", "") // its folder
		if err := os.Symlink(target, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	link("1/ns/pid", "pid:[4026531836]")
	link("200/fd/3", "/dev/dri/renderD128")
	link("201/fd/3", "/dev/dri/renderD128")
	link("201/fd/4", "/dev/kfd")
	show := func(ns int) {
		for pid := range 2 {
			write(fmt.Sprintf("%d/fdinfo/3", 200+pid), fmt.Sprintf("drm-driver:\tamdgpu\ndrm-client-id:\t%d\ndrm-pdev:\t0000:05:00.0\ndrm-engine-gfx:\t%d ns\n", pid, ns))
		}
	}
	p, now := newProcesses(sysfs.New(dir)), time.Unix(1e9, 0)
	show(5e8)
	u := p.look(now)
	for !u.known { // a look is bounded in time
		u = p.look(now)
	}
	if len(u.list) != 2 || len(u.list[0].Readings) != 0 {
		t.Errorf("after the first read: %+v", u)
	}
	show(3e9)
	u = p.look(now.Add(10 * time.Second))
	want := []collector.Reading{{Metric: collector.UtilizationRatio, Labels: []string{"compute"}, Value: 0.25}, {Metric: collector.UtilizationRatio, Labels: []string{"video"}}}
	if got := u.list[0].Readings; !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
	if got := u.list[1].Readings; !reflect.DeepEqual(got, want[1:]) {
		t.Errorf("of a process with /dev/kfd: %+v", got)
	}
}

func FuzzFDInfo(f *testing.F) {
	f.Add("drm-driver:\tamdgpu\ndrm-client-id:\t7\ndrm-pdev:\t0000:05:00.0\ndrm-memory-vram:\t2048 KiB\ndrm-resident-gtt:\t3 MiB\ndrm-engine-gfx:\t12 ns\n")
	f.Add("drm-memory-vram:\t99999999999999999999 KiB\ndrm-memory-:\t-1\n")
	f.Fuzz(func(t *testing.T, text string) {
		info, ok := parseFDInfo(text)
		for region, n := range info.memory {
			if n >= 1<<53 || !strings.Contains(text, region) {
				t.Errorf("%d bytes of %q", n, region)
			}
		}
		if again, same := parseFDInfo(text + "\nunknown-key:\t1 KiB\n"); same != ok || !reflect.DeepEqual(again, info) {
			t.Error("a key that is not known changes the rest")
		}
	})
}

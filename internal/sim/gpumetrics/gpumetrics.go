// Package gpumetrics writes the tables of the attribute gpu_metrics of AMD's
// driver, for simulated cards. It lists the fields of each version in the order of
// the kernel's drivers/gpu/drm/amd/include/kgd_pp_interface.h and places them as
// a C compiler does. The decoder of collector/amd has the offsets instead, so
// that each checks the other.
package gpumetrics

import (
	"encoding/binary"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// declarations are the fields of each version after the header: type, name and
// number of instances. A line xcp opens the fields of one of eight partitions.
var declarations = map[string]string{
	"1.3": `
		u16 temperature_edge temperature_hotspot temperature_mem temperature_vrgfx temperature_vrsoc temperature_vrmem
		u16 average_gfx_activity average_umc_activity average_mm_activity average_socket_power
		u64 energy_accumulator system_clock_counter
		u16 average_gfxclk_frequency average_socclk_frequency average_uclk_frequency average_vclk0_frequency average_dclk0_frequency average_vclk1_frequency average_dclk1_frequency
		u16 current_gfxclk current_socclk current_uclk current_vclk0 current_dclk0 current_vclk1 current_dclk1
		u32 throttle_status
		u16 current_fan_speed pcie_link_width pcie_link_speed padding
		u32 gfx_activity_acc mem_activity_acc
		u16 temperature_hbm[4]
		u64 firmware_timestamp
		u16 voltage_soc voltage_gfx voltage_mem padding1
		u64 indep_throttle_status`,
	"1.4": heat + power + `
		u16 vcn_activity[4]` + energy + `
		u32 throttle_status gfxclk_lock_status` + links + bus + xgmi + `
		u64 firmware_timestamp` + clocks + `
		u16 padding`,
	"1.5": heat + power + `
		u16 vcn_activity[4] jpeg_activity[32]` + energy + `
		u32 throttle_status gfxclk_lock_status` + links + bus + naks + xgmi + `
		u64 firmware_timestamp` + clocks + `
		u16 padding`,
	"1.6": heat + power + energy + residencies + links + bus + naks + xgmi + `
		u64 firmware_timestamp` + clocks + `
		u16 num_partition
		xcp 32` + `
		u32 pcie_lc_perf_other_end_recovery`,
	"1.7": heat + power + `
		u64 mem_max_bandwidth` + energy + residencies + links + bus + naks + xgmi + `
		u16 xgmi_link_status[8] padding
		u64 firmware_timestamp` + clocks + `
		u16 num_partition
		xcp 32 gfx_below_host_limit_acc
		u32 pcie_lc_perf_other_end_recovery`,
	"1.8": heat + power + `
		u64 mem_max_bandwidth` + energy + residencies + links + bus + naks + xgmi + `
		u16 xgmi_link_status[8] padding
		u64 firmware_timestamp` + clocks + `
		u16 num_partition
		xcp 40 gfx_below_host_limit_ppt_acc gfx_below_host_limit_thm_acc gfx_low_utilization_acc gfx_below_host_limit_total_acc
		u32 pcie_lc_perf_other_end_recovery`,
	"2.1": processor,
	"2.2": processor + independent,
	"2.3": processor + independent + averages,
	"2.4": processor + independent + averages + `
		u16 average_cpu_voltage average_soc_voltage average_gfx_voltage average_cpu_current average_soc_current average_gfx_current`,
	"3.0": `
		u16 temperature_gfx temperature_soc temperature_core[16] temperature_skin
		u16 average_gfx_activity average_vcn_activity average_ipu_activity[8] average_core_c0_activity[16]
		u16 average_dram_reads average_dram_writes average_ipu_reads average_ipu_writes
		u64 system_clock_counter
		u32 average_socket_power
		u16 average_ipu_power
		u32 average_apu_power average_gfx_power average_dgpu_power average_all_core_power
		u16 average_core_power[16] average_sys_power stapm_power_limit current_stapm_power_limit
		u16 average_gfxclk_frequency average_socclk_frequency average_vpeclk_frequency average_ipuclk_frequency
		u16 average_fclk_frequency average_vclk_frequency average_uclk_frequency average_mpipu_frequency
		u16 current_coreclk[16] current_core_maxfreq current_gfx_maxfreq
		u32 throttle_residency_prochot throttle_residency_spl throttle_residency_fppt throttle_residency_sppt
		u32 throttle_residency_thm_core throttle_residency_thm_gfx throttle_residency_thm_soc time_filter_alphavalue`,
}

const (
	processor = `
		u16 temperature_gfx temperature_soc temperature_core[8] temperature_l3[2]
		u16 average_gfx_activity average_mm_activity
		u64 system_clock_counter
		u16 average_socket_power average_cpu_power average_soc_power average_gfx_power average_core_power[8]
		u16 average_gfxclk_frequency average_socclk_frequency average_uclk_frequency
		u16 average_fclk_frequency average_vclk_frequency average_dclk_frequency
		u16 current_gfxclk current_socclk current_uclk current_fclk current_vclk current_dclk current_coreclk[8] current_l3clk[2]
		u32 throttle_status
		u16 fan_pwm padding[3]`
	independent = `
		u64 indep_throttle_status`
	averages = `
		u16 average_temperature_gfx average_temperature_soc average_temperature_core[8] average_temperature_l3[2]`
	heat  = `u16 temperature_hotspot temperature_mem temperature_vrsoc`
	power = `
		u16 curr_socket_power average_gfx_activity average_umc_activity`
	energy = `
		u64 energy_accumulator system_clock_counter`
	residencies = `
		u32 accumulation_counter prochot_residency_acc ppt_residency_acc socket_thm_residency_acc vr_thm_residency_acc hbm_thm_residency_acc
		u32 gfxclk_lock_status`
	links = `
		u16 pcie_link_width pcie_link_speed xgmi_link_width xgmi_link_speed
		u32 gfx_activity_acc mem_activity_acc`
	bus = `
		u64 pcie_bandwidth_acc pcie_bandwidth_inst pcie_l0_to_recov_count_acc pcie_replay_count_acc pcie_replay_rover_count_acc`
	naks = `
		u32 pcie_nak_sent_count_acc pcie_nak_rcvd_count_acc`
	xgmi = `
		u64 xgmi_read_data_acc[8] xgmi_write_data_acc[8]`
	clocks = `
		u16 current_gfxclk[8] current_socclk[4] current_vclk0[4] current_dclk0[4] current_uclk`
)

// Field is where a field is.
type Field struct{ At, Width, Count int }

type layout struct {
	size   int
	fields map[string]Field
}

func (l *layout) add(name string, width, count, align int) {
	l.size = (l.size + align - 1) / align * align
	l.fields[name] = Field{l.size, width, count}
	l.size += width * count
}

var layouts = func() map[string]*layout {
	out := map[string]*layout{}
	for version, text := range declarations {
		l := &layout{size: 4, fields: map[string]Field{}}
		for line := range strings.Lines(text) {
			words := strings.Fields(line)
			if len(words) == 0 {
				continue
			}
			if words[0] == "xcp" {
				jpegs, _ := strconv.Atoi(words[1])
				l.size = (l.size + 7) &^ 7
				for i := range 8 {
					p := fmt.Sprintf("xcp%d.", i)
					l.add(p+"gfx_busy_inst", 4, 8, 4)
					l.add(p+"jpeg_busy", 2, jpegs, 2)
					l.add(p+"vcn_busy", 2, 4, 2)
					for _, acc := range append([]string{"gfx_busy_acc"}, words[2:]...) {
						l.add(p+acc, 8, 8, 8)
					}
				}
				continue
			}
			width := map[string]int{"u16": 2, "u32": 4, "u64": 8}[words[0]]
			for _, name := range words[1:] {
				count := 1
				if base, n, ok := strings.Cut(strings.TrimSuffix(name, "]"), "["); ok {
					name = base
					count, _ = strconv.Atoi(n)
				}
				l.add(name, width, count, width)
			}
		}
		l.size = (l.size + 7) &^ 7
		out[version] = l
	}
	return out
}()

// Versions returns the versions, sorted.
func Versions() []string { return slices.Sorted(maps.Keys(layouts)) }

// Fields returns the fields of a version by name.
func Fields(version string) map[string]Field { return layouts[version].fields }

// Build returns a table of a version. The words of text are NAME=VALUE, with
// commas between instances; the fields that it does not name have the value for
// absent, all ones.
func Build(text string) ([]byte, error) {
	words := strings.Fields(text)
	if len(words) == 0 || layouts[words[0]] == nil {
		return nil, fmt.Errorf("want a version of gpu_metrics, one of %s, found %.40q", strings.Join(Versions(), ", "), text)
	}
	l := layouts[words[0]]
	b := make([]byte, l.size)
	for i := range b {
		b[i] = 0xff
	}
	format, revision, _ := strings.Cut(words[0], ".")
	binary.LittleEndian.PutUint16(b, uint16(l.size))
	b[2], b[3] = format[0]-'0', revision[0]-'0'
	for _, word := range words[1:] {
		name, values, ok := strings.Cut(word, "=")
		if !ok {
			return nil, fmt.Errorf("want NAME=VALUE, found %.40q", word)
		}
		for i, value := range strings.Split(values, ",") {
			v, err := strconv.ParseUint(value, 0, 64)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", name, err)
			}
			if err := Set(b, name, i, v); err != nil {
				return nil, err
			}
		}
	}
	return b, nil
}

// Get returns the value of an instance of a field.
func Get(b []byte, name string, i int) (uint64, error) {
	at, err := find(b, name, i)
	if err != nil {
		return 0, err
	}
	var v [8]byte
	copy(v[:], at)
	return binary.LittleEndian.Uint64(v[:]), nil
}

// Set sets an instance of a field.
func Set(b []byte, name string, i int, v uint64) error {
	at, err := find(b, name, i)
	if err != nil {
		return err
	}
	copy(at, binary.LittleEndian.AppendUint64(nil, v))
	return nil
}

func find(b []byte, name string, i int) ([]byte, error) {
	if len(b) < 4 {
		return nil, fmt.Errorf("%d bytes are no gpu_metrics", len(b))
	}
	version := fmt.Sprintf("%d.%d", b[2], b[3])
	l := layouts[version]
	if l == nil || len(b) < l.size {
		return nil, fmt.Errorf("gpu_metrics of version %s and %d bytes", version, len(b))
	}
	f, ok := l.fields[name]
	if !ok || i >= f.Count {
		return nil, fmt.Errorf("gpu_metrics %s has no field %s[%d]; it has %s", version, name, i, strings.Join(slices.Sorted(maps.Keys(l.fields)), ", "))
	}
	at := f.At + i*f.Width
	return b[at : at+f.Width], nil
}

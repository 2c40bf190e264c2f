package sim

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// part is NVSwitches or CPUs of a scenario, which only DCGM has. Units are the
// links of a switch, or the cores of a CPU.
type part struct {
	Count  *int
	Units  int
	Values map[string]string
}

// parts are the keys of a scenario for them.
type parts struct {
	Switches []switchEntry
	CPUs     []cpuEntry
}

type switchEntry struct {
	Count  *int
	Units  int `yaml:"links"`
	Values map[string]string
}

type cpuEntry struct {
	Count  *int
	Units  int `yaml:"cores"`
	Values map[string]string
}

// switchFields and cpuFields have the field ids of dcgm_fields.h; the fields of
// switchLinkFields are per link, the fields of coreFields per core.
var (
	switchFields = map[string]int{
		"voltage_mvolt": 701, "power_vdd_watts": 705, "power_dvdd_watts": 706, "power_hvdd_watts": 707,
		"fatal_error": 856, "non_fatal_error": 857, "temperature": 858, "temperature_slowdown": 859, "temperature_shutdown": 860,
		"throughput_tx": 861, "throughput_rx": 862, "physical_id": 863, "reset_required": 864,
		"pcie_domain": 866, "pcie_bus": 867, "pcie_device": 868, "pcie_function": 869,
	}
	switchLinkFields = map[string]int{
		"link.throughput_tx": 780, "link.throughput_rx": 781, "link.fatal_errors": 782, "link.non_fatal_errors": 783,
		"link.replay_errors": 784, "link.recovery_errors": 785, "link.flit_errors": 786, "link.crc_errors": 787, "link.ecc_errors": 788,
		"link.status": 870,
	}
	cpuFields = map[string]int{
		"utilization": 1100, "utilization_user": 1101, "utilization_nice": 1102, "utilization_sys": 1103, "utilization_irq": 1104,
		"temperature": 1110, "temperature_warning": 1111, "temperature_critical": 1112, "clock_khz": 1120,
		"power_watts": 1130, "power_limit_watts": 1131, "sysio_power_watts": 1132, "module_power_watts": 1133,
	}
)

// partKinds are the kinds of parts by name.
var partKinds = map[string]map[string]int{
	"switch": merged(switchFields, switchLinkFields),
	"cpu":    cpuFields,
}

func merged(tables ...map[string]int) map[string]int {
	out := map[string]int{}
	for _, m := range tables {
		maps.Copy(out, m)
	}
	return out
}

func partField(kind, key string) (int, error) {
	if id, ok := partKinds[kind][key]; ok {
		return id, nil
	}
	return 0, fmt.Errorf("unknown key %q of a %s; want one of %s", key, kind, strings.Join(slices.Sorted(maps.Keys(partKinds[kind])), ", "))
}

// each calls do for the entries of NVSwitches and CPUs. units is the key of
// the number of their units, most the highest number.
func (p parts) each(root node, do func(at node, kind, units string, most int, p part) error) error {
	var all []error
	for i, e := range p.Switches {
		all = append(all, do(root.at("switches", i), "switch", "links", 256, part(e)))
	}
	for i, e := range p.CPUs {
		all = append(all, do(root.at("cpus", i), "cpu", "cores", 128, part(e)))
	}
	return errors.Join(all...)
}

func (p parts) check(root node) error {
	return p.each(root, func(at node, kind, units string, most int, p part) error {
		all := []error{at.at("count").within(or(p.Count, 1), 1, 12), at.at(units).within(p.Units, 0, most)}
		for key, value := range p.Values {
			_, err := partField(kind, key)
			if err == nil {
				_, err = ParseSignal(value)
			}
			if err != nil {
				all = append(all, at.at("values", key).errorf("%w", err))
			}
		}
		return errors.Join(all...)
	})
}

// compile numbers the parts of a kind across all entries. Their values have
// DCGM's field ids.
func (p parts) compile(s *State, root node, scenario string) {
	next := map[string]int{}
	_ = p.each(root, func(_ node, kind, _ string, _ int, p part) error {
		for range or(p.Count, 1) {
			n := strconv.Itoa(next[kind])
			next[kind]++
			prefix := kind + "." + n
			s.Set(prefix, fmt.Sprintf("links=%d uuid=%s", p.Units, madeUUID(strings.ToUpper(kind), scenario, kind, n)))
			for _, key := range slices.Sorted(maps.Keys(p.Values)) {
				signal, _ := ParseSignal(p.Values[key]) // as check did
				s.Set(fmt.Sprintf("%s.%d", prefix, partKinds[kind][key]), signal)
			}
		}
		return nil
	})
}

// injectPart changes a value of a switch or a CPU from now on.
func injectPart(s *State, in input) error {
	kind, n, _ := strings.Cut(in["part"], ":")
	if partKinds[kind] == nil || !s.Has(kind+"."+n) {
		return fmt.Errorf("part: want switch:N or cpu:N that the scenario has, found %q", in["part"])
	}
	id, err := partField(kind, in["key"])
	if err != nil {
		return fmt.Errorf("key: %w", err)
	}
	signal, err := ParseSignal(in["value"])
	if err != nil {
		return fmt.Errorf("value: %w", err)
	}
	key := fmt.Sprintf("%s.%s.%d", kind, n, id)
	if in["link"] != "" {
		links, _ := strconv.Atoi(attr(s.Get(kind+"."+n), "links"))
		if !inRange(in["link"], 0, links-1) {
			return fmt.Errorf("link: %s:%s has %d, found %q", kind, n, links, in["link"])
		}
		key += "." + in["link"]
	}
	s.setAt(-1, key, "", signal)
	return nil
}

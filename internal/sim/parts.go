package sim

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// partEntry is NVSwitches or CPUs of a scenario, which only DCGM has. Their
// values have DCGM's field ids.
type partEntry struct {
	count, links int // links of a switch, cores of a CPU
	values       []line
}

// switchFields and cpuFields have the field ids of dcgm_fields.h; those of
// switchLinkFields are per link, those of coreFields per core.
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

func parseParts(kind, units string, most int, to *[]partEntry) func(node) error {
	return func(n node) error {
		return n.items(func(_ int, c node) error {
			p := partEntry{count: 1}
			err := c.fields(map[string]func(node) error{
				"count": toInt(&p.count, 1, 12),
				units:   toInt(&p.links, 1, most),
				"values": func(v node) error {
					return v.each(func(key string, at, value node) error {
						id, err := partField(kind, key)
						if err != nil {
							return at.errorf("%w", err)
						}
						signal, err := ParseSignal(value.Value)
						if err != nil {
							return value.errorf("%w", err)
						}
						p.values = append(p.values, line{strconv.Itoa(id), signal})
						return nil
					})
				},
			})
			*to = append(*to, p)
			return err
		})
	}
}

// compileParts numbers the parts of a kind across all entries.
func (sc *Scenario) compileParts(s *State, kind string, entries []partEntry) {
	n := 0
	for _, p := range entries {
		for range p.count {
			prefix := fmt.Sprintf("%s.%d", kind, n)
			s.Set(prefix, fmt.Sprintf("links=%d uuid=%s", p.links, madeUUID(strings.ToUpper(kind), sc.Name, kind, strconv.Itoa(n))))
			for _, v := range p.values {
				s.Set(prefix+"."+v.key, v.value)
			}
			n++
		}
	}
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

package sim

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

var (
	fabricState = []string{"not-supported", "not-started", "in-progress", "completed"}
	throttles   = []string{"idle", "app-clocks", "sw-power-cap", "hw-slowdown", "sync-boost", "sw-thermal", "hw-thermal", "hw-power-brake", "display"}
)

// valueFaults are faults of values.
var valueFaults = []Fault{
	{
		Name: "field", Help: "a field of nvmlDeviceGetFieldValues returns a value or error:NAME", apply: injectField,
		Args: []Arg{{Name: "id", Help: "field id"}, {Name: "value", Help: "value"}, deviceArg},
	},
	{
		Name: "set", Help: "set any modelled value, including absurd ones: -1, 1e30, nan, blank, error:NAME", apply: injectSet,
		Args: []Arg{{Name: "key", Help: "temperature, power, util, memory or a key of keys.def"}, {Name: "value", Help: "value"}, deviceArg},
	},
	{
		Name: "ecc", Help: "count ECC errors, corrected or uncorrected, and deliver their event", apply: injectECC,
		Args: []Arg{{Name: "type", Help: "corrected or uncorrected"}, deviceArg}, Flags: []Flag{{Name: "location", Help: strings.Join(locations, ", "), Default: "dram"}, countFlag},
	},
	{
		Name: "remap", Help: "remap rows: counts, pending, failure", apply: injectRemap, Args: []Arg{deviceArg},
		Flags: []Flag{{Name: "correctable", Help: "how many more"}, {Name: "uncorrectable", Help: "how many more"}, {Name: "pending", Help: "0 or 1"}, {Name: "failure", Help: "0 or 1"}},
	},
	{
		Name: "throttle", Help: "a clock event reason is active, and its nanoseconds increase", apply: injectThrottle,
		Args: []Arg{{Name: "reason", Help: strings.Join(throttles, ", ")}, deviceArg, {Name: "switch", Help: "on or off", Optional: true, Default: "on"}},
	},
	{
		Name: "nvlink", Help: "an NVLink is down or up, or counts errors", apply: injectNVLink,
		Args:  []Arg{{Name: "link", Help: "link number, or all for down and up"}, {Name: "what", Help: "down, up or errors"}, deviceArg},
		Flags: []Flag{{Name: "counter", Help: "crc_flit, crc_data, replay, recovery, ecc_data, or field.ID for NVLink 5"}, countFlag},
	},
	{
		Name: "fabric", Help: "the fabric's state: not-supported, not-started, in-progress, completed", apply: injectFabric,
		Args: []Arg{{Name: "state", Help: "name or number"}, deviceArg}, Flags: []Flag{{Name: "status", Help: "nvmlReturn_t of the registration"}, {Name: "summary", Help: "health summary: 1 healthy, 2 unhealthy, 3 limited"}},
	},
	{
		Name: "device-file", Help: "the device file of a GPU is missing or has no permissions; requires a simulation with --dev", apply: injectDeviceFile,
		Args: []Arg{deviceArg, {Name: "state", Help: "present, missing or denied"}},
	},
	{Name: "advance", Help: "advance a clock stopped by --frozen", apply: injectAdvance, Args: []Arg{{Name: "seconds", Help: "how far"}}},
}

func injectField(s *State, in input) error {
	in["key"] = "field." + in["id"]
	return injectSet(s, in)
}

func injectSet(s *State, in input) error {
	key := in["key"]
	if a, ok := aliases[key]; ok {
		key = a
	}
	signal, err := checkValue(key, in["value"])
	if err != nil {
		return err
	}
	return s.onGPUs(in, func(d device) error { return s.set(d, key, signal) })
}

func injectECC(s *State, in input) error {
	kind, err := in.one("type", []string{"corrected", "uncorrected"})
	if err != nil {
		return err
	}
	where, err := in.one("location", locations)
	if err != nil {
		return err
	}
	n, err := in.whole("count")
	if err != nil {
		return err
	}
	name := []string{"corrected", "uncorrected"}[kind]
	return s.onGPUs(in, func(d device) error {
		gpu := device{d.gpu, -1}
		if d.mig >= 0 {
			if kind == 0 || locations[where] != "sram" {
				return fmt.Errorf("a MIG device counts uncorrected sram errors only")
			}
			if err := s.add(d, "ecc.volatile.uncorrected.sram", n); err != nil {
				return err
			}
		}
		keys := []string{"ecc.volatile." + name + "." + locations[where], "ecc.aggregate." + name + "." + locations[where]}
		if kind == 1 && locations[where] == "sram" {
			keys = append(keys, "sram.volatile.secded", "sram.aggregate.secded", "sram.bucket.sm")
		}
		for _, k := range keys {
			if err := s.add(gpu, k, n); err != nil {
				return err
			}
		}
		s.addEvent(d.gpu, uint64(kind+1), n, "", "")
		return nil
	})
}

func injectRemap(s *State, in input) error {
	return s.onGPUs(in, func(d device) error {
		d.mig = -1
		for _, key := range []string{"correctable", "uncorrectable", "pending", "failure"} {
			if in[key] == "" {
				continue
			}
			n, err := in.whole(key)
			if err != nil {
				return err
			}
			if key == "pending" || key == "failure" {
				err = s.set(d, "remap."+key, strconv.FormatUint(n, 10))
			} else {
				err = s.add(d, "remap."+key, n)
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
}

func injectThrottle(s *State, in input) error {
	n, err := in.one("reason", throttles)
	if err != nil {
		return err
	}
	off, err := in.one("switch", []string{"on", "off"})
	if err != nil {
		return err
	}
	return s.onGPUs(in, func(d device) error {
		return s.set(device{d.gpu, -1}, "throttle."+strings.ReplaceAll(throttles[n], "-", "_"), strconv.Itoa(1-off))
	})
}

func injectNVLink(s *State, in input) error {
	link, err := uint64(0), error(nil)
	all := in["link"] == "all"
	if !all {
		if link, err = in.whole("link"); err != nil {
			return err
		}
	}
	what, err := in.one("what", []string{"down", "up", "errors"})
	if err != nil {
		return err
	}
	if all && what == 2 {
		return errors.New("link: all is for down and up")
	}
	n, err := in.whole("count")
	if err != nil {
		return err
	}
	return s.onGPUs(in, func(d device) error {
		d.mig = -1
		links, _ := strconv.ParseUint(s.gpuGet(d.gpu, "nvlink.count"), 10, 64)
		if link >= links {
			return fmt.Errorf("link: gpu %d has %d links, found %d", d.gpu, links, link)
		}
		if what < 2 {
			for l := range links {
				if !all && l != link {
					continue
				}
				if err := s.set(d, fmt.Sprintf("link.%d.state", l), strconv.Itoa(what)); err != nil {
					return err
				}
			}
			return nil
		}
		counter := in["counter"]
		if counter == "" {
			counter = "crc_flit"
			if s.gpuGet(d.gpu, "nvlink.counters") == "5" {
				counter = "field.208"
			}
		}
		key := fmt.Sprintf("link.%d.%s", link, counter)
		if !numeric(key) {
			return fmt.Errorf("counter: want one of %s or field.ID, found %q", strings.Join(linkKeys, ", "), counter)
		}
		return s.add(d, key, n)
	})
}

func injectFabric(s *State, in input) error {
	state, err := in.one("state", fabricState)
	if err != nil {
		return err
	}
	return s.onGPUs(in, func(d device) error {
		d.mig = -1
		if err := s.set(d, "fabric.state", strconv.Itoa(state)); err != nil {
			return err
		}
		for flag, key := range map[string]string{"status": "fabric.status", "summary": "fabric.health_summary"} {
			if in[flag] == "" {
				continue
			}
			value := in[flag]
			if flag == "status" {
				code, err := ParseReturn(value)
				if err != nil {
					return err
				}
				value = strconv.Itoa(code)
			}
			signal, err := checkValue(key, value)
			if err != nil {
				return err
			}
			if err := s.set(d, key, signal); err != nil {
				return err
			}
		}
		return nil
	})
}

var deviceFileStates = []string{"present", "missing", "denied"}

func injectDeviceFile(s *State, in input) error {
	if !s.Has("dev") {
		return errors.New("this simulation has no device files; set one up with --dev")
	}
	n, err := in.one("state", deviceFileStates)
	if err != nil {
		return err
	}
	return s.onGPUs(in, func(d device) error {
		s.Set(fmt.Sprintf("gpu.%d.device_file", d.gpu), deviceFileStates[n])
		return nil
	})
}

func injectAdvance(s *State, in input) error {
	step, err := strconv.ParseFloat(in["seconds"], 64)
	if err != nil || step < 0 || step > 1e9 {
		return fmt.Errorf("seconds: want a number from 0 on, found %q", in["seconds"])
	}
	if !strings.HasPrefix(s.Get("clock"), "frozen ") {
		return fmt.Errorf("the clock runs by itself; only --frozen stops it")
	}
	s.Set("clock", "frozen "+strconv.FormatFloat(s.now()+step, 'f', -1, 64))
	return nil
}

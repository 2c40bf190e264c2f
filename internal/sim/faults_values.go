package sim

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

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
	n, err := in.integer("count")
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
			n, err := in.integer(key)
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
		if link, err = in.integer("link"); err != nil {
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
	n, err := in.integer("count")
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
		for flag, key := range map[string]string{"status": "fabric.status", "mask": "fabric.health_mask", "summary": "fabric.health_summary"} {
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

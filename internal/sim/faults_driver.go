package sim

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// driverFaults are faults of NVIDIA's driver.
var driverFaults = []Fault{
	{Name: "driver-mismatch", Help: "the library is upgraded and the driver is not: init and all calls of devices return LIB_RM_VERSION_MISMATCH", apply: injectMismatch},
	{Name: "driver-unload", Help: "the driver is unloaded: init and all calls return DRIVER_NOT_LOADED", apply: injectUnload},
	{
		Name: "driver-reload", Help: "the driver is reloaded: old handles become invalid, volatile counters restart", apply: injectReload,
		Flags: []Flag{{Name: "driver", Help: "its version after the reload"}},
	},
	{
		Name: "quirk", Help: "the driver, or what it is called from, differs from the usual; `clear` does not end it", apply: injectQuirk,
		Args: []Arg{{Name: "quirk", Help: strings.Join(quirks, ", ")}, {Name: "switch", Help: "on or off", Optional: true, Default: "on"}},
	},
	{
		Name: "mig", Help: "reshape MIG at run time: profiles separated by commas, or off; fires the MIG event", apply: injectMIG,
		Args: []Arg{deviceArg, {Name: "layout", Help: "e.g. 3g.40gb,2g.20gb,1g.10gb, 3g.40gb:1c+2c, empty, on or off"}}, Flags: []Flag{{Name: "pending", Help: "true: change the pending mode only", Default: "false"}},
	},
}

func injectMismatch(s *State, _ input) error {
	s.Set("driver.nvml", "13.610.43.02")
	s.Set("driver.state", "mismatch")
	return s.showDriver()
}

func injectUnload(s *State, _ input) error {
	s.unload()
	s.Set("driver.state", "unloaded")
	return s.showDriver()
}

// unload ends the loaded driver: the next one is of the library's version, where
// only the library was upgraded.
func (s *State) unload() {
	_, version, ok := strings.Cut(s.Get("driver.nvml"), ".")
	if ok && s.Get("driver.state") == "mismatch" {
		s.Set("driver.version", version)
	}
}

func injectQuirk(s *State, in input) error {
	if _, err := in.one("quirk", quirks); err != nil {
		return err
	}
	off, err := in.one("switch", []string{"on", "off"})
	if err != nil {
		return err
	}
	list := slices.DeleteFunc(strings.Fields(s.Get("driver.quirks")), func(q string) bool { return q == in["quirk"] })
	if off == 0 {
		list = append(list, in["quirk"])
	}
	s.Set("driver.quirks", strings.Join(list, " "))
	return s.showDriver()
}

func injectReload(s *State, in input) error {
	s.unload()
	s.Set("driver.state", "loaded")
	s.Set("driver.generation", strconv.FormatInt(s.integer("driver.generation")+1, 10))
	s.Set("driver.loaded_at", strconv.FormatFloat(s.now(), 'f', 3, 64))
	if in["driver"] != "" {
		s.Set("driver.version", in["driver"])
	}
	for i := range s.gpus() {
		s.Delete(fmt.Sprintf("gpu.%d.reset_required", i))
		for _, key := range valueKeys {
			if strings.HasPrefix(key, "ecc.volatile.") || strings.HasPrefix(key, "sram.volatile.") {
				if v := s.last(device{i, -1}, key); v != "" && !strings.HasPrefix(v, "error:") {
					s.setAt(i, fmt.Sprintf("gpu.%d.%s", i, key), key, "0")
				}
			}
		}
	}
	s.log("NVRM: loading %s", s.driverBanner())
	return s.showDriver()
}

func injectMIG(s *State, in input) error {
	return s.onGPUs(in, func(d device) error {
		mode := "1"
		if in["layout"] == "off" {
			mode = "0"
		}
		if s.gpuGet(d.gpu, "mig.max_devices") == "" {
			return fmt.Errorf("gpu %d (%s) has no MIG", d.gpu, s.gpuGet(d.gpu, "name"))
		}
		s.Set(fmt.Sprintf("gpu.%d.mig.pending", d.gpu), mode)
		if in["pending"] == "true" {
			return nil
		}
		var items []string
		if in["layout"] != "off" && in["layout"] != "on" && in["layout"] != "empty" {
			items = strings.Split(in["layout"], ",")
		}
		if err := s.setMIG(d.gpu, items); err != nil {
			return err
		}
		s.Set(fmt.Sprintf("gpu.%d.mig.mode", d.gpu), mode)
		for _, key := range s.keys(fmt.Sprintf("gpu.%d.process.", d.gpu)) {
			s.endOn(key) // a GPU is reshaped when it is idle
		}
		s.addEvent(d.gpu, eventTypes["mig-config"], 0, "", "")
		return s.showProcesses()
	})
}

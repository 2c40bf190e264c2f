package main

import (
	"cmp"
	"slices"
)

// class is a kind of device that a fleet is made of.
type class struct {
	name, unit string
	page       string // golden file of a node that has some
	resource   string
	memory     bool // holders' memory and utilization are measured
}

var classes = map[string]class{
	"gpu": {
		name: "gpu", unit: "GPU", resource: "nvidia.com/gpu", memory: true,
		page: "../cmd/accel-exporter/testdata/golden/h100-8.metrics",
	},
	"fpga": {
		name: "fpga", unit: "card", resource: "amd.com/xilinx_u250",
		page: "../cmd/accel-exporter/testdata/golden/mixed-node.metrics",
	},
}

// of leaves out of a page the devices of other classes.
func (c class) of(page []sample) []sample {
	mine := map[string]bool{"": true}
	for _, s := range page {
		if s.name == "accel_device_info" && s.labels["class"] == c.name {
			mine[s.labels["device"]] = true
		}
	}
	return slices.DeleteFunc(slices.Clone(page), func(s sample) bool { return !mine[s.labels["device"]] })
}

// components are what of a device is compared with a baseline.
func (c class) components(page []sample, device string) []string {
	if c.name == "gpu" {
		return []string{"driver", "cuda", "vbios", "gsp", "inforom", "mig"}
	}
	out := []string{"driver"}
	for _, s := range page {
		if s.labels["device"] != device {
			continue
		}
		switch s.name {
		case "accel_firmware_info":
			out = append(out, s.labels["component"])
		case "accel_fpga_bitstream_info":
			out = append(out, s.labels["region"]+"/"+s.labels["kind"])
		}
	}
	return out
}

// classOf returns the class of the name, with another page where one is given.
func classOf(name, page string) (class, bool) {
	c, ok := classes[name]
	c.page = cmp.Or(page, c.page)
	return c, ok
}

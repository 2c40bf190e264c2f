package fpga

import (
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/accel-exporter/accel-exporter/collector"
	"github.com/accel-exporter/accel-exporter/collector/sysfs"
)

// intelFPGA is the family of the cards with Intel's out-of-tree driver of
// before the Device Feature List, as of the Acceleration Stack 1.2 for the PAC
// with Arria 10.
var intelFPGA = family{
	name: "intel-fpga",
	allow: slices.Concat(
		pciFiles,
		below("intel-fpga-fme.*", "bitstream_id", "pr/interface_id", "thermal_mgmt/temperature", "power_mgmt/consumed"),
		below("intel-fpga-port.*", "afu_id"),
	),
	find: findIntelFPGA,
	open: func(e *env) card { return &intelFPGACard{e} },
}

func findIntelFPGA(fs *tree) (places []place, err error) {
	names, err := fs.Names("class/fpga")
	if err != nil && !absent(err) {
		return nil, err
	}
	for _, n := range names {
		at, err := fs.Resolve("class/fpga/" + n)
		dir := path.Dir(path.Dir(at))
		if err != nil || !strings.HasPrefix(n, "intel-fpga-dev.") || !sysfs.PCIAddress(path.Base(dir)) {
			continue
		}
		p := place{id: path.Base(dir), dir: dir}
		for _, unit := range fpgaUnits(fs, dir+"/fpga", "intel-fpga-") {
			name := path.Base(unit)
			p.kubeIDs = append(p.kubeIDs, name, "dfl-"+strings.TrimPrefix(name, "intel-fpga-"))
		}
		places = append(places, p)
	}
	return places, nil
}

type intelFPGACard struct{ *env }

// read implements card.
func (c *intelFPGACard) read(r *reading) {
	r.Vendor, r.Model = vendorOf(r.pci.vendor), dflModel(r.pci)
	r.info(c.env, r.Driver, r.pci, "", "", "")
	ports := 0
	for _, unit := range fpgaUnits(c.fs, c.dir+"/fpga", "intel-fpga-") {
		if strings.HasPrefix(path.Base(unit), "intel-fpga-port.") {
			c.readPort(r, unit, "port"+strconv.Itoa(ports))
			ports++
			continue
		}
		id, ok := r.text(unit + "/bitstream_id")
		switch {
		case ok && allOnes(id):
			r.Down = collector.ReasonLost
			return
		case ok:
			r.bitstream("static", "fim", id)
		}
		if id, ok := r.textEvery(c.options.SlowInterval, unit+"/pr/interface_id"); ok {
			r.bitstream("port0", "pr_interface", id)
		}
		c.readNumber(r, collector.TemperatureCelsius, unit+"/thermal_mgmt/temperature", "FPGA")
		c.readNumber(r, collector.PowerWatts, unit+"/power_mgmt/consumed")
	}
	if !r.answered {
		r.Down, r.Readings = collector.ReasonError, nil
	}
}

func (c *intelFPGACard) readPort(r *reading, dir, region string) {
	asked := time.Now()
	id, ok := r.text(dir + "/afu_id")
	switch {
	case !ok:
	case isAFU(id) && !allOnes(id):
		c.memory.region(region).settle(asked, time.Now(), strings.ToLower(id), true)
		r.bitstream(region, "afu", id)
	default:
		r.Reject(collector.FPGABitstreamInfo, collector.RejectType)
	}
}

// readNumber sets degrees or watts, which the driver prints as decimal or with
// 0x. 0 is not measured on a powered card.
func (c *intelFPGACard) readNumber(r *reading, m *collector.Metric, file string, labels ...string) {
	text, ok := r.text(file)
	if !ok {
		return
	}
	v, err := strconv.ParseUint(text, 0, 16)
	switch {
	case err != nil:
		r.Reject(m, collector.RejectType)
	case v == 0:
		r.Reject(m, collector.RejectSentinel)
	default:
		r.Set(m, float64(v), labels...)
	}
}

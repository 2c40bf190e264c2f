package fpga

import (
	"slices"
	"strings"
	"time"

	"github.com/accel-exporter/accel-exporter/collector"
	"github.com/accel-exporter/accel-exporter/collector/sysfs"
)

// aws is the family of the FPGAs of AWS F2 instances. sysfs has nothing
// but their PCI functions: sensors and the loaded image are behind a mailbox in
// the memory of the management function, which one program at a time may use. A
// load removes the application function from the bus and adds it again with the
// ids that the author of the image chose. This shows loads; as an identity it
// is weak.
var aws = family{
	name:  "aws",
	allow: slices.Concat(pciFiles, below(anyFunction, "subsystem_vendor")),
	find:  findAWS,
	open:  func(e *env) card { return &awsCard{env: e} },
}

// The PCI vendor id of Amazon, and the device id of the management function.
const awsVendor, awsManagement = "0x1d0f", "0x9248"

// findAWS finds the management functions. They have no driver, so the ids of
// all PCI functions are read once a minute; the kernel has them in memory.
func findAWS(fs *tree) ([]place, error) {
	names, err := fs.Names("bus/pci/devices")
	if err != nil {
		if absent(err) {
			err = nil
		}
		return nil, err
	}
	if fs.Cached() > 4*len(names)+64 {
		fs.Forget() // functions have left
	}
	now := time.Now()
	read := func(address, file string) string {
		text, _ := fs.ReadEvery(now, identityInterval, "bus/pci/devices/"+address+"/"+file)
		return text
	}
	var places []place
	for _, n := range names {
		if !sysfs.PCIAddress(n) || read(n, "vendor") != awsVendor || read(n, "device") != awsManagement {
			continue
		}
		dir, err := fs.Target("bus/pci/devices/" + n)
		if err != nil {
			continue
		}
		p := place{id: application(n), dir: dir, functions: []string{n}}
		if dir, err := fs.Target("bus/pci/devices/" + p.id); err == nil {
			p.claims = []string{dir}
		}
		places = append(places, p)
	}
	return places, nil
}

// application returns the address of the application function of a management
// function: the first function of the device, or the second where the first is
// the management function. It belongs to the card also while it is off the bus.
func application(management string) string {
	slot := sysfs.PCISlot(management)
	if management == slot+".0" {
		return slot + ".1"
	}
	return slot + ".0"
}

// awsCard reads one FPGA.
type awsCard struct {
	*env
	seen bool      // the application function has been on the bus
	left time.Time // when it left, zero while it is there
}

// awsSlot is the region of an AWS FPGA for images.
const awsSlot = "slot0"

// read implements card.
func (c *awsCard) read(r *reading) {
	r.Vendor, r.Model = "aws", "AWS F2 FPGA"
	asked := time.Now()
	app := "bus/pci/devices/" + c.id
	// A load changes these, so they are not cached.
	var ids []string
	for _, file := range []string{"vendor", "device", "subsystem_vendor", "subsystem_device"} {
		if text, ok := r.text(app + "/" + file); ok {
			ids = append(ids, strings.TrimPrefix(tidy(text), "0x"))
		}
	}
	there := len(ids) == 4
	p := r.pci
	if there {
		p.vendor, p.device = ids[0], ids[1]
	}
	driver, _ := r.fs.Link(app + "/driver")
	r.info(c.env, driver, p, "", "", "", "")
	if r.pci.device != strings.TrimPrefix(awsManagement, "0x") { // it is leaving
		r.Down, r.Readings = collector.ReasonError, nil
		return
	}
	region := c.memory.region(awsSlot)
	switch {
	case there:
		c.seen, c.left = true, time.Time{}
	case c.left.IsZero():
		c.left = r.now
	}
	region.setBusy(r.now, c.seen && !there && r.now.Sub(c.left) < longestLoad)
	if !there {
		r.SetBool(collector.FPGABitstreamLoaded, false, awsSlot)
		return
	}
	id := strings.Join(ids, ":")
	region.settle(asked, time.Now(), id, true)
	r.Set(collector.FPGABitstreamInfo, 1, awsSlot, "pci_ids", id) // a cleared slot has ids too
}

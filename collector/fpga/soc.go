package fpga

import (
	"cmp"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/accel-exporter/accel-exporter/collector"
	"github.com/accel-exporter/accel-exporter/collector/sysfs"
)

// soc is the family of FPGAs of which the kernel has only an FPGA manager:
// the programmable logic of Zynq, Zynq UltraScale+, Versal and SoC FPGAs, and
// parts that are loaded over SPI or CvP. Source of the files:
// Documentation/ABI/testing/sysfs-class-fpga-manager, -region, -bridge,
// sysfs-driver-zynqmp-fpga, sysfs-bus-iio.
//
// Such a manager reports neither the loaded image nor a utilization.
var soc = family{
	name: "manager",
	allow: slices.Concat(
		pciFiles, managerFiles,
		[]string{
			"*:pcap/status", // ZynqMP: the fabric's status word
			// Of a region's device: its node in the device tree.
			"devices/platform/*/uevent", "devices/platform/*/*/uevent", "devices/platform/*/*/*/uevent",
			"devicetree/base/model", "*/firmware-name",
		},
		below("iio:device*", "name", "in_temp*_raw", "in_temp*_scale", "in_temp*_offset", "in_temp*_label",
			"in_voltage*_raw", "in_voltage*_scale", "in_voltage*_label"),
		// Sensors on the board's I2C buses, and sensors of the firmware of
		// Agilex.
		below("*-00??/hwmon/hwmon*", hwmonFiles...),
		below("*hwmon*/hwmon/hwmon*", hwmonFiles...),
	),
	find: findManagers,
	open: func(e *env) card { return newSoCCard(e) },
}

// findManagers lists the kernel's FPGA managers by their devices. They include
// the managers of cards of other families, which the Source leaves out.
func findManagers(fs *tree) ([]place, error) {
	names, err := fs.Names("class/fpga_manager")
	if err != nil {
		if absent(err) {
			return nil, nil
		}
		return nil, err
	}
	var places []place
	for _, n := range names {
		at, err := fs.Target("class/fpga_manager/" + n)
		if err != nil {
			continue // it has just left
		}
		dir := path.Dir(path.Dir(at))
		if path.Base(path.Dir(at)) != "fpga_manager" || slices.ContainsFunc(places, func(p place) bool { return p.dir == dir }) {
			continue
		}
		p := place{id: path.Base(dir), dir: dir, kubeIDs: []string{n}}
		if soleManager(fs, dir) {
			p.kubeIDs = append(p.kubeIDs, "1") // by the plugin that numbers devices
		}
		places = append(places, p)
	}
	return places, nil
}

// managerVendors are the vendors of FPGAs by the first word of the name of their
// manager's driver.
var managerVendors = []struct{ prefix, vendor string }{
	{"Xilinx", "amd"}, {"Stratix10", "intel"}, {"SoCFPGA", "intel"}, {"Altera", "intel"}, {"Lattice", "lattice"}, {"Microchip", "microchip"},
}

// managerVendor returns the vendor of the FPGA, empty for an unknown driver.
func managerVendor(name string) string {
	for _, v := range managerVendors {
		if strings.HasPrefix(name, v.prefix) {
			return v.vendor
		}
	}
	return ""
}

// socCard reads one FPGA manager with its regions, bridges and sensors.
type socCard struct {
	*env
	loads uint64 // when the status was last read
	// firmware is the device tree, separately mounted where /sys/firmware is
	// hidden.
	firmware *tree
	base     string
}

// fabric is the region of a manager without regions in sysfs.
const fabric = "fabric"

func newSoCCard(e *env) *socCard {
	c := &socCard{env: e, firmware: e.fs, base: "firmware/devicetree/base"}
	if e.options.Firmware != "" {
		c.firmware, c.base = newTree(sysfs.New(e.options.Firmware), firmwareFiles), ""
	}
	e.manager = newFPGAManager(e.memory.region(fabric))
	return c
}

func (c *socCard) read(r *reading) {
	manager := ""
	for _, n := range namesUnder(c.fs, c.dir+"/fpga_manager") {
		manager = n
	}
	alone := soleManager(c.fs, c.dir)
	rest := c.manager.read(r, manager)
	c.identify(r)
	for _, b := range c.mine("class/fpga_bridge", alone) {
		r.bridge(b+"/state", tidy(path.Base(path.Dir(path.Dir(b)))))
	}
	asked := time.Now()
	var images []string
	for _, dir := range c.mine("class/fpga_region", alone) {
		if image := c.readRegion(r, dir); image != "" {
			images = append(images, image)
		}
	}
	c.manager.region.settle(asked, time.Now(), strings.Join(images, "+"), len(images) > 0)
	c.readStatus(r, rest)
	if alone && !sysfs.PCIAddress(c.id) {
		c.readIIO(r)
		c.readHwmon(r)
	}
}

func (c *socCard) identify(r *reading) {
	name := c.manager.name
	r.Vendor, r.Model = managerVendor(name), name
	if model, ok := c.text(r, "model"); ok && !sysfs.PCIAddress(c.id) {
		r.Model = tidy(model)
	}
	r.info(c.env, r.Driver, r.pci, "", "", "", name)
}

// text reads a property of the device tree once in identityInterval. It is
// absent where the container has no device tree.
func (c *socCard) text(r *reading, property string) (string, bool) {
	text, err := c.firmware.ReadEvery(r.now, identityInterval, path.Join(c.base, property))
	return text, err == nil && text != ""
}

// readHwmon sets the sensors of the power monitors of the board, such as the ina260 of
// a Kria module, and of the firmware of an Agilex. Their power is that
// of the module or of a rail, not of the FPGA.
func (c *socCard) readHwmon(r *reading) {
	taken := map[string]bool{}
	for _, m := range r.findChips(c.options.SlowInterval, func(at string) bool { return !onPCI(at) && boardSensor(deviceOf(at)) }) {
		if !strings.HasPrefix(m.name, "ina2") && m.name != "soc64hwmon" && m.name != "socfpga_hwmon" {
			continue
		}
		r.findSensors(&m, channels, "input", taken, func(kind, id, label string) string {
			title := m.name + " " + cmp.Or(label, id)
			if taken[kind+title] {
				title = m.name + " " + tidy(deviceOf(m.dir)) + " " + id
			}
			return title
		})
		for i := range m.sensors {
			s := &m.sensors[i]
			v, ok := r.value(s.metric, 0, s.input, s.unit)
			if ok {
				r.Set(s.metric, v, s.labels...)
			}
			r.readLimits(c.options.SlowInterval, s, v, ok)
		}
	}
}

// deviceOf is the name of the device of a chip.
func deviceOf(hwmon string) string { return path.Base(path.Dir(path.Dir(hwmon))) }

// boardSensor reports whether a device is on an I2C bus or made for hwmon.
func boardSensor(device string) bool {
	i2c, _ := path.Match("*-00??", device)
	return i2c || strings.Contains(device, "hwmon")
}

// mine lists the devices of a class that belong to the manager: the devices
// below its own device and, where it is the only manager, the devices of no PCI
// card. sysfs does not show which manager a region of the device tree uses.
func (c *socCard) mine(class string, alone bool) []string {
	names, _ := c.fs.Names(class)
	var out []string
	for _, n := range names {
		at, err := c.fs.Target(class + "/" + n)
		if err != nil || len(out) >= maxRegions {
			continue
		}
		if strings.HasPrefix(at, c.dir+"/") || alone && !onPCI(at) {
			out = append(out, at)
		}
	}
	return out
}

// soleManager reports whether the manager of a device is the only one outside PCI
// cards.
func soleManager(fs *tree, dir string) bool {
	if onPCI(dir) {
		return false
	}
	names, _ := fs.Names("class/fpga_manager")
	outside := slices.DeleteFunc(names, func(name string) bool {
		at, err := fs.Target("class/fpga_manager/" + name)
		return err != nil || onPCI(at)
	})
	return len(outside) == 1
}

func onPCI(dir string) bool { return strings.Contains(dir, "/pci") }

// readRegion sets the readings of a region: its compatibility id and the image that
// the device tree requested. It returns the image, empty without an overlay or a device
// tree.
func (c *socCard) readRegion(r *reading, dir string) (image string) {
	device := path.Dir(path.Dir(dir))
	name := tidy(path.Base(device))
	// ENOENT is usual: regions of the device tree have no compat_id.
	if id, ok := r.textEvery(c.options.SlowInterval, dir+"/compat_id"); ok {
		r.bitstream(name, "pr_interface", id)
	}
	node := r.nodeOf(device + "/uevent")
	if node == "" {
		return ""
	}
	raw, err := c.firmware.ReadBytes(path.Join(c.base, node, "firmware-name"), sysfs.Page)
	if image = deviceTreeText(raw); err != nil || image == "" {
		return ""
	}
	r.Set(collector.FPGABitstreamInfo, 1, name, "firmware", image)
	return image
}

// nodeOf returns the path in the device tree of the device with the given
// uevent file, without the leading slash.
func (r *reading) nodeOf(uevent string) string {
	text, ok := r.textEvery(identityInterval, uevent)
	if !ok {
		return ""
	}
	for line := range strings.Lines(text) {
		if node, ok := strings.CutPrefix(strings.TrimSpace(line), "OF_FULLNAME=/"); ok && !strings.Contains(node, "..") {
			return node
		}
	}
	return ""
}

// firmwareFiles are the properties that may be read of a separately mounted
// device tree.
var firmwareFiles = []string{"model", "*/firmware-name"}

// deviceTreeText returns the text of a property: NUL-terminated strings, joined
// by commas.
func deviceTreeText(raw []byte) string {
	var parts []string
	for p := range strings.SplitSeq(string(raw), "\x00") {
		if p = tidy(p); p != "" {
			parts = append(parts, p)
		}
	}
	return tidy(strings.Join(parts, ","))
}

// statusInterval is the time between two reads of the configuration status of the
// ZynqMP fabric, which take a firmware call through the configuration port.
const statusInterval = 30 * time.Second

// statusBits are the bits of the word, from the ABI of zynqmp_fpga_manager.
var statusBits = []struct {
	bit  int
	name string
}{
	{0, "crc_error"},
	{2, "pll_locked"},
	{4, "startup_done"},
	{5, "io_active"},
	{6, "write_enabled"},
	{11, "init_complete"},
	{12, "init_pin"},
	{13, "done_released"},
	{14, "done_pin"},
	{15, "idcode_error"},
	{16, "security_error"},
	{17, "over_temperature"},
}

const donePin = 14

// readStatus sets the bits. The word is not read during a configuration, and
// again after it.
func (c *socCard) readStatus(r *reading, rest bool) {
	if r.Driver != "zynqmp_fpga_manager" {
		return
	}
	if loads := c.manager.region.total(); !rest || loads != c.loads {
		c.loads = loads
		c.fs.Forget()
	}
	if !rest {
		r.Set(collector.FPGABitstreamLoaded, 0, fabric)
		return
	}
	text, ok := r.textEvery(statusInterval, c.dir+"/status")
	if !ok {
		return // before Linux 6.4
	}
	word, ok := hexadecimal(text)
	if !ok {
		r.Reject(collector.FPGAConfigurationStatus, collector.RejectType)
		return
	}
	for _, b := range statusBits {
		r.SetBool(collector.FPGAConfigurationStatus, word>>b.bit&1 == 1, b.name)
	}
	r.SetBool(collector.FPGABitstreamLoaded, word>>donePin&1 == 1, fabric)
}

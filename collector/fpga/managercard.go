package fpga

import (
	"cmp"
	"path"
	"strings"
	"time"

	"github.com/accel-exporter/accel-exporter/collector"
	"github.com/accel-exporter/accel-exporter/collector/sysfs"
)

// managerCard reads one FPGA manager with its regions, bridges and sensors.
type managerCard struct {
	*env
	manager *fpgaManager
	region  string // the region that the manager loads
	status  statusWord

	scanned time.Time
	alone   bool   // no other manager exists
	driver  string // of the manager's device
	regions []managerRegion
	bridges []bridge
	chips   []iioChip
	monitor []chip
	// firmware is the device tree, separately mounted where /sys/firmware is
	// hidden.
	firmware *tree
	base     string
}

// fabric is the region of a manager without regions in sysfs.
const fabric = "fabric"

func newManagerCard(e *env) *managerCard {
	c := &managerCard{env: e, region: fabric, firmware: e.fs, base: "firmware/devicetree/base"}
	if e.options.Firmware != "" {
		c.firmware, c.base = newTree(sysfs.New(e.options.Firmware), firmwareFiles), ""
	}
	c.manager = newFPGAManager(e.memory.region(fabric))
	return c
}

// poll reads the FPGA manager's state.
func (c *managerCard) poll(time.Time) { c.manager.poll(c.pollFS) }

func (c *managerCard) read(r *reading) {
	if r.now.Sub(c.scanned) >= c.options.SlowInterval || !c.fs.Exists(c.manager.at()) {
		c.scan(r)
	}
	rest := c.manager.read(r)
	c.identify(r)
	for i := range c.bridges {
		c.bridges[i].read(r)
	}
	asked := time.Now()
	firmware, known := "", false
	for i := range c.regions {
		id, ok := c.regions[i].read(r, c)
		if ok {
			firmware, known = strings.Join([]string{firmware, id}, "+"), true
		}
	}
	c.manager.region.settle(asked, time.Now(), strings.Trim(firmware, "+"), known)
	c.status.read(r, c, rest)
	for i := range c.chips {
		c.chips[i].read(r)
	}
	c.readHwmon(r)
}

func (c *managerCard) identify(r *reading) {
	name := c.manager.name
	r.Vendor, r.Model = managerVendor(name), name
	if model, ok := c.text(r, "model"); ok && !sysfs.PCIAddress(c.id) {
		r.Model = tidy(model)
	}
	r.info(c.env, c.driver, r.pci, "", "", name)
}

// text reads a property of the device tree once in identityInterval. It is
// absent where the container has no device tree.
func (c *managerCard) text(r *reading, property string) (string, bool) {
	text, err := c.firmware.ReadEvery(r.now, identityInterval, path.Join(c.base, property))
	return text, err == nil && text != ""
}

// scan locates the files of the manager.
func (c *managerCard) scan(r *reading) {
	c.scanned = r.now
	at := ""
	for _, n := range namesUnder(c.fs, c.dir+"/fpga_manager") {
		at = n
	}
	c.manager.moved(at)
	c.driver, _ = c.fs.Link(c.dir + "/driver")
	c.alone = c.soleManager()
	c.regions, c.bridges = nil, nil
	for _, at := range c.mine("class/fpga_region") {
		device := path.Dir(path.Dir(at))
		c.regions = append(c.regions, managerRegion{name: tidy(path.Base(device)), dir: at, uevent: device + "/uevent"})
	}
	for _, at := range c.mine("class/fpga_bridge") {
		c.bridges = append(c.bridges, bridge{file: at + "/state", labels: []string{tidy(path.Base(path.Dir(path.Dir(at))))}})
	}
	c.chips, c.monitor = nil, nil
	if c.alone && !sysfs.PCIAddress(c.id) {
		c.scanIIO(r)
		c.scanHwmon(r)
	}
}

// scanHwmon lists the power monitors of the board, such as the ina260 of a Kria
// module, and the sensors that the firmware of an Agilex measures.
func (c *managerCard) scanHwmon(r *reading) {
	names, _ := c.fs.Names("class/hwmon")
	taken := map[string]bool{}
	for _, n := range names {
		at, err := c.fs.Resolve("class/hwmon/" + n)
		device := path.Base(path.Dir(path.Dir(at)))
		i2c, _ := path.Match("*-00??", device)
		if err != nil || onPCI(at) || !i2c && !strings.Contains(device, "hwmon") || len(c.monitor) >= maxChips {
			continue
		}
		name, ok := r.textEvery(c.options.SlowInterval, at+"/name")
		if !ok || !strings.HasPrefix(name, "ina2") && name != "soc64hwmon" && name != "socfpga_hwmon" {
			continue
		}
		m := chip{dir: at, name: tidy(name)}
		r.findSensors(&m, taken, func(kind, id, label string) string {
			title := m.name + " " + cmp.Or(label, id)
			if taken[kind+title] {
				title = m.name + " " + tidy(device) + " " + id
			}
			return title
		})
		c.monitor = append(c.monitor, m)
	}
}

// readHwmon sets the board's sensors. Their power is that of the module or of a
// rail, not of the FPGA.
func (c *managerCard) readHwmon(r *reading) {
	for i := range c.monitor {
		for n := range c.monitor[i].sensors {
			s := &c.monitor[i].sensors[n]
			v, ok := r.value(s.metric, s.input, s.unit)
			if ok {
				r.Set(s.metric, v, s.labels...)
			}
			r.readLimits(&c.options, s, v, ok)
			r.readAlarms(s)
		}
	}
}

// mine lists the devices of a class that belong to the manager: those below its
// device and, where it is the only one, those of no PCI card. sysfs does not
// show which manager a region of the device tree uses.
func (c *managerCard) mine(class string) []string {
	names, _ := c.fs.Names(class)
	var out []string
	for _, n := range names {
		at, err := c.fs.Resolve(class + "/" + n)
		if err != nil || len(out) >= maxRegions {
			continue
		}
		if strings.HasPrefix(at, c.dir+"/") || c.alone && !onPCI(at) {
			out = append(out, at)
		}
	}
	return out
}

// soleManager reports whether the manager is the only one outside PCI cards.
func (c *managerCard) soleManager() bool {
	names, _ := c.fs.Names("class/fpga_manager")
	n := 0
	for _, name := range names {
		if at, err := c.fs.Resolve("class/fpga_manager/" + name); err == nil && !onPCI(at) {
			n++
		}
	}
	return n == 1 && !onPCI(c.dir)
}

func onPCI(dir string) bool { return strings.Contains(dir, "/pci") }

// managerRegion is one region: its files and its node in the device tree.
type managerRegion struct {
	name, dir, node string
	uevent          string
}

// read sets the readings of a region: its compatibility id and the image that
// the device tree requested. It returns the image.
func (g *managerRegion) read(r *reading, c *managerCard) (string, bool) {
	// ENOENT is usual: regions of the device tree have no compat_id.
	if id, ok := r.textEvery(c.options.SlowInterval, g.dir+"/compat_id"); ok {
		r.bitstream(g.name, "pr_interface", id)
	}
	if g.node == "" {
		g.node = r.nodeOf(g.uevent)
	}
	if g.node == "" {
		return "", false
	}
	raw, err := c.firmware.ReadBytes(path.Join(c.base, g.node, "firmware-name"), sysfs.Page)
	if err != nil {
		return "", false // no overlay, or no device tree
	}
	id := deviceTreeText(raw)
	if id == "" {
		return "", false
	}
	r.Set(collector.FPGABitstreamInfo, 1, g.name, "firmware", id)
	return id, true
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

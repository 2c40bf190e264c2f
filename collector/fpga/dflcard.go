package fpga

import (
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/accel-exporter/accel-exporter/collector"
	"github.com/accel-exporter/accel-exporter/collector/sysfs"
)

// dflCard reads one DFL card. Its directories are listed in each round: the numbers
// in their names change when a driver is bound again.
type dflCard struct {
	*env
	driver *dflDriver
	ports  map[string]*dflPort // by directory
	// calibrated are the memory interfaces that Intel's driver has shown, a bit for each.
	calibrated uint64
}

// dflParts has the paths of a card's parts.
type dflParts struct {
	fme      string // directory, empty on a virtual function
	manager  string // class device of the FPGA manager
	ports    []*dflPort
	regions  []string // files with the compatibility id
	bridges  []string // state files
	features []string // devices of private features
	banks    []string // cal_fail files, one for each memory interface
	emif     string   // directory with the same of all interfaces, by Intel's driver
}

func newDFLCard(e *env, driver *dflDriver) *dflCard {
	// An FME has one manager. Its region is that of the one port of existing
	// cards; a load of a second port is detected by that port's identity.
	e.manager = newFPGAManager(e.memory.region("port0"))
	return &dflCard{env: e, driver: driver}
}

func (c *dflCard) read(r *reading) {
	p := c.list(r)
	rest := c.manager.read(r, p.manager)
	r.Vendor, r.Model = vendorOf(r.pci.vendor), dflModel(r.pci)
	r.info(c.env, r.Driver, r.pci, "", "", "", c.manager.name)
	for i, file := range p.bridges {
		r.bridge(file, "port"+strconv.Itoa(i))
	}
	c.readStatic(r, &p)
	if rest {
		c.readLocked(r, &p)
	} else {
		for _, port := range p.ports {
			port.unloaded(r)
		}
	}
	controllers := c.readSensors(r)
	c.readMemory(r, &p)
	for _, dir := range p.features {
		r.infos(dir, dflFeatures)
	}
	for _, dir := range controllers {
		c.readController(r, dir)
	}
	answers := p.fme != "" || slices.ContainsFunc(p.ports, func(port *dflPort) bool { return port.loadable(r) })
	if r.Down == "" && !r.answered && answers {
		// The rest is from memory.
		r.Down, r.Readings = collector.ReasonError, nil
	}
}

// list lists the card's parts.
func (c *dflCard) list(r *reading) (p dflParts) {
	before := c.ports
	c.ports = map[string]*dflPort{}
	for _, unit := range c.driver.units(c.fs, append([]string{c.dir}, c.claims...)...) {
		if isFME(unit) {
			p.fme = unit
			continue
		}
		port := before[unit]
		if port == nil {
			port = c.newPort(r, unit)
		}
		c.ports[unit] = port
		p.ports = append(p.ports, port)
	}
	slices.SortFunc(p.ports, func(a, b *dflPort) int { return natural(a.dir, b.dir) })
	if p.fme != "" {
		c.listFME(&p)
	}
	return p
}

// listFME lists the parts of the card's management engine.
func (c *dflCard) listFME(p *dflParts) {
	for _, dir := range namesUnder(c.fs, p.fme) {
		switch name := path.Base(dir); {
		case strings.Contains(name, "-fme-mgr."):
			for _, m := range namesUnder(c.fs, dir+"/fpga_manager") {
				p.manager = m
			}
		case strings.Contains(name, "-fme-region."):
			for _, g := range namesUnder(c.fs, dir+"/fpga_region") {
				p.regions = append(p.regions, g+"/compat_id")
			}
		case name == "pr": // of Intel's driver
			p.regions = append(p.regions, dir+"/interface_id")
		case name == "emif_mgmt":
			p.emif = dir
		case strings.Contains(name, "-fme-bridge."):
			for _, b := range namesUnder(c.fs, dir+"/fpga_bridge") {
				p.bridges = append(p.bridges, b+"/state")
			}
		case strings.HasPrefix(name, "dfl_dev."):
			p.features = append(p.features, dir)
			for _, f := range namesUnder(c.fs, dir) {
				if strings.HasSuffix(f, "_cal_fail") {
					p.banks = append(p.banks, f)
				}
			}
		}
	}
	slices.SortFunc(p.banks, natural)
}

// dflStates are the values of the label state of accel_fpga_card_state for this
// driver.
var dflStates = []string{"ready", "function_dead"}

// readLocked reads the files behind the driver's lock, which a reconfiguration
// takes for up to 16 s. While the manager reports one, it is not read.
func (c *dflCard) readLocked(r *reading, p *dflParts) {
	state := ""
	for _, port := range p.ports {
		port.read(r, c)
		if port.state != "" && state != "function_dead" {
			state = port.state
		}
	}
	if state != "" {
		r.states(collector.FPGACardState, dflStates, state)
	}
	if len(p.ports) == 0 {
		c.manager.region.settle(r.now, time.Now(), "", false)
	}
	if p.fme != "" {
		c.readRegisters(r, p.fme+"/errors", c.driver.registers)
	}
}

// readStatic sets the identity of the static region, which a partial
// reconfiguration does not change, and the sensors of the management engine.
func (c *dflCard) readStatic(r *reading, p *dflParts) {
	if p.fme == "" {
		return
	}
	id, ok := r.text(p.fme + "/bitstream_id")
	switch {
	case ok && allOnes(id):
		// The card has left the bus, or its management engine is dead: every
		// register reads as ones.
		r.Down = collector.ReasonLost
		return
	case ok:
		r.bitstream("static", "fim", id)
		// The upper digits are its version, as fpgainfo prints it.
		if v, ok := hexadecimal(id); ok {
			r.Set(collector.FirmwareInfo, 1, "fim", fmt.Sprintf("%d.%d.%d", v>>56&0xf, v>>52&0xf, v>>48&0xf))
		}
	}
	if meta, ok := r.textEvery(identityInterval, p.fme+"/bitstream_metadata"); ok {
		r.bitstream("static", "fim_metadata", meta)
	}
	for i, file := range p.regions {
		// ENOENT: the region accepts any design.
		if id, ok := r.textEvery(c.options.SlowInterval, file); ok && !allOnes(id) {
			r.bitstream("port"+strconv.Itoa(i), "pr_interface", id)
		}
	}
	for _, s := range c.driver.sensors {
		switch v, ok := r.unsigned(s.metric, 0, p.fme+"/"+s.file); {
		case ok && v == 0 && (s.metric == collector.TemperatureCelsius || s.metric == collector.PowerWatts):
			r.Reject(s.metric, collector.RejectSentinel)
		case ok && (v > 0 || s.metric == collector.FPGASensorAlarm):
			r.Set(s.metric, float64(v), s.labels...)
		}
	}
}

// readMemory sets whether the memory interfaces are calibrated.
func (c *dflCard) readMemory(r *reading, p *dflParts) {
	if p.emif != "" {
		c.readInterfaces(r, p.emif)
	}
	for i, file := range p.banks {
		failed, ok1 := r.text(file)
		done, ok2 := r.text(strings.TrimSuffix(file, "_cal_fail") + "_init_done")
		isBit := func(s string) bool { return s == "0" || s == "1" }
		switch {
		case !ok1 || !ok2:
		case !isBit(failed) || !isBit(done):
			r.Reject(collector.FPGAMemoryCalibrated, collector.RejectType)
		default:
			r.SetBool(collector.FPGAMemoryCalibrated, failed == "0" && done == "1", "emif"+strconv.Itoa(i))
		}
	}
}

// readInterfaces sets the same from the two masks of Intel's driver. No file has the number
// of interfaces of the card, so a bit counts from the first time that a mask has it set.
func (c *dflCard) readInterfaces(r *reading, dir string) {
	complete, ok1 := r.unsigned(collector.FPGAMemoryCalibrated, 0, dir+"/complete")
	failed, ok2 := r.unsigned(collector.FPGAMemoryCalibrated, 0, dir+"/calibration_failure")
	if !ok1 || !ok2 {
		return
	}
	c.calibrated |= complete | failed
	for i := range 64 {
		if c.calibrated>>i&1 == 1 {
			r.SetBool(collector.FPGAMemoryCalibrated, complete>>i&1 == 1 && failed>>i&1 == 0, "emif"+strconv.Itoa(i))
		}
	}
}

// infoFile is a file with a text that becomes the last label of a reading.
type infoFile struct {
	file   string
	every  time.Duration
	metric *collector.Metric
	labels []string // label values before the text
}

// The files with a text of a private feature, of the board's controller and of its
// updates, relative to the directory of the device.
var (
	dflFeatures   = []infoFile{{"nios_fw_version", identityInterval, collector.FirmwareInfo, []string{"nios"}}}
	dflController = []infoFile{
		{"bmc_version", identityInterval, collector.FirmwareInfo, []string{"max10"}},
		{"bmcfw_version", identityInterval, collector.FirmwareInfo, []string{"bmc"}},
	}
	dflKeys = []infoFile{
		{"security/sr_root_entry_hash", identityInterval, collector.FPGARootKeyInfo, []string{"sr"}},
		{"security/pr_root_entry_hash", identityInterval, collector.FPGARootKeyInfo, []string{"pr"}},
		{"security/bmc_root_entry_hash", identityInterval, collector.FPGARootKeyInfo, []string{"bmc"}},
	}
	dflUpdates = []infoFile{
		{"control/fpga_boot_image", defaultSlowInterval, collector.FPGABitstreamInfo, []string{"static", "boot_image"}},
		{"control/power_on_image", defaultSlowInterval, collector.FPGABitstreamInfo, []string{"static", "power_on_image"}},
	}
)

// infos sets the texts of a device.
func (r *reading) infos(dir string, table []infoFile) {
	for _, f := range table {
		text, ok := r.textEvery(f.every, dir+"/"+f.file)
		if text = tidy(text); !ok || text == "" {
			continue
		}
		if text == "hash not programmed" {
			text = "none"
		}
		if f.metric == collector.FirmwareInfo {
			text = dflVersion(text)
		}
		r.Set(f.metric, 1, append(slices.Clone(f.labels), text)...)
	}
}

// dflVersion returns a version of four bytes as its release notes write it, D.2.0.20 for
// 0x44020014 and 3.2.0 for 0x30200. The first byte is the letter of a board, or absent.
func dflVersion(text string) string {
	v, ok := hexadecimal(text)
	if !ok || !strings.HasPrefix(text, "0x") || v >= 1<<32 {
		return text
	}
	numbers := fmt.Sprintf("%d.%d.%d", byte(v>>16), byte(v>>8), byte(v))
	switch board := byte(v >> 24); {
	case board == 0:
		return numbers
	case board >= 'A' && board <= 'Z':
		return string(board) + "." + numbers
	}
	return text
}

// updateErrors are the texts of a failed firmware upload as printed by
// drivers/base/firmware_loader/sysfs_upload.c.
var updateErrors = []string{"hw-error", "timeout", "user-abort", "device-busy", "invalid-file-size", "read-write-error", "flash-wearout", "firmware-invalid"}

// readController reads the board's controller and its updates: the error of the last one,
// from its device in the class firmware: empty without one, EBUSY while an update runs,
// else step:error.
func (c *dflCard) readController(r *reading, dir string) {
	r.infos(dir, dflController)
	for _, updates := range namesUnder(c.fs, dir) {
		if strings.HasPrefix(path.Base(updates), "m10bmc-secure.") { // of Intel's driver
			for _, s := range namesUnder(c.fs, updates+"/ifpga_sec_mgr") {
				r.infos(s, dflKeys)
			}
		}
		if !strings.Contains(path.Base(updates), "-sec-update.") {
			continue
		}
		r.infos(updates, dflKeys)
		r.infos(updates, dflUpdates)
		for _, upload := range namesUnder(c.fs, updates+"/firmware") {
			text, ok := r.textEvery(c.options.SlowInterval, upload+"/error")
			if !ok || text == "" {
				continue
			}
			_, name, _ := strings.Cut(text, ":")
			if !slices.Contains(updateErrors, name) {
				name = "other"
			}
			r.Set(collector.FPGAFirmwareUpdateError, 1, name)
		}
	}
}

// bitstream sets an identity that the driver prints in hexadecimal digits.
func (r *reading) bitstream(region, kind, id string) {
	id = strings.ToLower(id)
	if digits := strings.TrimPrefix(id, "0x"); len(id) > labelBytes || !sysfs.Hex(digits) {
		r.Reject(collector.FPGABitstreamInfo, collector.RejectType)
		return
	}
	r.Set(collector.FPGABitstreamInfo, 1, region, kind, id)
}

// allOnes reports whether a hexadecimal text is all ones, as read from a device
// that does not answer.
func allOnes(text string) bool {
	digits := strings.TrimPrefix(strings.ToLower(text), "0x")
	return len(digits) >= 8 && strings.Trim(digits, "f") == ""
}

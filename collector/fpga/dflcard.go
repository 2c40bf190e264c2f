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

// dflCard reads one DFL card. Its files are located every SlowInterval, and
// again when one of them disappears: the numbers in their paths change when a
// driver is bound again.
type dflCard struct {
	*env
	units   unitNames
	layout  dflLayout
	scanned time.Time
	// missed: a file of the layout has disappeared.
	missed  bool
	manager *fpgaManager
}

// dflLayout has the paths of a card's files.
type dflLayout struct {
	fme       string // directory, empty on a virtual function
	answers   bool   // it has a file that is read in each round
	registers []register
	ports     []*dflPort
	manager   string
	regions   []string // compat_id files
	bridges   []string
	chips     []chip
	banks     []string // cal_fail files, one for each memory interface
	infos     []infoFile
	numbers   []numberFile
	update    string // class device of the firmware update
	flash     string // count of updates of the flash
}

// infoFile is a file with a text that becomes the last label of a reading.
type infoFile struct {
	file   string
	every  time.Duration
	metric *collector.Metric
	labels []string // label values before the text
}

// numberFile is a file with a positive number.
type numberFile struct {
	file   string
	metric *collector.Metric
	labels []string
}

// dflFeatures and dflController are the files with a text of a private feature
// and of the board's controller, relative to the directory of the device.
var (
	dflFeatures   = []infoFile{{"nios_fw_version", identityInterval, collector.FirmwareInfo, []string{"nios"}}}
	dflController = []infoFile{
		{"bmc_version", identityInterval, collector.FirmwareInfo, []string{"max10"}},
		{"bmcfw_version", identityInterval, collector.FirmwareInfo, []string{"bmc"}},
		{"security/sr_root_entry_hash", identityInterval, collector.FPGARootKeyInfo, []string{"sr"}},
		{"security/pr_root_entry_hash", identityInterval, collector.FPGARootKeyInfo, []string{"pr"}},
		{"security/bmc_root_entry_hash", identityInterval, collector.FPGARootKeyInfo, []string{"bmc"}},
		{"control/fpga_boot_image", defaultSlowInterval, collector.FPGABitstreamInfo, []string{"static", "boot_image"}},
		{"control/power_on_image", defaultSlowInterval, collector.FPGABitstreamInfo, []string{"static", "power_on_image"}},
	}
)

func newDFLCard(e *env, units unitNames) *dflCard {
	// An FME has one manager. Its region is that of the one port of existing
	// cards; a load of a second port is detected by that port's identity.
	return &dflCard{env: e, units: units, manager: newFPGAManager(e.memory.region("port0"))}
}

// poll reads the FPGA manager's state.
func (c *dflCard) poll(time.Time) { c.manager.look(c.pollFS) }

func (c *dflCard) read(r *reading) {
	if c.missed || r.now.Sub(c.scanned) >= c.options.SlowInterval {
		c.scan(r)
	}
	rest := c.manager.read(r)
	r.Vendor, r.Model = vendorOf(r.pci.vendor), dflModel(r.pci)
	r.info(c.env, r.Driver, r.pci, "", "", c.manager.name)
	for i, file := range c.layout.bridges {
		r.bridge(file, "port"+strconv.Itoa(i))
	}
	c.readStatic(r)
	if rest {
		c.readLocked(r)
	} else {
		for _, p := range c.layout.ports {
			p.unloaded(r)
		}
	}
	c.readSensors(r)
	c.readBoard(r)
	c.missed = c.missed || c.layout.manager != "" && !c.fs.Exists(c.layout.manager)
	if r.Down == "" && !r.answered && c.layout.answers {
		// The rest is from memory.
		r.Down, r.Readings = collector.ReasonError, nil
	}
}

// dflStates are the values of the label state of accel_fpga_card_state for this
// driver.
var dflStates = []string{"ready", "function_dead"}

// readLocked reads what is behind the driver's lock, which a reconfiguration
// takes for up to 16 s. While the manager reports one, it is not read.
func (c *dflCard) readLocked(r *reading) {
	state := ""
	for _, p := range c.layout.ports {
		p.read(r, c)
		if p.state != "" && state != "function_dead" {
			state = p.state
		}
	}
	if state != "" {
		r.states(collector.FPGACardState, dflStates, state)
	}
	if len(c.layout.ports) == 0 {
		c.manager.region.settle(r.now, time.Now(), "", false)
	}
	for i := range c.layout.registers {
		c.layout.registers[i].read(r, c)
	}
}

// scan locates the card's files.
func (c *dflCard) scan(r *reading) {
	c.scanned, c.missed = r.now, false
	was := c.layout
	l := dflLayout{}
	for _, n := range c.units.list(c.fs, append([]string{c.dir}, c.claims...)...) {
		if isFME(n) {
			l.fme, l.answers = n, true
			c.scanFME(&l)
			continue
		}
		p := c.scanPort(r, n, was.ports)
		l.ports = append(l.ports, p)
		l.answers = l.answers || p.has["afu_id"]
	}
	slices.SortFunc(l.ports, func(a, b *dflPort) int { return natural(a.dir, b.dir) })
	c.scanChips(r, &l)
	c.layout = l
	c.manager.moved(l.manager)
}

// scanFME lists the files of the card's management engine.
func (c *dflCard) scanFME(l *dflLayout) {
	for _, n := range namesUnder(c.fs, l.fme) {
		name := path.Base(n)
		switch {
		case strings.Contains(name, "-fme-mgr."):
			for _, m := range namesUnder(c.fs, n+"/fpga_manager") {
				l.manager = m
			}
		case strings.Contains(name, "-fme-region."):
			for _, g := range namesUnder(c.fs, n+"/fpga_region") {
				l.regions = append(l.regions, g+"/compat_id")
			}
		case strings.Contains(name, "-fme-bridge."):
			for _, b := range namesUnder(c.fs, n+"/fpga_bridge") {
				l.bridges = append(l.bridges, b+"/state")
			}
		case strings.HasPrefix(name, "dfl_dev."):
			c.scanInfos(n, dflFeatures, l)
			for _, f := range namesUnder(c.fs, n) {
				if strings.HasSuffix(f, "_cal_fail") {
					l.banks = append(l.banks, f)
				}
			}
		case name == "errors":
			l.registers = c.registers(n, fmeRegisters)
		case name == "pr":
			l.regions = append(l.regions, n+"/interface_id")
		}
	}
	for _, f := range intelNumbers {
		if f.file = l.fme + "/" + f.file; c.fs.Exists(f.file) {
			l.numbers = append(l.numbers, f)
		}
	}
	slices.SortFunc(l.banks, natural)
}

// scanInfos lists the files of a table that a device has.
func (c *dflCard) scanInfos(dir string, table []infoFile, l *dflLayout) {
	for _, f := range table {
		if f.file = dir + "/" + f.file; c.fs.Exists(f.file) {
			l.infos = append(l.infos, f)
		}
	}
}

// scanController lists the files of the board's controller and of its updates.
func (c *dflCard) scanController(dir string, l *dflLayout) {
	c.scanInfos(dir, dflController, l)
	for _, n := range namesUnder(c.fs, dir) {
		if !strings.Contains(path.Base(n), "-sec-update.") {
			continue
		}
		c.scanInfos(n, dflController, l)
		if f := n + "/security/flash_count"; c.fs.Exists(f) {
			l.flash = f
		}
		for _, f := range namesUnder(c.fs, n+"/firmware") {
			l.update = f
		}
	}
}

// readStatic sets the identity of the static region, which a partial
// reconfiguration does not change.
func (c *dflCard) readStatic(r *reading) {
	if c.layout.fme == "" {
		return
	}
	id, ok := r.text(c.layout.fme + "/bitstream_id")
	switch {
	case !ok:
		c.missed = true
	case allOnes(id):
		// The card has left the bus, or its management engine is dead: every
		// register reads as ones.
		r.Down = collector.ReasonLost
		return
	default:
		r.bitstream("static", "fim", id)
	}
	if meta, ok := r.textEvery(identityInterval, c.layout.fme+"/bitstream_metadata"); ok {
		r.bitstream("static", "fim_metadata", meta)
	}
	for i, file := range c.layout.regions {
		// ENOENT: the region accepts any design.
		if id, ok := r.textEvery(c.options.SlowInterval, file); ok && !allOnes(id) {
			r.bitstream("port"+strconv.Itoa(i), "pr_interface", id)
		}
	}
}

// readBoard sets everything except sensors and regions.
func (c *dflCard) readBoard(r *reading) {
	for i, file := range c.layout.banks {
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
	for _, f := range c.layout.numbers {
		switch v, ok := r.unsigned(f.metric, 0, f.file); {
		case ok && v == 0:
			r.Reject(f.metric, collector.RejectSentinel)
		case ok:
			r.Set(f.metric, float64(v), f.labels...)
		}
	}
	for _, f := range c.layout.infos {
		text, ok := r.textEvery(f.every, f.file)
		if text = tidy(text); !ok || text == "" {
			continue
		}
		if text == "hash not programmed" {
			text = "none"
		}
		r.Set(f.metric, 1, append(slices.Clone(f.labels), text)...)
	}
	if f := c.layout.flash; f != "" {
		// Each read scans the flash.
		r.number(collector.FPGAFlashWrites, rareInterval, f, 1)
	}
	if dir := c.layout.update; dir != "" {
		c.readUpdate(r, dir)
	}
}

// updateErrors are the texts of a failed firmware upload as printed by
// drivers/base/firmware_loader/sysfs_upload.c.
var updateErrors = []string{"hw-error", "timeout", "user-abort", "device-busy", "invalid-file-size", "read-write-error", "flash-wearout", "firmware-invalid"}

// readUpdate sets the error of the last update of the card's flash, from its
// device in the class firmware: empty without one, EBUSY while an update runs,
// else step:error.
func (c *dflCard) readUpdate(r *reading, dir string) {
	text, ok := r.textEvery(c.options.SlowInterval, dir+"/error")
	if !ok || text == "" {
		return
	}
	_, name, _ := strings.Cut(text, ":")
	if !slices.Contains(updateErrors, name) {
		name = "other"
	}
	r.Set(collector.FPGAFirmwareUpdateError, 1, name)
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

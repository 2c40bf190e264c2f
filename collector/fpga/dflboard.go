package fpga

import (
	"path"
	"slices"
	"strings"

	"github.com/accel-exporter/accel-exporter/collector"
)

// dflBank is one memory interface, dflCage one module cage, dflVersion one
// firmware of the board.
type (
	dflBank struct {
		failed, done string
		labels       []string
	}
	dflCage struct {
		file   string
		labels []string
	}
	dflVersion struct{ file, component string }
)

// dflBMC has the files of the board controller.
type dflBMC struct {
	keys   []dflVersion // root key hashes; component is the key
	flash  string
	images []dflVersion // component is the kind
	update string       // class device of the firmware update
}

// scanFeature lists the files of a private feature.
func (c *dflCard) scanFeature(dir string, l *dflLayout) {
	for _, n := range namesUnder(c.fs, dir) {
		name := path.Base(n)
		switch {
		case strings.HasSuffix(name, "_cal_fail"):
			done := strings.TrimSuffix(n, "_cal_fail") + "_init_done"
			l.banks = append(l.banks, dflBank{failed: n, done: done})
		case name == "qsfp_connected":
			l.cages = append(l.cages, dflCage{file: n})
		case name == "nios_fw_version":
			l.versions = append(l.versions, dflVersion{n, "nios"})
		case name == "retimer_A_mode", name == "retimer_B_mode", name == "fec_mode":
			l.network = append(l.network, dflVersion{n, strings.ToLower(name)})
		}
	}
}

// scanChips lists the card's sensors and, by their location, the board
// controller.
func (c *dflCard) scanChips(r *reading, l *dflLayout) {
	taken := map[string]bool{}
	for _, chip := range r.findChips(c.dir) {
		// The controller's device: …/spi4.0/n3000bmc-hwmon.6.auto/hwmon/hwmon6.
		device := path.Dir(path.Dir(chip.dir))
		if strings.Contains(path.Base(device), "bmc-hwmon") {
			c.scanBMC(path.Dir(device), l)
		}
		if chip.name == "dfl_fme_thermal" && r.dummy(&chip, c.fs) {
			continue
		}
		r.findSensors(&chip, taken, func(kind, id, label string) string { return dflSensorTitle(chip.name, kind, id, label) })
		for i := range chip.sensors {
			s := &chip.sensors[i]
			if s.kind == "power" && (chip.name == "dfl_fme_power" || s.label == boardPower) {
				s.metric, s.labels = collector.PowerWatts, nil
			}
			if s.kind == "power" {
				s.limits = dflPowerLimits(&chip, c.fs)
			}
		}
		l.chips = append(l.chips, chip)
	}
}

const boardPower = "Board Power"

// dflSensorTitle names the sensors of the FME, which have no labels.
func dflSensorTitle(chip, _, id, label string) string {
	switch {
	case label != "":
		return label
	case chip == "dfl_fme_thermal":
		return "FPGA"
	case chip == "dfl_fme_power":
		return boardPower
	}
	return id
}

// dummy reports whether a chip of the FME measures nothing: OFS cards have the
// feature without a sensor; it reads 0 and has no thresholds.
func (r *reading) dummy(c *chip, fs *tree) bool {
	for _, n := range namesUnder(fs, c.dir) {
		if strings.HasPrefix(path.Base(n), "temp1_") && path.Base(n) != "temp1_input" {
			return false
		}
	}
	text, ok := r.text(c.dir + "/temp1_input")
	return ok && text == "0"
}

// dflPowerLimits are the thresholds of the FME's power sensor. They are
// writable and only read.
func dflPowerLimits(c *chip, fs *tree) []limit {
	var out []limit
	if c.name != "dfl_fme_power" {
		return nil
	}
	for _, f := range []suffix{{"power1_max", "warning"}, {"power1_crit", "critical"}} {
		if fs.Exists(c.dir + "/" + f.file) {
			out = append(out, limit{c.dir + "/" + f.file, f.name, []string{f.name}})
		}
	}
	return out
}

// scanBMC lists the controller's identity, keys and updates.
func (c *dflCard) scanBMC(dir string, l *dflLayout) {
	for _, n := range namesUnder(c.fs, dir) {
		switch name := path.Base(n); {
		case name == "bmc_version":
			l.versions = append(l.versions, dflVersion{n, "max10"})
		case name == "bmcfw_version":
			l.versions = append(l.versions, dflVersion{n, "bmc"})
		case name == "mac_address", name == "mac_count":
			l.network = append(l.network, dflVersion{n, name})
		case strings.Contains(name, "-sec-update."):
			for _, f := range namesUnder(c.fs, n+"/security") {
				if key, ok := strings.CutSuffix(path.Base(f), "_root_entry_hash"); ok && (key == "sr" || key == "pr" || key == "bmc") {
					l.bmc.keys = append(l.bmc.keys, dflVersion{f, key})
				}
				if path.Base(f) == "flash_count" {
					l.bmc.flash = f
				}
			}
			for _, i := range []dflVersion{{"fpga_boot_image", "boot_image"}, {"power_on_image", "power_on_image"}} {
				if f := n + "/control/" + i.file; c.fs.Exists(f) {
					l.bmc.images = append(l.bmc.images, dflVersion{f, i.component})
				}
			}
			for _, f := range namesUnder(c.fs, n+"/firmware") {
				l.bmc.update = f
			}
		}
	}
}

// readBoard sets everything except sensors and regions.
func (c *dflCard) readBoard(r *reading) {
	for _, b := range c.layout.banks {
		failed, ok1 := r.text(b.failed)
		done, ok2 := r.text(b.done)
		isBit := func(s string) bool { return s == "0" || s == "1" }
		switch {
		case !ok1 || !ok2:
		case !isBit(failed) || !isBit(done):
			r.Reject(collector.FPGAMemoryCalibrated, collector.RejectType)
		default:
			r.SetBool(collector.FPGAMemoryCalibrated, failed == "0" && done == "1", b.labels...)
		}
	}
	for _, q := range c.layout.cages {
		if v, ok := r.value(collector.FPGAModuleConnected, q.file, 1); ok {
			r.Set(collector.FPGAModuleConnected, v, q.labels...)
		}
	}
	for _, v := range c.layout.versions {
		if text, ok := r.textEvery(identityInterval, v.file); ok && text != "" {
			r.Set(collector.FirmwareInfo, 1, v.component, tidy(text))
		}
	}
	for _, k := range c.layout.bmc.keys {
		if text, ok := r.textEvery(identityInterval, k.file); ok && text != "" {
			if text == "hash not programmed" {
				text = "none"
			}
			r.Set(collector.FPGARootKeyInfo, 1, k.component, tidy(text))
		}
	}
	for _, i := range c.layout.bmc.images {
		if text, ok := r.textEvery(c.options.SlowInterval, i.file); ok && text != "" {
			r.Set(collector.FPGABitstreamInfo, 1, "static", i.component, tidy(text))
		}
	}
	for _, p := range c.layout.network {
		if text, ok := r.textEvery(identityInterval, p.file); ok && text != "" {
			r.Set(collector.FPGANetworkInfo, 1, p.component, tidy(text))
		}
	}
	if f := c.layout.bmc.flash; f != "" {
		// Each read scans the flash.
		if text, ok := r.textEvery(rareInterval, f); ok {
			if v, ok := r.whole(collector.FPGAFlashWrites, text, 1); ok {
				r.Set(collector.FPGAFlashWrites, v)
			}
		}
	}
	if dir := c.layout.bmc.update; dir != "" {
		r.readUpdate(&c.options, dir)
	}
}

// updateSteps and updateErrors are the texts of a firmware upload as printed by
// drivers/base/firmware_loader/sysfs_upload.c.
var (
	updateSteps  = []string{"idle", "receiving", "preparing", "transferring", "programming"}
	updateErrors = []string{"hw-error", "timeout", "user-abort", "device-busy", "invalid-file-size", "read-write-error", "flash-wearout", "firmware-invalid"}
)

// readUpdate sets the progress of an update of the card's flash, from its
// device in the class firmware.
func (r *reading) readUpdate(o *Options, dir string) {
	step, ok := r.textEvery(o.SlowInterval, dir+"/status")
	if !ok {
		return
	}
	for _, s := range updateSteps {
		r.SetBool(collector.FPGAFirmwareUpdate, s == step, s)
	}
	r.SetBool(collector.FPGAFirmwareUpdate, !slices.Contains(updateSteps, step), "other")
	if text, ok := r.textEvery(o.SlowInterval, dir+"/remaining_size"); ok {
		if v, ok := r.whole(collector.FPGAFirmwareUpdateRemaining, text, 1); ok {
			r.Set(collector.FPGAFirmwareUpdateRemaining, v)
		}
	}
	// Empty without an error, EBUSY while the update runs, else step:error.
	if text, ok := r.textEvery(o.SlowInterval, dir+"/error"); ok && text != "" {
		_, name, found := strings.Cut(text, ":")
		if !found || !slices.Contains(updateErrors, name) {
			name = "other"
		}
		r.Set(collector.FPGAFirmwareUpdateError, 1, name)
	}
}

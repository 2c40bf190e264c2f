package fpga

import (
	"slices"
	"strings"
	"time"

	"github.com/accel-exporter/accel-exporter/collector"
	"github.com/accel-exporter/accel-exporter/collector/sysfs"
)

// identify sets the card's identity. It does not change while the drivers are
// bound, except by a firmware update.
func (a *alveo) identify(r *reading) {
	r.Vendor = "amd"
	rom := []string{a.user.one("rom"), a.mgmt.one("rom")}
	boards := []string{a.mgmt.one("xmc", "xmc.u2"), a.user.one("xmc", "xmc.u2")}
	versals := []string{a.mgmt.one("hwmon_sdm"), a.user.one("hwmon_sdm")}
	controllers := slices.Concat(boards, versals)
	functions := []string{a.user.dir, a.mgmt.dir}
	vbnv := a.first(r, identityInterval, rom, "VBNV")
	part := a.first(r, identityInterval, rom, "FPGA")
	serial := a.first(r, identityInterval, controllers, "serial_num")
	number := a.first(r, identityInterval, versals, "bd_part_num")
	r.Model = productName(a.first(r, identityInterval, controllers, "bd_name"), a.first(r, never, functions, "board_name"), vbnv)

	r.Set(collector.DeviceInfo, 1, string(collector.FPGA), r.Vendor, r.Model, part, "", r.PCI, r.pci.node, serial, number, "")
	driver := "xocl"
	if a.user.dir == "" {
		driver = "xclmgmt"
	}
	if r.pci.vendor != "" {
		r.Set(collector.FPGAInfo, 1, a.family.name, driver, r.pci.vendor+":"+r.pci.device, "")
	}
	for _, f := range []struct {
		component, file string
		dirs            []string
	}{{"sc", "bmc_ver", boards}, {"sc_expected", "exp_bmc_ver", boards}, {"sc", "active_msp_ver", versals}, {"cmc", "version", boards}} {
		if v := a.first(r, identityInterval, f.dirs, f.file); v != "" && v != "0" {
			r.Set(collector.FirmwareInfo, 1, f.component, v)
		}
	}

	static := func(kind, id string) {
		if id != "" {
			r.Set(collector.FPGABitstreamInfo, 1, "static", kind, strings.ToLower(id))
		}
	}
	static("shell", vbnv)
	if stamp := a.first(r, identityInterval, rom, "timestamp"); stamp != "0" {
		static("shell_timestamp", stamp)
	}
	// Two-stage shells print uuids without dashes.
	for _, id := range a.uuids(r, "logic_uuids") {
		static("logic", id)
	}
	for _, id := range a.uuids(r, "interface_uuids") {
		static("interface", id)
	}
}

// first returns the text of a file in the first directory that has it, fit for
// a label. Where none has one now, it returns the last one: an identity does
// not change because the board's controller does not answer.
func (a *alveo) first(r *reading, interval time.Duration, dirs []string, file string) string {
	for _, d := range dirs {
		if d == "" {
			continue
		}
		if text, ok := r.textEvery(interval, d+"/"+file); ok {
			if text = labelText(text); text != "" {
				a.identity[file] = text
				break
			}
		}
	}
	return a.identity[file]
}

// uuids reads a list of uuids of the user function. A shell without any returns
// EINVAL.
func (a *alveo) uuids(r *reading, file string) []string {
	if a.user.dir == "" {
		return nil
	}
	text, err := r.fs.ReadEvery(r.now, never, a.user.dir+"/"+file)
	if err != nil {
		return nil
	}
	var ids []string
	for id := range strings.FieldsSeq(text) {
		if id = strings.ToLower(id); (isUUID(id) || isHexID(id)) && len(ids) < maxSlots {
			ids = append(ids, id)
		}
	}
	return ids
}

// isHexID reports whether s is a uuid without dashes.
func isHexID(s string) bool {
	return len(s) == 32 && sysfs.Hex(s)
}

// productName is the name from the board's controller, else one made of the
// driver's name for the board, else the shell's.
func productName(board, short, vbnv string) string {
	switch {
	case board != "":
		return board
	case len(short) > 1 && (short[0] == 'u' || short[0] == 'v') && short[1] >= '0' && short[1] <= '9':
		return "ALVEO " + strings.ToUpper(short)
	case short != "":
		return short
	}
	return vbnv
}

package fpga

import (
	"path"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/accel-exporter/accel-exporter/collector"
	"github.com/accel-exporter/accel-exporter/collector/sysfs"
)

// firewalls sets whether the card's AXI firewalls have cut off the loaded
// design. Only the management function has the current state: the user function
// prints the state of the last request.
func (a *alveo) firewalls(r *reading) {
	var causes []string
	read := 0
	all := a.mgmt.of("firewall")
	for i, dir := range all {
		text, ok := r.text(dir + "/level")
		if !ok {
			continue
		}
		level, tripped, ok := parseLevel(text)
		if !ok {
			r.Reject(collector.FPGAFirewallTripped, collector.RejectType)
			continue
		}
		read++
		name := "axi" + strconv.Itoa(i)
		r.SetBool(collector.FPGAFirewallTripped, tripped, a.labels.of(name, "")[:1]...)
		if tripped {
			causes = append(causes, a.cause(r, dir, name, level)...)
		}
		if text, ok := r.text(dir + "/detected_time"); ok && text != "0" {
			if at, ok := a.natural(r, collector.FPGAFirewallTripTime, text); ok {
				r.Set(collector.FPGAFirewallTripTime, float64(at), a.labels.of(name, "")[:1]...)
			}
		}
	}
	if read < len(all) || read == 0 {
		return // the latch covers all of them
	}
	slices.Sort(causes)
	causes = slices.Compact(causes)
	a.memory.latched("firewall", causes, func(labels []string, on bool) {
		r.SetBool(collector.FPGAErrorLatched, on, labels...)
	})
	r.Set(collector.FPGAErrorsLatched, float64(len(causes)), "firewall")
}

// cause sets which firewall has tripped and returns its errors.
func (a *alveo) cause(r *reading, dir, name string, level uint64) []string {
	text, _ := r.text(dir + "/detected_trip")
	where, causes := parseTrip(text)
	if where == "" {
		where, _ = r.text(dir + "/detected_level_name")
		where = labelText(where)
	}
	r.Set(collector.FPGAFirewallTripInfo, 1, name, strconv.FormatUint(level, 10), where)
	if len(causes) == 0 {
		return []string{"unknown"}
	}
	return causes
}

// ecc sets the errors of the memory controllers, corrected or not, since the
// image was loaded. DDR controllers do not count uncorrected errors, but latch
// that one occurred. Only the management function has them.
func (a *alveo) ecc(r *reading) {
	for _, kind := range []string{"mig", "mig.hbm"} {
		for _, dir := range a.mgmt.of(kind) {
			name, _ := r.textEvery(never, dir+"/name")
			if name = labelText(name); name == "" {
				name = path.Base(dir)
			}
			on, ok := a.slow(r, collector.FPGAMemoryECCEnabled, dir+"/ecc_enabled")
			if !ok {
				continue
			}
			r.SetBool(collector.FPGAMemoryECCEnabled, on != 0, a.labels.of(name, "")[:1]...)
			if on == 0 {
				continue
			}
			if status, ok := a.slow(r, collector.FPGAMemoryECCLatched, dir+"/ecc_status"); ok {
				r.SetBool(collector.FPGAMemoryECCLatched, status&2 != 0, a.labels.of(name, "corrected")...)
				r.SetBool(collector.FPGAMemoryECCLatched, status&1 != 0, a.labels.of(name, "uncorrected")...)
			}
			if n, ok := a.slow(r, collector.FPGAMemoryECCErrors, dir+"/ecc_ce_cnt"); ok {
				r.Set(collector.FPGAMemoryECCErrors, float64(n), a.labels.of(name, "corrected")...)
			}
			if kind != "mig.hbm" {
				continue
			}
			if n, ok := a.slow(r, collector.FPGAMemoryECCErrors, dir+"/ecc_ue_cnt"); ok {
				r.Set(collector.FPGAMemoryECCErrors, float64(n), a.labels.of(name, "uncorrected")...)
			}
		}
	}
	a.calibration(r)
}

// slow reads a number at most once in an interval.
func (a *alveo) slow(r *reading, m *collector.Metric, file string) (uint64, bool) {
	text, ok := r.textEvery(a.options.SlowInterval, file)
	if !ok {
		return 0, false
	}
	return a.natural(r, m, text)
}

// calibration sets whether the memory interfaces are calibrated. A card without
// such memory always returns 0, so 0 counts only after a 1.
func (a *alveo) calibration(r *reading) {
	file := a.mgmt.file("mig_calibration")
	if file == "" {
		file = a.user.file("mig_calibration")
	}
	if file == "" {
		return
	}
	v, ok := a.slow(r, collector.FPGAMemoryCalibrated, file)
	if !ok {
		return
	}
	a.known["mig_calibration"] = a.known["mig_calibration"] || v != 0
	if a.known["mig_calibration"] {
		r.SetBool(collector.FPGAMemoryCalibrated, v != 0, a.labels.of("all", "")[:1]...)
	}
}

// labelledBank is a memory bank of the loaded image.
type labelledBank struct {
	memBank
	host bool // host memory that the card may use
}

// memories sets the buffers that programs have allocated through xocl, by bank
// of the loaded image. Other use of the memory is unknown.
func (a *alveo) memories(r *reading) {
	if a.user.dir == "" || a.unitsLeft || a.image == "" {
		return
	}
	text, ok := r.got(a.withoutImage(r.fs.Read(a.user.file("memstat_raw"))))
	if !ok || text == "" {
		return
	}
	use, ok := parseMemStat(text)
	if !ok {
		r.Reject(collector.FPGABankUsed, collector.RejectType)
		return
	}
	if len(a.banks) != len(use) {
		a.nameBanks(r, len(use))
	}
	var used, total uint64
	for i, b := range a.banks {
		if !b.host {
			used += use[i].bytes
			total += b.bytes
		}
		if !b.used && use[i].buffers == 0 {
			continue
		}
		l := a.labels.of(b.name, "")[:1]
		r.Set(collector.FPGABankUsed, float64(use[i].bytes), l...)
		r.Set(collector.FPGABankBuffers, float64(use[i].buffers), l...)
		if b.bytes > 0 {
			r.Set(collector.FPGABankTotal, float64(b.bytes), l...)
		}
	}
	if total > 0 {
		r.Set(collector.MemoryTotal, float64(total))
		r.Set(collector.MemoryUsed, float64(used))
	}
}

// withoutImage discards the driver's EINVAL, its answer while no image is
// loaded.
func (a *alveo) withoutImage(text string, err error) (string, error) {
	if sysfs.Errno(err) == syscall.EINVAL {
		return "", nil
	}
	return text, err
}

// nameBanks names the n banks of the loaded image. Where the names are
// unavailable, or of another number of banks, the names are the positions.
func (a *alveo) nameBanks(r *reading, n int) {
	a.banks = make([]labelledBank, n)
	text, _ := r.got(a.withoutImage(r.fs.Read(a.user.file("memstat"))))
	banks := parseBanks(text)
	for i := range a.banks {
		b := &a.banks[i]
		b.memBank = memBank{name: "#" + strconv.Itoa(i), used: true}
		if len(banks) == n {
			b.memBank = banks[i]
		}
		b.host = strings.HasPrefix(strings.ToUpper(b.name), "HOST")
	}
}

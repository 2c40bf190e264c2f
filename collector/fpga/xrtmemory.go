package fpga

import (
	"cmp"
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
		tripped, ok := parseLevel(text)
		if !ok {
			r.Reject(collector.FPGAFirewallTripped, collector.RejectType)
			continue
		}
		read++
		r.SetBool(collector.FPGAFirewallTripped, tripped, "axi"+strconv.Itoa(i))
		if tripped {
			text, _ := r.text(dir + "/detected_trip")
			causes = append(causes, parseTrip(text)...)
		}
	}
	if read < len(all) || read == 0 {
		return // the latch covers all of them
	}
	slices.Sort(causes)
	a.memory.latch(r, "firewall", slices.Compact(causes))
}

// ecc sets the errors of the memory controllers, corrected or not, since the
// image was loaded. DDR controllers do not count uncorrected errors, but latch
// that one occurred. Only the management function has them.
func (a *alveo) ecc(r *reading) {
	for _, kind := range []string{"mig", "mig.hbm"} {
		for _, dir := range a.mgmt.of(kind) {
			name, _ := r.textEvery(never, dir+"/name")
			if name = tidy(name); name == "" {
				name = path.Base(dir)
			}
			// Without ECC a bank counts nothing.
			if on, ok := a.slow(r, collector.FPGAMemoryECCErrors, dir+"/ecc_enabled"); !ok || on == 0 {
				continue
			}
			if status, ok := a.slow(r, collector.FPGAMemoryECCLatched, dir+"/ecc_status"); ok {
				r.SetBool(collector.FPGAMemoryECCLatched, status&2 != 0, name, "corrected")
				r.SetBool(collector.FPGAMemoryECCLatched, status&1 != 0, name, "uncorrected")
			}
			if n, ok := a.slow(r, collector.FPGAMemoryECCErrors, dir+"/ecc_ce_cnt"); ok {
				r.Set(collector.FPGAMemoryECCErrors, float64(n), name, "corrected")
			}
			if kind != "mig.hbm" {
				continue
			}
			if n, ok := a.slow(r, collector.FPGAMemoryECCErrors, dir+"/ecc_ue_cnt"); ok {
				r.Set(collector.FPGAMemoryECCErrors, float64(n), name, "uncorrected")
			}
		}
	}
	a.calibration(r)
}

// slow reads a number at most once in SlowInterval.
func (a *alveo) slow(r *reading, m *collector.Metric, file string) (uint64, bool) {
	return r.unsigned(m, a.options.SlowInterval, file)
}

// calibration sets whether the memory interfaces are calibrated. A card without
// such memory always returns 0, so 0 counts only after a 1.
func (a *alveo) calibration(r *reading) {
	file := cmp.Or(a.mgmt.file("mig_calibration"), a.user.file("mig_calibration"))
	if file == "" {
		return
	}
	v, ok := a.slow(r, collector.FPGAMemoryCalibrated, file)
	if !ok {
		return
	}
	a.known["mig_calibration"] = a.known["mig_calibration"] || v != 0
	if a.known["mig_calibration"] {
		r.SetBool(collector.FPGAMemoryCalibrated, v != 0, "all")
	}
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
		if !b.host() {
			used += use[i].bytes
			total += b.bytes
		}
		if !b.used && use[i].buffers == 0 {
			continue
		}
		r.Set(collector.FPGABankUsed, float64(use[i].bytes), b.name)
		if b.bytes > 0 {
			r.Set(collector.FPGABankTotal, float64(b.bytes), b.name)
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
	text, _ := r.got(a.withoutImage(r.fs.Read(a.user.file("memstat"))))
	if a.banks = parseBanks(text); len(a.banks) == n {
		return
	}
	a.banks = make([]memBank, n)
	for i := range a.banks {
		a.banks[i] = memBank{name: "#" + strconv.Itoa(i), used: true}
	}
}

// transfers sets the bytes that the DMA engine has moved. The driver names the
// directions from the card's and the host's side; as for all accelerators, what
// the card sends is transmitted.
func (a *alveo) transfers(r *reading) {
	dir := a.user.one("dma.xdma", "dma.qdma", "dma.qdma4")
	if dir == "" {
		return
	}
	text, ok := r.text(dir + "/channel_stat_raw")
	if !ok {
		return
	}
	toHost, toCard, ok := parseChannels(text)
	if !ok {
		r.Reject(collector.PCIeTransmit, collector.RejectType)
		return
	}
	r.Set(collector.PCIeTransmit, float64(toHost))
	r.Set(collector.PCIeReceive, float64(toCard))
}

// clockNames are the clocks of a slot in the driver's order.
var clockNames = []string{"data", "kernel", "system", "extra"}

// clocks sets the clocks of the loaded image. The read waits for a load to end
// and counts cycles, so it is made once a minute, and of the management
// function where possible: the user function would call it.
func (a *alveo) clocks(r *reading) {
	dir := cmp.Or(a.mgmt.one("icap"), a.user.one("icap"))
	if dir == "" || a.unitsLeft || a.user.dir != "" && a.image == "" {
		return
	}
	text, ok := r.textEvery(identityInterval, dir+"/clock_freqs")
	if !ok {
		return
	}
	for i, hertz := range parseClocks(text) {
		if hertz == 0 {
			continue
		}
		name := clockNames[i%len(clockNames)]
		if slot := i / len(clockNames); slot > 0 {
			name = "slot" + strconv.Itoa(slot) + "/" + name
		}
		r.Set(collector.ClockHertz, hertz, name)
	}
}

// keyValues yields the lines "key: value" of text.
func keyValues(text string) func(yield func(key, value string) bool) {
	return func(yield func(key, value string) bool) {
		for line := range strings.Lines(text) {
			key, value, ok := strings.Cut(strings.Trim(line, "\x00 \t\r\n"), ":")
			if ok && !yield(strings.TrimSpace(key), strings.TrimSpace(value)) {
				return
			}
		}
	}
}

// parseChannels sums channel_stat_raw: per DMA channel a line with the bytes
// moved from card to host, then host to card.
func parseChannels(text string) (toHost, toCard uint64, ok bool) {
	for line := range strings.Lines(text) {
		f := strings.Fields(strings.Trim(line, "\x00\r\n"))
		if len(f) == 0 {
			continue
		}
		if len(f) != 2 {
			return 0, 0, false
		}
		c2h, err := strconv.ParseUint(f[0], 10, 64)
		h2c, err2 := strconv.ParseUint(f[1], 10, 64)
		if err != nil || err2 != nil || toHost+c2h < toHost || toCard+h2c < toCard {
			return 0, 0, false
		}
		toHost, toCard, ok = toHost+c2h, toCard+h2c, true
	}
	return toHost, toCard, ok
}

// parseClocks parses clock_freqs: megahertz, a line per clock of each slot. An
// unused clock is 0 and keeps its position.
func parseClocks(text string) (hertz []float64) {
	for line := range strings.Lines(text) {
		mhz, err := strconv.ParseUint(strings.Trim(line, "\x00 \t\r\n"), 10, 32)
		if err != nil {
			mhz = 0
		}
		if len(hertz) == maxClocks {
			break
		}
		hertz = append(hertz, float64(mhz)*1e6)
	}
	return hertz
}

// notTripped is the level of a firewall that has not tripped: -1, printed
// without its sign.
const notTripped = 1<<64 - 1

// parseLevel parses a firewall's level: the position of the firewall that
// tripped.
func parseLevel(text string) (tripped, ok bool) {
	level, err := strconv.ParseUint(text, 10, 64)
	return err == nil && level != notTripped, err == nil
}

// parseTrip parses detected_trip of a firewall that has tripped: the errors that
// it detected, in the driver's names.
func parseTrip(text string) (causes []string) {
	for key, value := range keyValues(text) {
		if strings.HasPrefix(key, "status_bit") && value != "" && value != "(null)" && len(causes) < 32 {
			causes = append(causes, strings.ToLower(tidy(value)))
		}
	}
	if len(causes) == 0 {
		return []string{"unknown"}
	}
	return causes
}

// Bounds on what one card's attributes may contain, from the driver's limits.
const (
	maxSlots  = 32
	maxCUs    = 2 * 128 // compute units and processor kernels
	maxBanks  = 64
	maxClocks = 4 * maxSlots
)

// bankUse is the use of one memory bank by buffers of xocl.
type bankUse struct {
	bytes   uint64
	buffers uint64
}

// parseMemStat parses memstat_raw: "bytes buffers 0" per bank of the image's
// memory topology, a separator, and the same per kind of buffer, which is
// ignored. The separator is recognized by its middle field: it prints -22
// through formats of other widths, so the outer fields depend on the compiler.
// ok is false for a text without a separator.
func parseMemStat(text string) (banks []bankUse, ok bool) {
	for line := range strings.Lines(text) {
		f := strings.Fields(strings.Trim(line, "\x00\r\n"))
		if len(f) != 3 {
			return nil, false
		}
		if f[1] == "-22" {
			return banks, true
		}
		bytes, err := strconv.ParseUint(f[0], 10, 64)
		buffers, err2 := strconv.ParseUint(f[1], 10, 32)
		if err != nil || err2 != nil || len(banks) == maxBanks {
			return nil, false
		}
		banks = append(banks, bankUse{bytes, buffers})
	}
	return nil, false
}

// memBank is one memory bank of the loaded image's topology.
type memBank struct {
	name  string
	used  bool // the image is connected to it
	bytes uint64
}

// host reports whether the bank is host memory that the card may use.
func (b *memBank) host() bool { return strings.HasPrefix(strings.ToUpper(b.name), "HOST") }

// parseBanks parses memstat, which prints the banks in the order of memstat_raw
// with their names:
//
//	[IN-USE] bank0@0x004000000000 (16384MB): 524288KB 12BOs
//
// The format is for humans; only what does not change while an image is loaded
// is used. A name that occurs twice gets its position appended.
func parseBanks(text string) (banks []memBank) {
	names := map[string]bool{}
	for line := range strings.Lines(text) {
		tag, rest, ok := strings.Cut(strings.TrimPrefix(strings.Trim(line, "\x00 \t\r\n"), "["), "] ")
		if !ok || tag != "IN-USE" && tag != "UNUSED" || len(banks) == maxBanks {
			break
		}
		name, rest, ok := strings.Cut(rest, "@")
		_, size, ok2 := strings.Cut(rest, " (")
		size, _, ok3 := strings.Cut(size, "MB)")
		megabytes, err := strconv.ParseUint(size, 10, 32)
		if !ok || !ok2 || !ok3 || err != nil {
			break
		}
		for name = tidy(name); name == "" || names[name]; {
			name += "#" + strconv.Itoa(len(banks))
		}
		names[name] = true
		banks = append(banks, memBank{name: name, used: tag == "IN-USE", bytes: megabytes << 20})
	}
	return banks
}

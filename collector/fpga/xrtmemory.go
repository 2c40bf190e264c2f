package fpga

import (
	"cmp"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/accel-exporter/accel-exporter/collector"
	"github.com/accel-exporter/accel-exporter/collector/sysfs"
)

// firewalls sets whether the card's AXI firewalls have cut off the loaded
// design. The management function has the current state.
func (a *alveo) firewalls(r *reading) {
	var causes []string
	read := 0
	guest := a.mgmt.dir == ""
	all, interval := a.mgmt.of("firewall"), time.Duration(0)
	if guest {
		all = a.user.of("firewall")
		// Some drivers ask the host in each read. A trip takes the card offline.
		if !a.offline && !a.wasOffline {
			interval = identityInterval
		}
	}
	for i, dir := range all {
		text, ok := r.textEvery(interval, dir+"/level")
		if !ok {
			continue
		}
		tripped, ok := parseLevel(text)
		if !ok {
			r.Reject(collector.FPGAFirewallTripped, collector.RejectType)
			continue
		}
		if guest {
			at, ok := r.unsigned(collector.FPGAFirewallTripped, interval, dir+"/detected_time")
			if !ok {
				continue
			}
			tripped = a.tripped(dir, at) && tripped
		}
		read++
		r.SetBool(collector.FPGAFirewallTripped, tripped, "axi"+strconv.Itoa(i))
		if tripped {
			text, _ := r.textEvery(interval, dir+"/detected_trip")
			causes = append(causes, parseTrip(text)...)
		}
	}
	if read < len(all) || read == 0 {
		return // the latch covers all of them
	}
	slices.Sort(causes)
	a.memory.latch(r, "firewall", slices.Compact(causes))
}

// trip is the last trip of a firewall that the user function has reported.
type trip struct {
	time uint64
	open bool // the card was not reset since
}

// tripped returns whether the card was not reset since the trip of a firewall at a time.
// The driver of the user function receives the state from the host with a trip, and takes
// the card offline until it is reset; it need not receive it again after the reset.
func (a *alveo) tripped(dir string, at uint64) bool {
	t := a.trips[dir]
	switch {
	case t == nil:
		t = &trip{time: at, open: a.offline}
		a.trips[dir] = t
	case at > t.time:
		*t = trip{time: at, open: true}
	}
	if a.wasOffline && !a.offline {
		t.open = false
	}
	return t.open
}

// ecc sets the errors of the memory controllers, corrected or not, since the
// image was loaded. DDR controllers do not count uncorrected errors, but latch
// that one occurred. Only the management function has them.
func (a *alveo) ecc(r *reading) {
	for _, kind := range []string{"mig", "mig.hbm"} {
		for _, dir := range a.mgmt.of(kind) {
			name, _ := r.textEvery(sysfs.Never, dir+"/name")
			if name = tidy(name); name == "" {
				name = path.Base(dir)
			}
			// Without ECC a bank counts nothing.
			if on, ok := r.unsigned(collector.FPGAMemoryECCErrors, a.options.SlowInterval, dir+"/ecc_enabled"); !ok || on == 0 {
				continue
			}
			if status, ok := r.unsigned(collector.FPGAMemoryECCLatched, a.options.SlowInterval, dir+"/ecc_status"); ok {
				r.SetBool(collector.FPGAMemoryECCLatched, status&2 != 0, name, "corrected")
				r.SetBool(collector.FPGAMemoryECCLatched, status&1 != 0, name, "uncorrected")
			}
			if n, ok := r.unsigned(collector.FPGAMemoryECCErrors, a.options.SlowInterval, dir+"/ecc_ce_cnt"); ok {
				r.Set(collector.FPGAMemoryECCErrors, float64(n), name, "corrected")
			}
			if kind != "mig.hbm" {
				continue
			}
			if n, ok := r.unsigned(collector.FPGAMemoryECCErrors, a.options.SlowInterval, dir+"/ecc_ue_cnt"); ok {
				r.Set(collector.FPGAMemoryECCErrors, float64(n), name, "uncorrected")
			}
		}
	}
	a.calibration(r)
}

// calibration sets whether the memory interfaces are calibrated. A card without
// such memory always returns 0, so 0 counts only after a 1.
func (a *alveo) calibration(r *reading) {
	file := cmp.Or(a.mgmt.file("mig_calibration"), a.user.file("mig_calibration"))
	if file == "" {
		return
	}
	v, ok := r.unsigned(collector.FPGAMemoryCalibrated, a.options.SlowInterval, file)
	if !ok {
		return
	}
	a.known["mig_calibration"] = a.known["mig_calibration"] || v != 0
	if a.known["mig_calibration"] {
		r.SetBool(collector.FPGAMemoryCalibrated, v != 0, "all")
	}
}

// memories sets the buffers that programs have allocated through xocl, in the banks of
// the loaded image. Other use of the memory is unknown.
func (a *alveo) memories(r *reading) {
	if a.user.dir == "" || a.unitsLeft || a.image == "" {
		return
	}
	text, err := r.fs.Read(a.user.file("memstat"))
	if sysfs.Errno(err) == syscall.EINVAL {
		return // no image is loaded
	}
	if text, ok := r.got(text, err); !ok || text == "" {
		return
	}
	banks, ok := parseBanks(text)
	if !ok {
		r.Reject(collector.MemoryUsed, collector.RejectType)
		return
	}
	var used, total uint64
	for _, b := range banks {
		if !b.host() {
			used += b.used
			total += b.bytes
		}
	}
	if total > 0 {
		r.Set(collector.MemoryTotal, float64(total))
		r.Set(collector.MemoryUsed, float64(used))
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

// clocks sets the clocks of the loaded image. The driver stops them where the card is too
// hot or draws too much power, until it is reset: they are then 0. The read waits for a load to end
// and counts cycles, so it is made once a minute, and of the management
// function where possible: the user function would call it.
func (a *alveo) clocks(r *reading) {
	dir := cmp.Or(a.mgmt.one("icap"), a.user.one("icap"))
	if dir == "" || a.unitsLeft || a.user.dir != "" && a.image == "" {
		return
	}
	text, ok := r.textEvery(a.options.SlowInterval, dir+"/clock_freqs")
	if !ok {
		return
	}
	for i, hertz := range parseClocks(text) {
		name := clockNames[i%len(clockNames)]
		if slot := i / len(clockNames); slot > 0 {
			name = "slot" + strconv.Itoa(slot) + "/" + name
		}
		// A clock that the image does not use is 0 from the start. Where the image is not
		// known, the next one may use fewer.
		a.clocked[name] = a.clocked[name] || hertz > 0 && a.image != ""
		if hertz > 0 || a.clocked[name] {
			r.Set(collector.ClockHertz, hertz, name)
		}
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
		if strings.HasPrefix(key, "status_bit") && value != "" && value != "(null)" {
			causes = append(causes, strings.ToLower(tidy(value)))
		}
	}
	if len(causes) == 0 {
		return []string{"unknown"}
	}
	return causes
}

// memBank is one memory bank of the loaded image's topology, and its use by
// buffers of xocl.
type memBank struct {
	name        string
	bytes, used uint64
}

// host reports whether the bank is host memory that the card may use.
func (b *memBank) host() bool { return strings.HasPrefix(strings.ToUpper(b.name), "HOST") }

// memstatLine is a bank in memstat. Lines with the use by kind of buffer follow.
var memstatLine = regexp.MustCompile(`^\[(?:IN-USE|UNUSED)\] (.*)@0x[0-9a-f]+ \(([0-9]+)MB\): ([0-9]+)KB [0-9]+BOs$`)

// parseBanks parses memstat, the banks of the image with lines such as
//
//	[IN-USE] bank0@0x004000000000 (16384MB): 524288KB 12BOs
//
// ok is false where it has none.
func parseBanks(text string) (banks []memBank, ok bool) {
	for line := range strings.Lines(text) {
		f := memstatLine.FindStringSubmatch(strings.Trim(line, "\x00 \t\r\n"))
		if f == nil {
			break
		}
		size, err := strconv.ParseUint(f[2], 10, 36) // the sums have to fit
		used, err2 := strconv.ParseUint(f[3], 10, 36)
		if err != nil || err2 != nil {
			return nil, false
		}
		banks = append(banks, memBank{f[1], size << 20, used << 10})
	}
	return banks, len(banks) > 0
}

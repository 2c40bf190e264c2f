package fpga

import (
	"strconv"
	"strings"
)

// Parsers of the attributes of the XRT drivers. Nothing here accesses a file. A
// line of an unexpected form is skipped and, where it matters, reported.

// nullUUID is what xocl prints for a slot that has been emptied.
const nullUUID = "00000000-0000-0000-0000-000000000000"

// parseUUIDs parses xclbinuuid: one line per slot with an image. An empty text
// means that nothing is loaded; the null uuid means so for its line, which is
// empty in uuids. ok is false where a line is no uuid.
func parseUUIDs(text string) (uuids []string, ok bool) {
	for line := range strings.Lines(text) {
		switch id := strings.ToLower(strings.Trim(line, "\x00 \t\r\n")); {
		case id == "":
		case !isUUID(id) || len(uuids) == maxSlots:
			return nil, false
		case id == nullUUID:
			uuids = append(uuids, "")
		default:
			uuids = append(uuids, id)
		}
	}
	for len(uuids) > 0 && uuids[len(uuids)-1] == "" {
		uuids = uuids[:len(uuids)-1]
	}
	return uuids, true
}

// isUUID reports whether s is 8-4-4-4-12 lower-case hexadecimal digits.
func isUUID(s string) bool {
	return len(s) == len(nullUUID) && s[8] == '-' && s[13] == '-' && s[18] == '-' && s[23] == '-' && isHexID(strings.ReplaceAll(s, "-", ""))
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

// parseLevel parses a firewall's level: the position of the one that tripped.
func parseLevel(text string) (level uint64, tripped, ok bool) {
	level, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		return 0, false, false
	}
	return level, level != notTripped, true
}

// parseTrip parses detected_trip: the firewall and the errors that it detected,
// in the driver's names.
func parseTrip(text string) (firewall string, causes []string) {
	for key, value := range keyValues(text) {
		switch {
		case key == "level_name":
			firewall = labelText(value)
		case strings.HasPrefix(key, "status_bit") && value != "" && value != "(null)" && len(causes) < 32:
			causes = append(causes, strings.ToLower(labelText(value)))
		}
	}
	return firewall, causes
}

// labelText makes a driver's name fit for a label value.
func labelText(s string) string {
	s = strings.TrimSpace(strings.ToValidUTF8(strings.Trim(s, "\x00"), ""))
	s = strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return -1
		}
		return r
	}, s)
	if len(s) > maxLabel {
		s = strings.ToValidUTF8(s[:maxLabel], "")
	}
	return s
}

// Bounds on what one card's attributes may contain, from the driver's limits.
const (
	maxSlots  = 32
	maxCUs    = 2 * 128 // compute units and processor kernels
	maxBanks  = 64
	maxClocks = 4 * maxSlots
	maxLabel  = 128 // bytes
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
		for name = labelText(name); name == "" || names[name]; {
			name += "#" + strconv.Itoa(len(banks))
		}
		names[name] = true
		banks = append(banks, memBank{name: name, used: tag == "IN-USE", bytes: megabytes << 20})
	}
	return banks
}

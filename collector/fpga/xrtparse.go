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
	if len(s) != len(nullUUID) {
		return false
	}
	for i := range len(s) {
		if nullUUID[i] == '-' {
			if s[i] != '-' {
				return false
			}
		} else if !isHex(s[i]) {
			return false
		}
	}
	return true
}

func isHex(c byte) bool { return c >= '0' && c <= '9' || c >= 'a' && c <= 'f' }

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

package fpga

import (
	"strconv"
	"strings"
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

package fpga

import (
	_ "embed"
	"fmt"
	"strconv"
	"strings"

	"github.com/accel-exporter/accel-exporter/collector"
	"github.com/accel-exporter/accel-exporter/collector/sysfs"
)

//go:embed dflerrors.tsv
var dflErrorTable string

// dflBit is one bit of a register of one revision.
type dflBit struct {
	unit          string
	revision, bit int
}

var dflErrorNames = parseErrorTable(dflErrorTable)

// parseErrorTable parses lines with unit, revision, bit and name, and comments.
func parseErrorTable(text string) map[dflBit]string {
	names := map[dflBit]string{}
	for line := range strings.Lines(text) {
		var b dflBit
		var name string
		if n, _ := fmt.Sscanf(line, "%s\t%d\t%d\t%s", &b.unit, &b.revision, &b.bit, &name); n == 4 {
			names[b] = name
		}
	}
	return names
}

// unknownRevision is for a register whose driver has no revision: mainline.
const unknownRevision = -1

// dflErrorName returns the name of a bit. Where the revision is unknown, a bit
// has a name if the revisions agree; a bit that is reserved in one revision has
// its name from the other.
func dflErrorName(unit string, revision, bit int) string {
	number := "bit_" + strconv.Itoa(bit)
	if revision != unknownRevision {
		if n, ok := dflErrorNames[dflBit{unit, revision, bit}]; ok {
			return n
		}
		return number
	}
	first, in0 := dflErrorNames[dflBit{unit, 0, bit}]
	second, in1 := dflErrorNames[dflBit{unit, 1, bit}]
	switch {
	case in0 && in1 && first != second:
		return number
	case in0:
		return first
	case in1:
		return second
	}
	return number
}

// register is the file of one error register, its label value, and the key of its
// table of names. The file is writable by root, and writing clears the register; it is
// only read.
type register struct{ file, unit, kind string }

// readRegisters sets the bits that are set or have been, of the registers in a
// directory.
func (c *dflCard) readRegisters(r *reading, dir string, registers []register) {
	for _, g := range registers {
		text, ok := r.text(dir + "/" + g.file)
		if !ok {
			continue
		}
		bits, ok := hexadecimal(text)
		switch {
		case !ok:
			r.Reject(collector.FPGAErrorsLatched, collector.RejectType)
			continue
		case bits == 1<<64-1:
			r.Reject(collector.FPGAErrorsLatched, collector.RejectSentinel) // the device does not answer
			continue
		}
		var set []string
		for bit := range 64 {
			if bits&(1<<bit) != 0 {
				set = append(set, dflErrorName(g.kind, r.revision(dir), bit))
			}
		}
		c.memory.latch(r, g.unit, set)
	}
}

// revision returns the revision of the bits of a directory's registers.
func (r *reading) revision(dir string) int {
	text, ok := r.textEvery(sysfs.Never, dir+"/revision")
	n, err := strconv.Atoi(text)
	if !ok || err != nil || n < 0 {
		return unknownRevision
	}
	return n
}

package fpga

import (
	_ "embed"
	"strconv"
	"strings"

	"github.com/accel-exporter/accel-exporter/collector"
)

//go:embed dflerrors.tsv
var dflErrorTable string

// dflBit is one bit of a register of one revision.
type dflBit struct {
	unit          string
	revision, bit int
}

var dflErrorNames = parseErrorTable(dflErrorTable)

// parseErrorTable parses lines with unit, revision, bit and name. Other lines
// are skipped.
func parseErrorTable(text string) map[dflBit]string {
	names := map[dflBit]string{}
	for line := range strings.Lines(text) {
		f := strings.Split(strings.TrimSpace(line), "\t")
		if len(f) != 4 || strings.HasPrefix(line, "#") {
			continue
		}
		revision, err1 := strconv.Atoi(f[1])
		bit, err2 := strconv.Atoi(f[2])
		if err1 == nil && err2 == nil && bit >= 0 && bit < 64 {
			names[dflBit{f[0], revision, bit}] = f[3]
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

// register is one error register. Its file is writable by root, and writing
// clears it; it is only read.
type register struct {
	registerFile
	// revision is the file that selects the table of names, empty where the
	// driver has none: mainline.
	revision string
}

// registerFile is a file of a register: its label value, and the key of its
// table of names.
type registerFile struct{ file, unit, kind string }

var fmeRegisters = []registerFile{
	{"fme_errors", "fme", "fme"},
	{"pcie0_errors", "pcie0", "pcie0"},
	{"pcie1_errors", "pcie1", "pcie1"},
	{"nonfatal_errors", "nonfatal", "nonfatal"},
	{"catfatal_errors", "fatal", "fatal"},
	{"inject_errors", "inject", "inject"},
	// The names of Intel's driver.
	{"fme-errors/errors", "fme", "fme"},
	{"inject_error", "inject", "inject"},
}

// registers lists the registers of a directory.
func (c *dflCard) registers(dir string, files []registerFile) (out []register) {
	revision := dir + "/revision"
	if !c.fs.Exists(revision) {
		revision = ""
	}
	for _, f := range files {
		if f.file = dir + "/" + f.file; c.fs.Exists(f.file) {
			out = append(out, register{f, revision})
		}
	}
	return out
}

// readRevision returns the revision of the bits.
func (g *register) readRevision(r *reading) int {
	if g.revision == "" {
		return unknownRevision
	}
	text, ok := r.textEvery(never, g.revision)
	n, err := strconv.Atoi(text)
	if !ok || err != nil || n < 0 {
		return unknownRevision
	}
	return n
}

// read sets the bits that are set or have been.
func (g *register) read(r *reading, c *dflCard) {
	text, err := c.fs.Read(g.file)
	if err != nil {
		c.missed = c.missed || absent(err)
		r.got(text, err)
		return
	}
	r.answered = true
	bits, ok := hexadecimal(text)
	switch {
	case !ok:
		r.Reject(collector.FPGAErrorsLatched, collector.RejectType)
		return
	case bits == 1<<64-1:
		r.Reject(collector.FPGAErrorsLatched, collector.RejectSentinel) // the device does not answer
		return
	}
	revision := g.readRevision(r)
	var set []string
	for bit := range 64 {
		if bits&(1<<bit) != 0 {
			set = append(set, dflErrorName(g.kind, revision, bit))
		}
	}
	c.memory.latch(r, g.unit, set)
}

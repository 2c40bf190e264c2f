package fpga

import (
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/accel-exporter/accel-exporter/collector"
	"github.com/accel-exporter/accel-exporter/collector/sysfs"
)

// dflCard reads one DFL card. Its files are located every SlowInterval, and
// again when one of them disappears: the numbers in their paths change when a
// driver is bound again.
type dflCard struct {
	*env
	layout  dflLayout
	scanned time.Time
	// missed: a file of the layout has disappeared.
	missed  bool
	manager *fpgaManager
	labels  labelCache
	// pmu counts transactions, where that is enabled and permitted; pmuOf is
	// the unit that it was opened or refused for.
	pmu    *pmu
	pmuOf  string
	pmuErr error
}

// dflLayout has the paths of a card's files.
type dflLayout struct {
	fme       string // directory, empty on a virtual function
	answers   bool   // it has a file that is read in each round
	registers []register
	ports     []*dflPort
	managers  []string
	regions   []string // compat_id files
	bridges   []bridge
	chips     []chip
	banks     []dflBank
	cages     []dflCage
	versions  []dflVersion
	network   []dflVersion // component is the property
	bmc       dflBMC
}

func newDFLCard(e *env) *dflCard {
	// An FME has one manager. Its region is that of the one port of existing
	// cards; a load of a second port is detected by that port's identity.
	return &dflCard{env: e, manager: newFPGAManager(e.memory.region("port0"))}
}

// poll reads the FPGA manager's state.
func (c *dflCard) poll(time.Time) { c.manager.poll(c.pollFS) }

func (c *dflCard) read(r *reading) {
	if c.missed || r.now.Sub(c.scanned) >= c.options.SlowInterval {
		c.scan(r)
	}
	rest := c.manager.read(r)
	c.identify(r)
	for i := range c.layout.bridges {
		c.layout.bridges[i].read(r)
	}
	c.readStatic(r)
	if rest {
		c.readLocked(r)
	} else {
		for _, p := range c.layout.ports {
			p.unloaded(r, c)
		}
	}
	c.readSensors(r)
	c.readBoard(r)
	c.readTransactions(r)
	for _, m := range c.layout.managers[:min(1, len(c.layout.managers))] {
		c.missed = c.missed || !c.fs.Exists(m)
	}
	if r.Down == "" && !r.answered && c.layout.answers {
		// The rest is from memory.
		r.Down, r.Readings = collector.ReasonError, nil
	}
}

// dflStates are the values of the label state of accel_fpga_card_state for this
// driver.
var dflStates = []string{"ready", "function_dead"}

// readLocked reads what is behind the driver's lock, which a reconfiguration
// takes for up to 16 s. While the manager reports one, it is not read.
func (c *dflCard) readLocked(r *reading) {
	state := ""
	for _, p := range c.layout.ports {
		p.read(r, c)
		if p.state != "" && state != "function_dead" {
			state = p.state
		}
	}
	if state != "" {
		c.labels.states(r, collector.FPGACardState, dflStates, state)
	}
	if len(c.layout.ports) == 0 {
		c.manager.region.settle(r.now, time.Now(), "", false)
	}
	for i := range c.layout.registers {
		c.layout.registers[i].read(r, c)
	}
}

// readTransactions counts the fabric's transactions. After a refusal by the
// kernel it is not retried until the driver is bound again.
func (c *dflCard) readTransactions(r *reading) {
	_, number, ok := strings.Cut(path.Base(c.layout.fme), ".")
	if !c.options.Transactions || !ok {
		return
	}
	unit, err := c.fs.Resolve("bus/event_source/devices/dfl_fme" + number)
	if err != nil {
		c.close()
		return // this card's fabric has none
	}
	if unit != c.pmuOf {
		c.close()
		c.pmuOf = unit
		c.pmu, c.pmuErr = openPMU(r, c.options.perf, unit)
	}
	r.fail(c.pmuErr) // it was requested
	if c.pmu != nil {
		c.pmu.read(r)
	}
}

// close closes the counters.
func (c *dflCard) close() {
	if c.pmu != nil {
		c.pmu.close()
	}
	c.pmu, c.pmuOf, c.pmuErr = nil, "", nil
}

// identify sets the card's identity.
func (c *dflCard) identify(r *reading) {
	r.Vendor, r.Model = vendorOf(r.pci.vendor), dflModel(r.pci)
	r.info(c.env, "dfl-pci", r.pci, "", "", c.manager.name)
}

// scan locates the card's files.
func (c *dflCard) scan(r *reading) {
	c.scanned, c.missed = r.now, false
	was := c.layout
	l := dflLayout{}
	for _, n := range dflUnits(c.fs, &c.place) {
		switch {
		case strings.HasPrefix(path.Base(n), "dfl-fme."):
			l.fme, l.answers = n, true
			c.scanFME(&l)
		case len(l.ports) < maxRegions:
			p := c.scanPort(n, was.ports)
			l.ports = append(l.ports, p)
			l.answers = l.answers || p.has["afu_id"]
		}
	}
	slices.SortFunc(l.ports, func(a, b *dflPort) int { return natural(a.dir, b.dir) })
	c.scanChips(r, &l)
	c.layout = l
	if len(l.managers) > 0 {
		c.manager.moved(l.managers[0])
	} else {
		c.manager.moved("")
	}
}

// scanFME lists the files of the card's management engine.
func (c *dflCard) scanFME(l *dflLayout) {
	for _, n := range namesUnder(c.fs, l.fme) {
		name := path.Base(n)
		switch {
		case strings.HasPrefix(name, "dfl-fme-mgr."):
			l.managers = append(l.managers, namesUnder(c.fs, n+"/fpga_manager")...)
		case strings.HasPrefix(name, "dfl-fme-region."):
			for _, g := range namesUnder(c.fs, n+"/fpga_region") {
				l.regions = append(l.regions, g+"/compat_id")
			}
		case strings.HasPrefix(name, "dfl-fme-bridge."):
			for _, b := range namesUnder(c.fs, n+"/fpga_bridge") {
				l.bridges = append(l.bridges, bridge{file: b + "/state"})
			}
		case strings.HasPrefix(name, "dfl_dev."):
			c.scanFeature(n, l)
		case name == "errors":
			l.registers = c.scanRegisters(n)
		}
	}
	for i := range l.bridges {
		l.bridges[i].labels = []string{"port" + strconv.Itoa(i)}
	}
	slices.SortFunc(l.cages, func(a, b dflCage) int { return natural(a.file, b.file) })
	for i := range l.cages {
		l.cages[i].labels = []string{"qsfp" + strconv.Itoa(i)}
	}
	slices.SortFunc(l.banks, func(a, b dflBank) int { return natural(a.failed, b.failed) })
	for i := range l.banks {
		l.banks[i].labels = []string{"emif" + strconv.Itoa(i)}
	}
}

// readStatic sets the identity of the static region, which a partial
// reconfiguration does not change.
func (c *dflCard) readStatic(r *reading) {
	if c.layout.fme == "" {
		return
	}
	id, ok := r.text(c.layout.fme + "/bitstream_id")
	switch {
	case !ok:
		c.missed = true
	case allOnes(id):
		// The card has left the bus, or its management engine is dead: every
		// register reads as ones.
		r.Down = collector.ReasonLost
		return
	default:
		r.bitstream("static", "fim", id)
	}
	if meta, ok := r.textEvery(identityInterval, c.layout.fme+"/bitstream_metadata"); ok {
		r.bitstream("static", "fim_metadata", meta)
	}
	for i, file := range c.layout.regions {
		// ENOENT: the region accepts any design.
		if id, ok := r.textEvery(c.options.SlowInterval, file); ok && !allOnes(id) {
			r.bitstream("port"+strconv.Itoa(i), "pr_interface", id)
		}
	}
}

// bitstream sets an identity that the driver prints in hexadecimal digits.
func (r *reading) bitstream(region, kind, id string) {
	id = strings.ToLower(id)
	if digits := strings.TrimPrefix(id, "0x"); len(id) > labelBytes || !sysfs.Hex(digits) {
		r.Reject(collector.FPGABitstreamInfo, collector.RejectType)
		return
	}
	r.Set(collector.FPGABitstreamInfo, 1, region, kind, id)
}

// allOnes reports whether a hexadecimal text is all ones, as read from a device
// that does not answer.
func allOnes(text string) bool {
	digits := strings.TrimPrefix(strings.ToLower(text), "0x")
	return len(digits) >= 8 && strings.Trim(digits, "f") == ""
}

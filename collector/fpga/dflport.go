package fpga

import (
	"path"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/accel-exporter/accel-exporter/collector"
	"github.com/accel-exporter/accel-exporter/collector/sysfs"
)

// dflPort is one port of a card, the slot of one accelerator function.
type dflPort struct {
	dir, name string // name is port and its number in the FME
	region    *region
	// afu is the last identity and when it was read.
	afu     string
	afuRead time.Time
	// state is one of dflStates, empty while there is no function.
	state string
}

// afuGrace is how long the identity of a busy port is valid: a reconfiguration
// takes the driver at most 16 s.
const afuGrace = 60 * time.Second

// newPort returns the port in a directory.
func (c *dflCard) newPort(r *reading, dir string) *dflPort {
	p := &dflPort{dir: dir, name: "port" + strings.TrimPrefix(path.Base(dir), c.driver.prefix+"port.")}
	if id, ok := r.textEvery(sysfs.Never, dir+"/id"); ok { // its number in the FME, behind no lock
		if n, err := strconv.ParseUint(id, 0, 16); err == nil {
			p.name = "port" + strconv.FormatUint(n, 10)
		}
	}
	p.region = c.memory.region(p.name)
	return p
}

// loadable reports whether the port shows its function: an OFS port does not.
func (p *dflPort) loadable(r *reading) bool { return r.fs.Exists(p.dir + "/afu_id") }

func (p *dflPort) read(r *reading, c *dflCard) {
	p.readAFU(r)
	p.readThrottle(r)
	c.readRegisters(r, p.dir+"/errors", []register{{"errors", p.name, "port"}})
}

// readAFU reads which function is loaded. While the port is disabled, as during
// a reconfiguration, the driver returns EBUSY: the previous function is then
// reported as not loaded.
func (p *dflPort) readAFU(r *reading) {
	asked := time.Now()
	id, err := r.fs.Read(p.dir + "/afu_id")
	now := time.Now()
	loaded := false
	r.answered = r.answered || err == nil || sysfs.Errno(err) == syscall.EBUSY
	p.state = ""
	switch errno := sysfs.Errno(err); {
	case err == nil && allOnes(id):
		p.state = "function_dead"
		r.Reject(collector.FPGABitstreamInfo, collector.RejectSentinel)
		p.region.setBusy(now, false)
		p.afu = ""
	case err == nil && isAFU(id):
		loaded, p.state = true, "ready"
		p.afu, p.afuRead = strings.ToLower(id), r.now
		p.region.setBusy(asked, false)
		p.region.settle(asked, now, p.afu, true)
	case err == nil:
		r.Reject(collector.FPGABitstreamInfo, collector.RejectType)
	case errno == syscall.EBUSY:
		p.region.setBusy(now, true)
		p.region.settle(asked, now, "", false)
	case absent(err):
		p.region.settle(asked, now, "", false)
		return
	default:
		r.fail(err)
		return
	}
	p.report(r, loaded)
}

// report sets the function that is loaded or, within afuGrace, was.
func (p *dflPort) report(r *reading, loaded bool) {
	r.SetBool(collector.FPGABitstreamLoaded, loaded, p.name)
	if p.afu != "" && r.now.Sub(p.afuRead) < afuGrace {
		r.Set(collector.FPGABitstreamInfo, 1, p.name, "afu", p.afu)
	}
}

// unloaded sets the readings of a port that is being configured.
func (p *dflPort) unloaded(r *reading) {
	if p.loadable(r) {
		p.report(r, false)
	}
}

// isAFU reports whether text is 128 bits as printed by afu_id.
func isAFU(text string) bool {
	return len(text) == 32 && sysfs.Hex(strings.ToLower(text))
}

// throttleNames are the values of the label state, throttleStates maps
// power_state to the label.
var (
	throttleNames  = []string{"normal", "ap1", "ap2", "ap6", "other"}
	throttleStates = map[uint64]string{0: "normal", 1: "ap1", 2: "ap2", 6: "ap6"}
)

func (p *dflPort) readThrottle(r *reading) {
	text, ok := r.text(p.dir + "/power_state")
	if !ok {
		return
	}
	// The driver prints hexadecimal with a prefix, its documentation shows it
	// without.
	v, ok := hexadecimal(text)
	if !ok {
		r.Reject(collector.FPGAThrottleState, collector.RejectType)
		return
	}
	state, known := throttleStates[v]
	if !known {
		state = "other"
	}
	r.states(collector.FPGAThrottleState, throttleNames, state, p.name)
}

// hexadecimal parses what a driver prints with %x, 0x%x or 0x%llx.
func hexadecimal(text string) (uint64, bool) {
	v, err := strconv.ParseUint(strings.TrimPrefix(strings.ToLower(text), "0x"), 16, 64)
	return v, err == nil
}

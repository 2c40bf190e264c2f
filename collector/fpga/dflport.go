package fpga

import (
	"errors"
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
	// has are the files of this port: an OFS port has no afu_id.
	has      map[string]bool
	register []register
	labels   labelCache
	// afu is the last identity and when it was read.
	afu     string
	afuRead time.Time
	// state is one of dflStates, empty while there is no function.
	state string
}

// afuGrace is how long the identity of a busy port is valid: a reconfiguration
// takes the driver at most 16 s.
const afuGrace = 60 * time.Second

// throttleStates are the values of power_state.
var throttleStates = []struct {
	value uint64
	name  string
}{{0, "normal"}, {1, "ap1"}, {2, "ap2"}, {6, "ap6"}}

// scanPort lists the files of a port. Known state is preserved.
func (c *dflCard) scanPort(dir string, before []*dflPort) *dflPort {
	p := &dflPort{}
	for _, b := range before {
		if b.dir == dir {
			*p = *b
		}
	}
	p.dir, p.has, p.register = dir, map[string]bool{}, nil
	for _, n := range namesUnder(c.fs, dir) {
		p.has[path.Base(n)] = true
	}
	if p.has["errors"] {
		p.register = c.scanPortRegister(dir + "/errors")
	}
	return p
}

// identify reads the port's number in the FME. Until then it has no labels.
func (p *dflPort) identify(r *reading, c *dflCard) {
	name := "port" + strings.TrimPrefix(path.Base(p.dir), "dfl-port.")
	if id, ok := r.textEvery(never, p.dir+"/id"); ok {
		if n, err := strconv.ParseUint(id, 0, 16); err == nil {
			name = "port" + strconv.FormatUint(n, 10)
		}
	}
	p.name, p.region = name, c.memory.region(name)
}

func (p *dflPort) read(r *reading, c *dflCard) {
	if p.region == nil {
		p.identify(r, c)
	}
	if p.has["afu_id"] {
		p.readAFU(r, c)
	} else {
		p.region.settle(r.now, time.Now(), "", false)
	}
	if p.has["power_state"] {
		p.readThrottle(r)
	}
	for _, event := range []string{"ap1", "ap2"} {
		file := event + "_event"
		if !p.has[file] {
			continue
		}
		if text, ok := r.text(p.dir + "/" + file); ok {
			if v, ok := hexadecimal(text); ok {
				r.SetBool(collector.FPGAThrottleLatched, v != 0, p.labels.of(p.name, event)...)
			} else {
				r.Reject(collector.FPGAThrottleLatched, collector.RejectType)
			}
		}
	}
	for i := range p.register {
		p.register[i].unit, p.register[i].labels = p.name, p.labels.of(p.name, "")[:1]
		p.register[i].read(r, c)
	}
}

// readAFU reads which function is loaded. While the port is disabled, as during
// a reconfiguration, the driver returns EBUSY: the previous function is then
// reported as not loaded.
func (p *dflPort) readAFU(r *reading, c *dflCard) {
	asked := time.Now()
	id, err := c.fs.Read(p.dir + "/afu_id")
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
		c.missed = true
		return
	default:
		r.fail(errors.Join(err))
		return
	}
	r.SetBool(collector.FPGABitstreamLoaded, loaded, p.labels.of(p.name, "")[:1]...)
	p.identity(r)
}

// identity sets the function that is loaded or, within afuGrace, was.
func (p *dflPort) identity(r *reading) {
	if p.afu != "" && r.now.Sub(p.afuRead) < afuGrace {
		r.Set(collector.FPGABitstreamInfo, 1, p.name, "afu", p.afu)
	}
}

// unloaded sets the readings of a port that is being configured.
func (p *dflPort) unloaded(r *reading, c *dflCard) {
	if p.region == nil {
		p.identify(r, c) // id is behind no lock
	}
	if p.has["afu_id"] {
		r.Set(collector.FPGABitstreamLoaded, 0, p.labels.of(p.name, "")[:1]...)
		p.identity(r)
	}
}

// isAFU reports whether text is 128 bits as printed by afu_id.
func isAFU(text string) bool {
	return len(text) == 32 && sysfs.Hex(strings.ToLower(text))
}

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
	other := true
	for _, s := range throttleStates {
		r.SetBool(collector.FPGAThrottleState, v == s.value, p.labels.of(p.name, s.name)...)
		other = other && v != s.value
	}
	r.SetBool(collector.FPGAThrottleState, other, p.labels.of(p.name, "other")...)
}

// hexadecimal parses what a driver prints with %x, 0x%x or 0x%llx.
func hexadecimal(text string) (uint64, bool) {
	v, err := strconv.ParseUint(strings.TrimPrefix(strings.ToLower(text), "0x"), 16, 64)
	return v, err == nil
}

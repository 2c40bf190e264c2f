package fpga

import (
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/accel-exporter/accel-exporter/collector"
	"github.com/accel-exporter/accel-exporter/collector/sysfs"
)

// managerStates are the states of an FPGA manager as printed by
// drivers/fpga/fpga-mgr.c.
var managerStates = []string{
	"unknown", "power off", "power up", "reset", "firmware request", "firmware request error",
	"parse header", "parse header error", "write init", "write init error", "write", "write error",
	"write complete", "write complete error", "operating",
}

// managerErrors are the label values by the lines of an FPGA manager's status
// file.
var managerErrors = map[string]string{
	"reconfig operation error":      "operation",
	"reconfig CRC error":            "crc",
	"reconfig incompatible image":   "incompatible_image",
	"reconfig IP protocol error":    "ip_protocol",
	"reconfig fifo overflow error":  "fifo_overflow",
	"reconfig security error":       "security",
	"reconfig initialization error": "initialization",
}

// managerFiles are the files of an FPGA manager, a region and a bridge that may
// be opened. The manager's key, flags and firmware are excluded.
var managerFiles = []string{
	"fpga_manager/fpga*/name", "fpga_manager/fpga*/state", "fpga_manager/fpga*/status",
	"fpga_region/region*/compat_id",
	"fpga_bridge/br*/state",
}

// fpgaManager is one FPGA manager of the kernel and the region that it
// reconfigures.
type fpgaManager struct {
	region *region
	// name is the name of the driver.
	name   string
	errors map[string]bool // the errors so far, and whether they are reported now

	mu  sync.Mutex // keeps the states in the order in which they were read
	dir string     // the class device, whose number changes
}

func newFPGAManager(g *region) *fpgaManager {
	return &fpgaManager{region: g, errors: map[string]bool{}}
}

// look reads the state, which the kernel keeps in memory.
func (m *fpgaManager) look(fs *tree) (string, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.dir == "" {
		return "", syscall.ENOENT
	}
	state, err := fs.Read(m.dir + "/state")
	if err == nil {
		m.region.setState(time.Now(), state)
	}
	return state, err
}

// read sets the rows of the manager, whose class device is in dir, and reports whether
// it is at rest. dir is empty where the manager has gone.
func (m *fpgaManager) read(r *reading, dir string) bool {
	m.mu.Lock()
	m.dir = dir
	m.mu.Unlock()
	if dir == "" {
		return true
	}
	if m.name == "" {
		name, _ := r.textEvery(sysfs.Never, dir+"/name")
		m.name = tidy(name)
	}
	state, ok := r.got(m.look(r.fs))
	if !ok {
		return true
	}
	state = tidy(state)
	r.states(collector.FPGAManagerState, managerStates, state, m.name)
	if !slices.Contains(managerStates, state) {
		r.Set(collector.FPGAManagerState, 1, m.name, state)
	}
	m.readStatus(r, dir)
	return terminal(state)
}

// readStatus sets the errors of the last load. A driver without a status
// returns an empty file or, on older kernels, ENOENT.
func (m *fpgaManager) readStatus(r *reading, dir string) {
	text, ok := r.text(dir + "/status")
	if !ok {
		return
	}
	for name := range m.errors {
		m.errors[name] = false
	}
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if mask, isMask := hexadecimal(line); line == "" || isMask && mask == 0 { // Intel's driver has a mask
			continue
		}
		name, known := managerErrors[line]
		if !known {
			name = "reported"
		}
		m.errors[name] = true
	}
	for name, on := range m.errors {
		r.SetBool(collector.FPGAManagerError, on, m.name, name)
	}
}

// bridge sets the state of an FPGA bridge.
func (r *reading) bridge(file, name string) {
	text, ok := r.text(file)
	switch {
	case !ok:
	case text == "enabled" || text == "disabled":
		r.SetBool(collector.FPGABridgeEnabled, text == "enabled", name)
	default:
		r.Reject(collector.FPGABridgeEnabled, collector.RejectType)
	}
}

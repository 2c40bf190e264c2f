package fpga

import (
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/accel-exporter/accel-exporter/collector"
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
	labels labelCache
	errors map[string]bool // the errors so far, and whether they are reported now

	mu  sync.Mutex
	dir string // the class device, whose number changes

	looking sync.Mutex // keeps the states in the order in which they were read
}

func newFPGAManager(g *region) *fpgaManager {
	return &fpgaManager{region: g, errors: map[string]bool{}}
}

func (m *fpgaManager) at() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.dir
}

// moved sets the path of the manager's class device, empty where it has gone.
func (m *fpgaManager) moved(dir string) {
	m.mu.Lock()
	m.dir = dir
	m.mu.Unlock()
}

// poll reads the state, which the kernel keeps in memory.
func (m *fpgaManager) poll(fs *tree) {
	if dir := m.at(); dir != "" {
		m.look(fs, dir) // read returns the error
	}
}

func (m *fpgaManager) look(fs *tree, dir string) (string, error) {
	m.looking.Lock()
	defer m.looking.Unlock()
	state, err := fs.Read(dir + "/state")
	if err == nil {
		m.region.setState(time.Now(), state)
	}
	return state, err
}

// read sets the manager's rows and reports whether it is at rest.
func (m *fpgaManager) read(r *reading) bool {
	dir := m.at()
	if dir == "" {
		return true
	}
	if m.name == "" {
		name, _ := r.textEvery(never, dir+"/name")
		m.name = tidy(name)
	}
	state, ok := r.got(m.look(r.fs, dir))
	if !ok {
		return true
	}
	state = tidy(state)
	for _, s := range managerStates {
		r.SetBool(collector.FPGAManagerState, s == state, m.labels.of(m.name, s)...)
	}
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
		if line == "" {
			continue
		}
		name, known := managerErrors[line]
		if !known {
			name = "reported"
		}
		m.errors[name] = true
	}
	for name, on := range m.errors {
		r.SetBool(collector.FPGAManagerError, on, m.labels.of(m.name, name)...)
	}
}

// bridge is one FPGA bridge.
type bridge struct {
	file   string
	labels []string
}

func (b *bridge) read(r *reading) {
	text, ok := r.text(b.file)
	switch {
	case !ok:
	case text == "enabled" || text == "disabled":
		r.SetBool(collector.FPGABridgeEnabled, text == "enabled", b.labels...)
	default:
		r.Reject(collector.FPGABridgeEnabled, collector.RejectType)
	}
}

// statusWord is the configuration status of the ZynqMP fabric. Reading it takes
// a firmware call through the configuration port.
type statusWord struct {
	at    time.Time // when it was read
	loads uint64
	word  uint64
	known bool
}

// statusInterval is the time between two reads of the status word.
const statusInterval = 30 * time.Second

// statusBits are the bits of the word, from the ABI of zynqmp_fpga_manager.
var statusBits = []struct {
	bit  int
	name string
}{
	{0, "crc_error"},
	{2, "pll_locked"},
	{4, "startup_done"},
	{5, "io_active"},
	{6, "write_enabled"},
	{11, "init_complete"},
	{12, "init_pin"},
	{13, "done_released"},
	{14, "done_pin"},
	{15, "idcode_error"},
	{16, "security_error"},
	{17, "over_temperature"},
}

const donePin = 14

// read sets the bits. The word is not read during a configuration, and again
// after it.
func (s *statusWord) read(r *reading, c *managerCard, rest bool) {
	if c.driver != "zynqmp_fpga_manager" {
		return
	}
	if !rest {
		s.known = false
		r.Set(collector.FPGABitstreamLoaded, 0, c.region)
		return
	}
	if loads := c.manager.region.total(); !s.known || loads != s.loads || r.now.Sub(s.at) >= statusInterval {
		s.at, s.loads = r.now, loads
		text, ok := r.text(c.dir + "/status")
		s.word, s.known = 0, false
		if ok {
			if s.word, s.known = hexadecimal(text); !s.known {
				r.Reject(collector.FPGAConfigurationStatus, collector.RejectType)
			}
		}
	}
	if !s.known {
		return // before Linux 6.4
	}
	for _, b := range statusBits {
		r.SetBool(collector.FPGAConfigurationStatus, s.word>>b.bit&1 == 1, c.manager.labels.of(b.name, "")[:1]...)
	}
	r.SetBool(collector.FPGABitstreamLoaded, s.word>>donePin&1 == 1, c.region)
}

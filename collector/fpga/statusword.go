package fpga

import (
	"time"

	"github.com/accel-exporter/accel-exporter/collector"
)

// statusWord is the configuration status of the ZynqMP fabric. Reading it takes
// a firmware call through the configuration port.
type statusWord struct {
	at     time.Time // when it was read
	loads  uint64
	word   uint64
	known  bool
	labels [][]string
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
	for i, b := range statusBits {
		if len(s.labels) <= i {
			s.labels = append(s.labels, []string{b.name})
		}
		r.SetBool(collector.FPGAConfigurationStatus, s.word>>b.bit&1 == 1, s.labels[i]...)
	}
	r.SetBool(collector.FPGABitstreamLoaded, s.word>>donePin&1 == 1, c.region)
}

//go:build linux && cgo

package nvidia

import (
	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"github.com/accel-exporter/accel-exporter/collector"
)

// c2cFields are the error counters of one C2C link, which the scope selects. The
// family is their sum over the links.
var c2cFields = [...]struct {
	id     uint32
	labels []string
}{
	{nvml.FI_DEV_C2C_LINK_ERROR_INTR, []string{"crc"}},
	{nvml.FI_DEV_C2C_LINK_ERROR_REPLAY, []string{"replay"}},
	{nvml.FI_DEV_C2C_LINK_ERROR_REPLAY_B2B, []string{"replay_back_to_back"}},
}

// c2c are the C2C links of one GPU to its CPU.
type c2c struct {
	// count is field 170, the number of links; asked is that of the batch.
	count, asked int
	batch        *batch
	// sums are the totals over the links in this round, answers the number of
	// links that answered, by c2cFields.
	sums    [len(c2cFields)]float64
	answers [len(c2cFields)]int
}

func (c *c2c) prepare() {
	var fields []field
	for i, f := range c2cFields {
		use := func(g *gpu, _ *collector.Device, v float64) {
			g.c2c.answers[i]++
			g.c2c.sums[i] += v
		}
		for link := range c.count {
			fields = append(fields, field{id: f.id, scope: uint32(link), metric: collector.C2CErrors, use: use})
		}
	}
	c.asked, c.batch = c.count, newBatch(fields)
}

func (c *c2c) read(g *gpu, d *collector.Device) {
	if c.count != c.asked {
		c.prepare()
	}
	if c.count == 0 {
		return
	}
	clear(c.sums[:])
	clear(c.answers[:])
	c.batch.read(g, d, nil)
	for i, f := range c2cFields {
		if c.answers[i] == c.count { // a sum over fewer links would look like a reset
			d.Set(collector.C2CErrors, c.sums[i], f.labels...)
		}
	}
}

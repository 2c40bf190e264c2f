//go:build linux && cgo

package nvidia

import (
	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"github.com/accel-exporter/accel-exporter/collector"
)

// c2cFields are the fields of one C2C link, which the scope selects. A family has
// few series per GPU: a field with three label sets counts links by its value, 0,
// 1 and any other; the others are sums over the links.
var c2cFields = [...]struct {
	id     uint32
	metric *collector.Metric
	unit   unit
	labels [][]string
}{
	{nvml.FI_DEV_C2C_LINK_GET_STATUS, collector.C2CLinks, one, [][]string{{"inactive"}, {"active"}, {"other"}}},
	{nvml.FI_DEV_C2C_LINK_POWER_STATE, collector.C2CPowerLinks, one, [][]string{{"full_power"}, {"low_power"}, {"other"}}},
	{nvml.FI_DEV_C2C_LINK_GET_MAX_BW, collector.C2CSpeed, mega, [][]string{nil}},
	{nvml.FI_DEV_C2C_LINK_ERROR_INTR, collector.C2CErrors, one, [][]string{{"crc"}}},
	{nvml.FI_DEV_C2C_LINK_ERROR_REPLAY, collector.C2CErrors, one, [][]string{{"replay"}}},
	{nvml.FI_DEV_C2C_LINK_ERROR_REPLAY_B2B, collector.C2CErrors, one, [][]string{{"replay_back_to_back"}}},
}

// c2c are the C2C links of one GPU to its CPU.
type c2c struct {
	// count is field 170, the number of links; asked is that of the batch.
	count, asked int
	batch        *batch
	// sums and answers are those of this round, by c2cFields.
	sums    [][3]float64
	answers []int
}

func (c *c2c) prepare() {
	var fields []field
	for i := range c2cFields {
		f := &c2cFields[i]
		use := func(g *gpu, _ *collector.Device, v float64) {
			g.c2c.answers[i]++
			if len(f.labels) == 1 {
				g.c2c.sums[i][0] += v
			} else {
				g.c2c.sums[i][int(min(v, 2))]++
			}
		}
		for link := range c.count {
			fields = append(fields, field{id: f.id, scope: uint32(link), metric: f.metric, use: use})
		}
	}
	c.asked, c.batch = c.count, newBatch(fields)
	c.sums, c.answers = make([][3]float64, len(c2cFields)), make([]int, len(c2cFields))
}

func (c *c2c) read(g *gpu, d *collector.Device) {
	if c.count != c.asked {
		c.prepare()
	}
	if c.count == 0 {
		return
	}
	clear(c.sums)
	clear(c.answers)
	c.batch.read(g, d, nil)
	for i := range c2cFields {
		f := &c2cFields[i]
		if c.answers[i] == 0 || c.answers[i] < c.count && f.metric.Kind == collector.Counter {
			continue // a sum over fewer links would look like a reset
		}
		for n, labels := range f.labels {
			if n < 2 || c.sums[i][n] > 0 {
				d.Set(f.metric, f.unit.of(c.sums[i][n]), labels...)
			}
		}
	}
}

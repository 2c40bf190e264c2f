package dcgm

import (
	"github.com/NVIDIA/go-dcgm/pkg/dcgm"
)

// blanks of each kind, absurd values and statuses, for one GPU or all.
func blanks(c *client) {
	fields := []dcgm.Short{150, 155, 85, 203}
	c.watch(fields, gpu(0), gpu(1))
	kinds := map[string]struct {
		text string
		n    int64
	}{
		"blank": {"<<<NULL>>>", 0}, "not-found": {"<<<NOT_FOUND>>>", 1}, "not-supported": {"<<<NOT_SUPPORTED>>>", 2},
		"not-permissioned": {"<<<NOT_PERM>>>", 3},
	}
	for kind, want := range kinds {
		c.inject("dcgm-field 150 "+kind+" 0", "dcgm-field 155 "+kind+" 0", "dcgm-field 85 "+kind+" 0")
		c.until(kind, func() bool {
			v := c.read(fields, gpu(0))
			return v[point{dcgm.FE_GPU, 0, 150}].Int64() == 0x7ffffffffffffff0+want.n &&
				v[point{dcgm.FE_GPU, 0, 155}].Float64() == 140737488355328.0+float64(want.n) &&
				*v[point{dcgm.FE_GPU, 0, 85}].StringValue == want.text
		})
	}
	if v := c.read(fields, gpu(1)); blank(v[point{dcgm.FE_GPU, 1, 150}]) {
		c.failf("GPU 1 is blank too")
	}
	c.inject("dcgm-field 203 808334905 all", "dcgm-field 150 status:GPU_IS_LOST 1")
	c.until("an absurd value", func() bool {
		v := c.read(fields, gpu(0), gpu(1))
		return v[point{dcgm.FE_GPU, 0, 203}].Int64() == 808334905 && v[point{dcgm.FE_GPU, 1, 203}].Int64() == 808334905 &&
			v[point{dcgm.FE_GPU, 1, 150}].Status == dcgm.DCGM_ST_GPU_IS_LOST
	})
	c.clear()
	c.until("values again", func() bool {
		v := c.read(fields, gpu(0))
		return !blank(v[point{dcgm.FE_GPU, 0, 150}]) && v[point{dcgm.FE_GPU, 0, 203}].Int64() <= 100
	})
}

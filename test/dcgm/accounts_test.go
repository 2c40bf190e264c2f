package dcgm

import (
	"encoding/binary"
	"time"

	"github.com/NVIDIA/go-dcgm/pkg/dcgm"
	"github.com/NVIDIA/go-nvml/pkg/nvml"
)

// accountsField is DCGM_FI_DEV_PROCESS_ACCOUNTING_STATS.
const accountsField = 205

// record has the fields of a dcgmDevicePidAccountingStats_v1.
type record struct {
	pid, busy             uint32
	memory, start, active uint64
}

func recordOf(v dcgm.FieldValue_v2) record {
	u32, u64 := binary.NativeEndian.Uint32, binary.NativeEndian.Uint64
	return record{pid: u32(v.Value[4:]), busy: u32(v.Value[8:]), memory: u64(v.Value[16:]), start: u64(v.Value[24:]), active: u64(v.Value[32:])}
}

// accounts are those of NVML: the same processes, with what they had, and one
// that ends is reported as ended, once.
func accounts() error {
	c, err := open()
	if err != nil {
		return err
	}
	library := nvml.New()
	if ret := library.Init(); ret != nvml.SUCCESS {
		c.failf("nvmlInit: %v", ret)
		return c.close()
	}
	defer library.Shutdown()
	group, fg := c.watch([]dcgm.Short{accountsField}, gpus(8)...)
	latest := map[uint]map[uint32]record{}
	ended := map[uint32]int{}
	since := time.Time{}
	take := func() {
		values, next, err := dcgm.GetValuesSince(group, fg, since)
		c.must(err, "since")
		since = next
		for _, v := range values {
			r := recordOf(v)
			if v.FieldType != dcgm.DCGM_FT_BINARY || v.EntityGroupId != dcgm.FE_GPU || binary.NativeEndian.Uint32(v.Value[:]) != 1<<24|40 {
				c.failf("a record of type %v of entity group %v", v.FieldType, v.EntityGroupId)
			}
			if latest[v.EntityID] == nil {
				latest[v.EntityID] = map[uint32]record{}
			}
			latest[v.EntityID][r.pid] = r
			if r.active > 0 {
				ended[r.pid]++
			}
		}
	}
	c.until("records of two processes", func() bool { take(); return len(latest[5]) == 2 })
	for i := range uint(8) {
		d, ret := library.DeviceGetHandleByIndex(int(i))
		if ret != nvml.SUCCESS {
			c.failf("handle %d: %v", i, ret)
			continue
		}
		c.sameAccounts(i, d, latest[i])
	}
	c.inject("process-end 51001")
	c.until("the end of a process", func() bool { take(); return ended[51001] > 0 })
	for range 10 {
		c.must(dcgm.UpdateAllFields(), "update")
		take()
	}
	if ended[51001] != 1 || ended[51002] != 0 || latest[5][51001].memory != 16384<<20 {
		c.failf("ended %v, the record is %+v", ended, latest[5][51001])
	}
	return c.close()
}

// sameAccounts compares with what NVML accounts for. With MIG it does not.
func (c *client) sameAccounts(i uint, d nvml.Device, got map[uint32]record) {
	ret := d.SetAccountingMode(nvml.FEATURE_ENABLED)
	if ret == nvml.ERROR_NOT_SUPPORTED {
		if len(got) > 0 {
			c.failf("GPU %d: records %v, and NVML accounts for none", i, got)
		}
		return
	}
	pids, ret := d.GetAccountingPids()
	if ret != nvml.SUCCESS || len(pids) != len(got) {
		c.failf("GPU %d: NVML accounts for %v, %v; DCGM for %v", i, pids, ret, got)
	}
	for _, pid := range pids {
		stats, ret := d.GetAccountingStats(uint32(pid))
		r := got[uint32(pid)]
		if ret != nvml.SUCCESS || stats.MaxMemoryUsage != r.memory || r.start == 0 || (stats.IsRunning == 1) != (r.active == 0) {
			c.failf("GPU %d, process %d: NVML %+v, %v; DCGM %+v", i, pid, stats, ret, r)
		}
	}
}

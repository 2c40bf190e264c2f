package dcgm

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/NVIDIA/go-dcgm/pkg/dcgm"

	"github.com/accel-exporter/accel-exporter/collector/dcgm/dcgmlive"
)

// hasText reports whether the error has DCGM's text of a return code.
func hasText(err error, text string) bool { return err != nil && strings.Contains(err.Error(), text) }

const broken = "Host engine connection invalid/disconnected"

// reconnect: a connection that broke stays broken, and a new one finds an
// engine that watches nothing.
func reconnect() error {
	var c *client
	for _, args := range [][]string{{"localhost:5555", "0"}, {"/run/nv-hostengine.sock", "1"}, {"tcp://127.0.0.1:5555"}, {"unix:///run/nv-hostengine.sock"}} {
		for _, state := range []string{"restart", "disconnect", "down"} {
			var err error
			if c, err = open(args...); err != nil {
				return fmt.Errorf("%v: %w", args, err)
			}
			c.watch([]dcgm.Short{150}, gpu(0))
			temperature := func() int { return c.read([]dcgm.Short{150}, gpu(0))[point{dcgm.FE_GPU, 0, 150}].Status }
			if s := temperature(); s != 0 {
				c.failf("%v: status %d", args, s)
			}
			c.inject("dcgm-engine " + state)
			c.until("the connection breaks", func() bool {
				_, err := dcgm.GetAllDeviceCount()
				return hasText(err, broken)
			})
			c.inject("dcgm-engine up")
			if _, err := dcgm.GetAllDeviceCount(); !hasText(err, broken) {
				c.failf("the broken connection: %v", err)
			}
			if err := c.close(); err != nil {
				return err
			}
			again := &client{}
			again.until("the engine is up again", func() bool {
				var next *client
				if next, err = open(args...); err == nil {
					again = next
				}
				return err == nil || !hasText(err, broken)
			})
			if err != nil {
				return fmt.Errorf("again %v: %w", args, err)
			}
			c = again
			if s := temperature(); s != dcgm.DCGM_ST_NOT_WATCHED {
				c.failf("%v: status %d after %s", args, s, state)
			}
			if err := c.close(); err != nil {
				return err
			}
		}
	}
	return nil
}

// engineAbsent: connecting to no engine is an error, and embedding one is not.
func engineAbsent() error {
	if _, err := open("localhost:5555", "0"); !hasText(err, broken) {
		return fmt.Errorf("connected: %w", err)
	}
	c, err := open()
	if err != nil {
		return err
	}
	return c.close()
}

// limits are DCGM's, and can be lowered.
func limits() error {
	c, err := open()
	if err != nil {
		return err
	}
	fill := func(create func(i int) error) (n int) {
		for ; n < 1000; n++ {
			if err := create(n); err != nil {
				if !hasText(err, "Object limit reached") {
					c.failf("object %d: %v", n, err)
				}
				break
			}
		}
		return n
	}
	var groups []dcgm.GroupHandle
	group := func(i int) error {
		g, err := dcgm.CreateGroup(fmt.Sprint("g", i))
		if err == nil {
			groups = append(groups, g)
		}
		return err
	}
	if n := fill(group); n != 64 {
		c.failf("%d groups", n)
	}
	if n := fill(func(i int) error {
		_, err := dcgm.FieldGroupCreate(fmt.Sprint("f", i), []dcgm.Short{150})
		return err
	}); n != 64 {
		c.failf("%d field groups", n)
	}
	if _, err := dcgm.FieldGroupCreate("f0", []dcgm.Short{150}); !hasText(err, "Duplicate key") {
		c.failf("the same name: %v", err)
	}
	if _, err := dcgm.FieldGroupCreate("many", slices.Repeat([]dcgm.Short{150}, 129)); !hasText(err, "Object limit reached") {
		c.failf("129 fields: %v", err)
	}
	if _, err := dcgm.FieldGroupCreate("none", []dcgm.Short{2000}); !hasText(err, "Unknown field") {
		c.failf("an unknown field: %v", err)
	}
	for _, g := range groups {
		c.must(dcgm.DestroyGroup(g), "destroy")
	}
	return c.close()
}

// leak: a group that is destroyed leaves its watches, as the real engine does;
// unwatching ends them.
func leak(c *client) {
	expect := func(want dcgmlive.Objects) {
		if got, simulated := dcgmlive.Now(); !simulated || got != want {
			c.failf("the engine has %+v, simulated: %v; want %+v", got, simulated, want)
		}
	}
	group, fg := c.watch([]dcgm.Short{150, 155, 1}, gpu(0), gpu(1))
	expect(dcgmlive.Objects{Groups: 1, FieldGroups: 1, Watches: 5}) // the driver's version belongs to no device
	c.must(dcgm.UnwatchFields(fg, group), "unwatch")
	expect(dcgmlive.Objects{Groups: 1, FieldGroups: 1})
	c.must(dcgm.DestroyGroup(group), "destroy group")
	c.must(dcgm.FieldGroupDestroy(fg), "destroy field group")
	expect(dcgmlive.Objects{})
	group, fg = c.watch([]dcgm.Short{150}, gpu(0))
	c.must(dcgm.DestroyGroup(group), "destroy group")
	c.must(dcgm.FieldGroupDestroy(fg), "destroy field group")
	expect(dcgmlive.Objects{Watches: 1})
}

// profiling that another tool uses, or that is paused, returns blank values.
func profiling(c *client) {
	c.watch([]dcgm.Short{1001, 150}, gpu(0))
	isBlank := func() bool { return blank(c.read([]dcgm.Short{1001}, gpu(0))[point{dcgm.FE_GPU, 0, 1001}]) }
	c.until("profiling", func() bool { return !isBlank() })
	c.inject("dcgm-profiling paused")
	c.until("paused", isBlank)
	c.inject("dcgm-profiling free")
	c.until("resumed", func() bool { return !isBlank() })
	c.inject("dcgm-profiling in-use")
	c.until("in use by another tool", isBlank)
	if blank(c.read([]dcgm.Short{150}, gpu(0))[point{dcgm.FE_GPU, 0, 150}]) {
		c.failf("the temperature is blank too")
	}
	if _, err := dcgm.GetSupportedMetricGroups(0); !hasText(err, "in use") {
		c.failf("metric groups: %v", err)
	}
	c.clear()
	c.until("free again", func() bool { return !isBlank() })
}

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

// versions: a struct of another version is refused by name.
func versions(c *client) {
	if v, err := dcgm.GetVersionInfo(); err != nil || v.RawBuildInfoString == "" {
		c.failf("version %+v, %v", v, err)
	}
	c.inject("dcgm-version-mismatch")
	c.until("a mismatch", func() bool {
		_, err := dcgm.GetDeviceInfo(0)
		return hasText(err, "API version mismatch")
	})
	if _, err := dcgm.GetNvLinkLinkStatus(); !hasText(err, "API version mismatch") {
		c.failf("links: %v", err)
	}
	c.inject("dcgm-error dcgmGetAllDevices NOT_SUPPORTED")
	c.until("an error by name", func() bool {
		_, err := dcgm.GetAllDeviceCount()
		return hasText(err, "not supported")
	})
}

// returned runs a call on a goroutine; the channel is closed when it returns.
func returned(f func() error) <-chan error {
	done := make(chan error, 1)
	go func() { done <- f() }()
	return done
}

func count() error {
	_, err := dcgm.GetAllDeviceCount()
	return err
}

// hang: a call that is made to hang does, others do not, and it goes on when
// the fault is cleared.
func hang(c *client) {
	c.inject("dcgm-hang --call=dcgmGetAllDevices")
	var hung <-chan error
	c.until("a call hangs", func() bool {
		hung = returned(count)
		select {
		case <-hung:
			return false // it had begun before the fault was seen
		case <-time.After(200 * time.Millisecond):
			return true
		}
	})
	if _, err := dcgm.GetVersionInfo(); err != nil {
		c.failf("another call: %v", err)
	}
	c.clear()
	select {
	case err := <-hung:
		c.must(err, "the call that hung")
	case <-time.After(patience):
		c.failf("it hangs still")
	}
}

// driverHang: while the driver hangs on one GPU the engine's loop does, so that
// values age; reading them does not hang.
func driverHang(c *client) {
	c.watch([]dcgm.Short{150}, gpu(0), gpu(3))
	stamp := func() int64 { return c.read([]dcgm.Short{150}, gpu(0))[point{dcgm.FE_GPU, 0, 150}].TS }
	first := stamp()
	c.until("a second sample", func() bool { return stamp() > first })
	c.inject("hang 3")
	var last int64
	c.until("values age", func() bool {
		last = stamp()
		time.Sleep(300 * time.Millisecond) // six times what a sample takes
		return stamp() == last
	})
	c.clear()
	c.until("values go on", func() bool { return stamp() > last })
}

// noDriver: the engine starts without a driver and reports it.
func noDriver(c *client) {
	if _, err := dcgm.GetAllDeviceCount(); !hasText(err, "NVML is not loaded") {
		c.failf("devices: %v", err)
	}
}

// detach: the driver can be let go of and taken up again.
func detach(c *client) {
	c.must(dcgm.DetachDriver(), "detach")
	if n, err := dcgm.GetAllDeviceCount(); err != nil || n != 0 {
		c.failf("detached: %d GPUs, %v", n, err)
	}
	c.inject("driver-reload --driver=590.10")
	c.must(dcgm.AttachDriver(), "attach")
	if n, err := dcgm.GetAllDeviceCount(); err != nil || n != 8 {
		c.failf("attached: %d GPUs, %v", n, err)
	}
	c.watch([]dcgm.Short{1}, gpu(0))
	if v, err := dcgm.EntitiesGetLatestValues(gpus(1), []dcgm.Short{1}, 0); err != nil || *v[0].StringValue != "590.10" {
		c.failf("driver %v, %v", v, err)
	}
}

// valuesSince returns every sample, once.
func valuesSince(c *client) {
	group, fg := c.watch([]dcgm.Short{150, 155}, gpu(0), gpu(1))
	var all []dcgm.FieldValue_v2
	since := time.Time{}
	c.until("five samples of each", func() bool {
		values, next, err := dcgm.GetValuesSince(group, fg, since)
		c.must(err, "since")
		all, since = append(all, values...), next
		return len(all) >= 20
	})
	seen := map[string]bool{}
	for _, v := range all {
		key := fmt.Sprint(v.EntityID, v.FieldID, v.TS)
		if seen[key] {
			c.failf("twice: %s", key)
		}
		seen[key] = true
	}
}

// callOnce is for tests that end its process.
func callOnce() error {
	c, err := open()
	if err != nil {
		return err
	}
	if n, err := dcgm.GetAllDeviceCount(); err != nil || n != 8 {
		return errors.Join(fmt.Errorf("%d GPUs", n), err)
	}
	return c.close()
}

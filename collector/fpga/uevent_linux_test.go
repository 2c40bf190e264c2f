package fpga

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/accel-exporter/accel-exporter/collector/sysfs"
)

// synthesize makes the kernel send an event of a device, as udevadm trigger
// does. It skips the test where this process may not, or would not receive it.
func synthesize(t *testing.T, device, action string) {
	t.Helper()
	if users, _ := os.ReadFile("/proc/self/uid_map"); !strings.HasSuffix(strings.TrimSpace(string(users)), " 4294967295") {
		t.Skip("the kernel sends no events to other user namespaces")
	}
	file, err := os.OpenFile(device+"/uevent", os.O_WRONLY, 0)
	if err != nil {
		t.Skip(err)
	}
	defer file.Close()
	if _, err := file.WriteString(action); err != nil {
		t.Skip(err)
	}
}

// TestKernelMessage: this machine's message about /dev/null is parsed.
func TestKernelMessage(t *testing.T) {
	from, err := openUevents()
	if err != nil {
		t.Skip(err)
	}
	heard := make(chan uevent)
	go func() {
		defer close(heard)
		buf := make([]byte, maxUevent)
		for {
			n, err := from.Read(buf)
			if err != nil {
				return
			}
			if e, ok := parseUevent(buf[:n]); ok && strings.HasSuffix(e.path, "/mem/null") {
				heard <- e
				return
			}
		}
	}()
	defer func() {
		from.Close()
		for range heard { //nolint:revive // until the goroutine has ended
		}
	}()
	synthesize(t, "/sys/class/mem/null", "add")
	select {
	case e := <-heard:
		if e.action != "add" || e.subsystem != "mem" || e.matters() {
			t.Errorf("%+v", e)
		}
	case <-time.After(time.Minute):
		t.Error("nothing heard")
	}
}

// TestKernelWakes: a round starts after an event of a device on a bus with
// FPGAs.
func TestKernelWakes(t *testing.T) {
	devices, _ := filepath.Glob("/sys/bus/platform/devices/*")
	if len(devices) == 0 {
		t.Skip("no platform device")
	}
	woken := make(chan struct{}, 1)
	s := New(sysfs.New(t.TempDir()), Options{Wake: func() {
		select {
		case woken <- struct{}{}:
		default:
		}
	}})
	defer s.Close()
	if s.uevents == nil {
		t.Skip("no uevents on this machine")
	}
	synthesize(t, devices[0], "bind")
	select {
	case <-woken:
	case <-time.After(time.Minute):
		t.Error("not woken")
	}
	if !s.lister.afresh.Load() {
		t.Error("the next round would not look for cards")
	}
}

package pcie

import (
	"errors"
	"io/fs"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/accel-exporter/accel-exporter/collector"
	"github.com/accel-exporter/accel-exporter/collector/solo"
	"github.com/accel-exporter/accel-exporter/collector/sysfs"
)

// driverSlot reads what NVIDIA's driver shows of one GPU, and checks its device
// files or the files of AMD's driver, on its own goroutine: the driver's procfs takes
// locks that a failing GPU may hold.
type driverSlot struct {
	solo.Slot[driverView]
	wanted bool
	last   driverView
}

// driverView is what the driver and /dev show of one GPU.
type driverView struct {
	information
	files []fileState
}

// fileState is the state of one device file; reason is empty for a usable file.
type fileState struct{ file, reason string }

// driverOf returns the slot of a GPU of NVIDIA's or AMD's driver.
func (s *Source) driverOf(address string) *driverSlot {
	f := s.drivers[address]
	if f == nil {
		l := &driverLooker{proc: s.proc, sys: openDirectory(s.sys, address), dir: nvidiaGPUs + "/" + address, dev: s.options.Dev, stat: s.options.Stat}
		f = &driverSlot{Slot: solo.Slot[driverView]{Worker: solo.New(l.look, nil)}}
		s.drivers[address] = f
	}
	f.wanted = true
	return f
}

func (s *Source) askDrivers(r *solo.Round) (asked bool) {
	for address, f := range s.drivers {
		if f.wanted {
			if due(r, f.Worker) {
				f.Ask(r, f.take)
				asked = true
			}
		} else if f.Idle() {
			f.Stop()
			delete(s.drivers, address)
		}
	}
	return asked
}

func (f *driverSlot) take(v driverView) bool {
	f.last = v
	return true
}

func (f *driverSlot) readings(d *collector.Device) {
	f.last.describe(d)
	if !f.Valid {
		return // only the identity is known
	}
	for _, st := range f.last.files {
		d.SetBool(collector.DeviceFileUsable, st.reason == "", st.file, st.reason)
	}
}

// driverLooker reads the information of one GPU and checks its device files.
type driverLooker struct {
	proc    sysfs.FS
	sys     directory
	dir     string // of the GPU in procfs
	last    information
	renewed time.Time

	dev  string
	stat func(string) (fs.FileInfo, error)
}

// inform returns nothing where NVIDIA's driver does not have the GPU. Drivers
// before R595 wake the GPU for a read, so the file of a sleeping GPU is not opened.
func (l *driverLooker) inform(now time.Time) information {
	if !l.proc.Exists(l.dir) {
		l.last, l.renewed = information{}, time.Time{}
		return l.last
	}
	if now.Sub(l.renewed) < renewAfter {
		return l.last
	}
	if p, err := l.sys.power(); err != nil || !p.awake() {
		return l.last
	}
	if text, err := l.proc.Read(l.dir + "/information"); err == nil && text != "" {
		l.last, l.renewed = parseInformation(text), now
	}
	return l.last
}

func (l *driverLooker) look(now time.Time) driverView {
	v := driverView{information: l.inform(now)}
	switch driver, _ := l.sys.driver(); {
	case l.dev == "":
	case v.minor != "":
		params, _ := l.proc.ReadBytes("driver/nvidia/params", 4*sysfs.Page)
		want := parseParams(string(params))
		l.check(&v, "nvidia"+v.minor, want)
		l.check(&v, "nvidiactl", want)
		if l.registered("nvidia-uvm") {
			l.check(&v, "nvidia-uvm", want)
		}
	case driver == "amdgpu": // the render node, and the file for ROCm; udev sets owner and mode
		nodes, _ := l.sys.fs.Names(l.sys.path + "/drm")
		for _, node := range nodes {
			if strings.HasPrefix(node, "renderD") {
				l.check(&v, "dri/"+node, nil)
			}
		}
		if l.registered("kfd") {
			l.check(&v, "kfd", nil)
		}
	}
	return v
}

// registered reports whether a driver has registered character devices of the name.
func (l *driverLooker) registered(name string) bool {
	text, _ := l.proc.ReadBytes("devices", 4*sysfs.Page)
	list, _, _ := strings.Cut(string(text), "Block devices:")
	return strings.Contains(list, " "+name+"\n")
}

// check compares a device file with its expected owner and mode; want is nil where
// any will do. A file that cannot be looked at has no state.
func (l *driverLooker) check(v *driverView, name string, want *access) {
	reason := ""
	info, err := l.stat(filepath.Join(l.dev, name))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		reason = "missing"
	case err != nil:
		return
	case info.Mode()&fs.ModeCharDevice == 0:
		reason = "wrong_device"
	default:
		st, ok := info.Sys().(*syscall.Stat_t)
		if ok && want != nil && *want != (access{st.Uid, st.Gid, uint32(info.Mode().Perm())}) {
			reason = "permissions"
		}
	}
	v.files = append(v.files, fileState{name, reason})
}

// access is the owner and mode of a file.
type access struct{ uid, gid, mode uint32 }

// parseParams parses the owner and mode that NVIDIA's module gives its files. It
// returns nil where one is missing, or the module does not set them.
func parseParams(text string) *access {
	settings := map[string]uint32{"ModifyDeviceFiles": 1}
	for line := range strings.Lines(text) {
		key, v, _ := strings.Cut(line, ":")
		if n, err := strconv.ParseUint(strings.TrimSpace(v), 10, 32); err == nil {
			settings[key] = uint32(n)
		}
	}
	uid, ok := settings["DeviceFileUID"]
	gid, ok2 := settings["DeviceFileGID"]
	mode, ok3 := settings["DeviceFileMode"]
	if !ok || !ok2 || !ok3 || settings["ModifyDeviceFiles"] == 0 || fs.FileMode(mode)&^fs.ModePerm != 0 {
		return nil
	}
	return &access{uid, gid, mode}
}

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

// Below procfs: the settings of NVIDIA's module, and the kernel's list of device
// numbers.
const (
	nvidiaParams  = "driver/nvidia/params"
	deviceNumbers = "devices"
)

// Numbers of NVIDIA's device files, constant for decades
// (nv-chardev-numbers.h). Those of nvidia-uvm are assigned at load.
const (
	nvidiaMajor  = 195
	controlMinor = 255
)

// Why a device file is not usable: values of the label reason.
const (
	fileMissing     = "missing"
	fileWrong       = "wrong_device"
	filePermissions = "permissions"
)

// driverSlot reads what NVIDIA's driver shows of one GPU, and checks its device
// files or those of AMD's driver, on its own goroutine: the driver's procfs takes
// locks that a failing GPU may hold.
type driverSlot struct {
	solo.Slot[driverView]
	wanted bool
	last   driverView
	labels map[fileState][]string
}

// driverView is what the driver and /dev show of one GPU.
type driverView struct {
	information
	files []fileState
}

// fileState is the state of one device file.
type fileState struct{ file, reason string }

// driverOf returns the slot of a GPU of NVIDIA's or AMD's driver.
func (s *Source) driverOf(address string) *driverSlot {
	f := s.drivers[address]
	if f == nil {
		i := &informant{proc: s.proc, sys: openDirectory(s.sys, address), dir: nvidiaGPUs + "/" + address}
		l := &driverLooker{informant: i, dev: s.options.Dev, stat: s.options.Stat}
		f = &driverSlot{Slot: solo.Slot[driverView]{Worker: solo.New(l.look, nil)}, labels: map[fileState][]string{}}
		s.drivers[address] = f
	}
	f.wanted = true
	return f
}

func (s *Source) askDrivers(r *solo.Round) {
	for address, f := range s.drivers {
		if f.wanted {
			f.Ask(r, f.take)
		} else if f.Idle() {
			f.Stop()
			delete(s.drivers, address)
		}
	}
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
		labels := f.labels[st]
		if labels == nil {
			labels = []string{st.file, st.reason}
			f.labels[st] = labels
		}
		d.SetBool(collector.DeviceFileUsable, st.reason == "", labels...)
	}
}

// driverLooker reads the information of one GPU and checks its device files.
type driverLooker struct {
	*informant
	dev  string
	stat func(string) (fs.FileInfo, error)
}

func (l *driverLooker) look(now time.Time) driverView {
	v := driverView{information: l.informant.look(now)}
	if l.dev == "" {
		return v
	}
	var list []deviceFile
	var want access
	if v.minor != "" {
		params, _ := l.proc.ReadBytes(nvidiaParams, 4*sysfs.Page)
		list, want = l.nvidiaFiles(v.minor), parseParams(string(params))
	} else {
		list = l.amdFiles() // udev sets owner and mode
	}
	for _, f := range list {
		if reason, ok := l.judge(f.name, f.number, want); ok {
			v.files = append(v.files, fileState{f.name, reason})
		}
	}
	return v
}

// deviceFile is a device file that a GPU should have.
type deviceFile struct {
	name   string
	number uint64
}

// amdFiles are the files of a GPU that AMD's driver has: its render node, which
// sysfs has the number of, and the one for ROCm.
func (l *driverLooker) amdFiles() (list []deviceFile) {
	driver, _ := l.sys.driver()
	if driver != "amdgpu" {
		return nil
	}
	nodes, _ := l.sys.fs.Names(l.sys.path + "/drm")
	for _, node := range nodes {
		if !strings.HasPrefix(node, "renderD") {
			continue
		}
		text, _ := l.sys.fs.Read(l.sys.path + "/drm/" + node + "/dev")
		major, minor, _ := strings.Cut(text, ":")
		a, err := strconv.ParseUint(major, 10, majorBits)
		b, err2 := strconv.ParseUint(minor, 10, minorBits)
		if err == nil && err2 == nil {
			list = append(list, deviceFile{"dri/" + node, deviceNumber(uint32(a), uint32(b))})
		}
	}
	return l.withMajor(list, "kfd")
}

func (l *driverLooker) nvidiaFiles(minor string) []deviceFile {
	n, _ := strconv.ParseUint(minor, 10, minorBits)
	return l.withMajor([]deviceFile{
		{"nvidia" + minor, deviceNumber(nvidiaMajor, uint32(n))},
		{"nvidiactl", deviceNumber(nvidiaMajor, controlMinor)},
	}, "nvidia-uvm")
}

// withMajor adds the file of a driver whose major number is assigned at load.
func (l *driverLooker) withMajor(list []deviceFile, name string) []deviceFile {
	numbers, _ := l.proc.ReadBytes(deviceNumbers, 4*sysfs.Page)
	if major, ok := charMajor(string(numbers), name); ok {
		list = append(list, deviceFile{name, deviceNumber(major, 0)})
	}
	return list
}

// judge compares a device file with its expected state. It is false for one
// that could not be checked.
func (l *driverLooker) judge(name string, number uint64, want access) (reason string, ok bool) {
	info, err := l.stat(filepath.Join(l.dev, name))
	if errors.Is(err, fs.ErrNotExist) {
		return fileMissing, true
	}
	if err != nil {
		return "", false
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok || info.Mode()&fs.ModeCharDevice == 0 || st.Rdev != number {
		return fileWrong, true
	}
	if want.known && (st.Uid != want.uid || st.Gid != want.gid || uint32(info.Mode().Perm()) != want.mode) {
		return filePermissions, true
	}
	return "", true
}

// The kernel's device numbers have 12 bits for the major and 20 for the minor
// (include/linux/kdev_t.h).
const (
	majorBits = 12
	minorBits = 20
)

// deviceNumber returns a device number in the format of stat(2).
func deviceNumber(major, minor uint32) uint64 {
	return uint64(major)<<8 | uint64(minor&0xff) | uint64(minor&^0xff)<<12
}

// access is the owner and mode that the driver is configured to give its files.
type access struct {
	known          bool
	uid, gid, mode uint32
}

// parseParams parses the settings of NVIDIA's module. They are known only where
// all are present and the driver is configured to apply them.
func parseParams(text string) access {
	settings := map[string]uint32{}
	for line := range strings.Lines(text) {
		key, v, _ := strings.Cut(line, ":")
		if n, err := strconv.ParseUint(strings.TrimSpace(v), 10, 32); err == nil {
			settings[key] = uint32(n)
		}
	}
	var a access
	apply, known := true, true
	for key, into := range map[string]*uint32{"DeviceFileUID": &a.uid, "DeviceFileGID": &a.gid, "DeviceFileMode": &a.mode} {
		n, ok := settings[key]
		*into, known = n, known && ok
	}
	if n, ok := settings["ModifyDeviceFiles"]; ok {
		apply = n != 0
	}
	if !known || !apply || fs.FileMode(a.mode)&^fs.ModePerm != 0 {
		return access{}
	}
	a.known = true
	return a
}

// charMajor returns the major number of a character device, from the text of
// /proc/devices.
func charMajor(text, name string) (uint32, bool) {
	_, list, _ := strings.Cut(text, "Character devices:")
	list, _, _ = strings.Cut(list, "Block devices:")
	for line := range strings.Lines(list) {
		number, device, _ := strings.Cut(strings.TrimSpace(line), " ")
		if device == name {
			n, err := strconv.ParseUint(number, 10, majorBits)
			return uint32(n), err == nil
		}
	}
	return 0, false
}

package pcie

import (
	"errors"
	"io/fs"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/accel-exporter/accel-exporter/collector"
	"github.com/accel-exporter/accel-exporter/collector/solo"
	"github.com/accel-exporter/accel-exporter/collector/sysfs"
)

// procfs of NVIDIA's driver: the module's settings and a folder per GPU by PCI
// address; and the kernel's list of device numbers.
const (
	nvidiaParams  = "driver/nvidia/params"
	nvidiaGPUs    = "driver/nvidia/gpus"
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

// fileSlot checks the device files of one GPU on its own goroutine: the
// driver's procfs takes locks that a failing GPU may hold.
type fileSlot struct {
	*solo.Worker[[]fileState]
	address  string
	wanted   bool
	last     []fileState
	answered bool
	labels   map[fileState][]string
}

// fileState is the state of one device file.
type fileState struct{ file, reason string }

// filesOf returns the slot of a GPU's device files, nil where they are not
// checked.
func (s *Source) filesOf(address string) *fileSlot {
	if s.options.Dev == "" {
		return nil
	}
	f := s.files[address]
	if f == nil {
		l := &fileLooker{proc: s.proc, dev: s.options.Dev, stat: s.options.Stat, address: address}
		f = &fileSlot{Worker: solo.New(l.look, nil), address: address, labels: map[fileState][]string{}}
		s.files[address] = f
	}
	f.wanted = true
	return f
}

func (s *Source) askFiles(now time.Time, timeout time.Duration) {
	for address, f := range s.files {
		states, returned := f.Poll()
		if !f.wanted {
			if returned || !f.Busy {
				f.Stop()
				delete(s.files, address)
			}
			continue
		}
		if returned {
			f.last, f.answered = states, now.Sub(f.Asked) <= timeout
		}
		f.Start(now)
	}
}

// gatherFiles waits for a slow check. The previous result is valid until the
// check is overdue; after that there is none.
func (s *Source) gatherFiles(soon <-chan struct{}, timeout time.Duration) {
	for _, f := range s.files {
		if !f.wanted {
			continue
		}
		if states, ok := f.Await(soon); ok {
			f.last, f.answered = states, true
		}
		if f.Busy && time.Since(f.Asked) >= timeout {
			f.answered = false
		}
	}
}

func (f *fileSlot) readings(d *collector.Device) {
	if !f.answered {
		return
	}
	for _, st := range f.last {
		labels := f.labels[st]
		if labels == nil {
			labels = []string{st.file, st.reason}
			f.labels[st] = labels
		}
		d.SetBool(collector.DeviceFileUsable, st.reason == "", labels...)
	}
}

// fileLooker checks the device files of one GPU.
type fileLooker struct {
	proc    sysfs.FS
	dev     string
	stat    func(string) (fs.FileInfo, error)
	address string
	minor   uint32
	renewed time.Time
}

// look returns nothing where NVIDIA's driver does not have the GPU: then no
// file is expected.
func (l *fileLooker) look(now time.Time) []fileState {
	if l.renewed.IsZero() || now.Sub(l.renewed) >= renewAfter {
		text, err := l.proc.Read(path.Join(nvidiaGPUs, l.address, "information"))
		minor, ok := deviceMinor(text)
		if err != nil || !ok {
			return nil
		}
		l.minor, l.renewed = minor, now
	} else if !l.proc.Exists(path.Join(nvidiaGPUs, l.address)) {
		l.renewed = time.Time{}
		return nil
	}
	params, _ := l.proc.ReadBytes(nvidiaParams, 4*sysfs.Page)
	want := parseParams(string(params))
	var states []fileState
	judge := func(name string, number uint64) {
		if reason, ok := l.judge(name, number, want); ok {
			states = append(states, fileState{name, reason})
		}
	}
	judge("nvidia"+strconv.FormatUint(uint64(l.minor), 10), deviceNumber(nvidiaMajor, l.minor))
	judge("nvidiactl", deviceNumber(nvidiaMajor, controlMinor))
	numbers, _ := l.proc.ReadBytes(deviceNumbers, 4*sysfs.Page)
	if major, ok := charMajor(string(numbers), "nvidia-uvm"); ok {
		judge("nvidia-uvm", deviceNumber(major, 0))
	}
	return states
}

// judge compares a device file with its expected state. It is false for one
// that could not be checked.
func (l *fileLooker) judge(name string, number uint64, want access) (reason string, ok bool) {
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

// deviceMinor returns the minor number of a GPU's device file, from the text of
// driver/nvidia/gpus/*/information.
func deviceMinor(text string) (uint32, bool) {
	for line := range strings.Lines(text) {
		if key, v, _ := strings.Cut(line, ":"); strings.TrimSpace(key) == "Device Minor" {
			n, err := strconv.ParseUint(strings.TrimSpace(v), 10, minorBits)
			return uint32(n), err == nil
		}
	}
	return 0, false
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

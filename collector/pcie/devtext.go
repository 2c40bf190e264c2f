package pcie

import (
	"io/fs"
	"strconv"
	"strings"
)

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

package pcie

import (
	"errors"
	"syscall"

	"github.com/accel-exporter/accel-exporter/collector/sysfs"
)

// devicesDir has a link per PCI function, named by its address.
const devicesDir = "bus/pci/devices"

// The attributes of a function that are read. No other file of its directory is
// opened. In particular not config and resource* (the hardware itself), rom and vpd
// (slow, and some cards hang), reset, remove, rescan, enable, driver_override,
// sriov_* and msi_* (writing changes the device).
const (
	// Kept by the kernel in memory since enumeration.
	attrClass           = "class"
	attrVendor          = "vendor"
	attrDevice          = "device"
	attrSubsystemVendor = "subsystem_vendor"
	attrSubsystemDevice = "subsystem_device"
	attrRevision        = "revision"
	attrNUMANode        = "numa_node"
	// Kept in memory; they change.
	attrPowerState    = "power_state"
	attrRuntimeStatus = "power/runtime_status"
	// Read from configuration space: only of a function that is awake.
	attrLinkSpeed    = "current_link_speed"
	attrLinkWidth    = "current_link_width"
	attrLinkSpeedMax = "max_link_speed"
	attrLinkWidthMax = "max_link_width"
)

// aerFiles, in the order of severity, are kept in memory.
var aerFiles = [severities]string{"aer_dev_correctable", "aer_dev_nonfatal", "aer_dev_fatal"}

// errGone: a function left the bus while it was read.
var errGone = errors.New("left the bus")

// directory reads the attributes of one function.
type directory struct {
	fs   sysfs.FS
	path string
}

func openDirectory(fs sysfs.FS, address string) directory {
	return directory{fs: fs, path: devicesDir + "/" + address}
}

// read returns the text of an attribute, "" where the function does not have
// it. The error is errGone where the function has left the bus.
func (d *directory) read(attribute string) (string, error) {
	text, err := d.fs.Read(d.path + "/" + attribute)
	switch sysfs.Errno(err) {
	case syscall.ENODEV: // the file is being removed
		return "", errGone
	case syscall.ENOENT, syscall.ENOTDIR:
		if !d.here() {
			return "", errGone
		}
		return "", nil
	}
	return text, err
}

// here reports whether the function is on the bus. While a function is being
// removed, its link exists longer than the target.
func (d *directory) here() bool { return d.fs.Exists(d.path + "/" + attrVendor) }

// driver returns the name of the bound driver, or "".
func (d *directory) driver() (string, error) {
	name, err := d.fs.Link(d.path + "/driver")
	if sysfs.Errno(err) != syscall.ENOENT {
		return name, err
	}
	if !d.here() {
		return "", errGone
	}
	return "", nil
}

// power reads the kernel's power management state of the function.
func (d *directory) power() (p power, err error) {
	if p.state, err = d.read(attrPowerState); err == nil {
		p.status, err = d.read(attrRuntimeStatus)
	}
	return p, err
}

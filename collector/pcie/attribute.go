package pcie

import (
	"errors"
	"path"
	"syscall"
	"time"

	"github.com/accel-exporter/accel-exporter/collector/sysfs"
)

// devicesDir has a link per PCI function, named by its address.
const devicesDir = "bus/pci/devices"

// attribute is a file of a function's directory. No other file is opened. In
// particular not config and resource* (the hardware itself), rom and vpd (slow,
// and some cards hang), reset, remove, rescan, enable, driver_override, sriov_*
// and msi_* (writing changes the device).
type attribute uint8

const (
	// Kept by the kernel in memory since enumeration.
	attrClass attribute = iota
	attrVendor
	attrDevice
	attrSubsystemVendor
	attrSubsystemDevice
	attrRevision
	attrNUMANode
	// Kept in memory; they change.
	attrPowerState
	attrRuntimeStatus
	attrCorrectable
	attrNonfatal
	attrFatal
	// Read from configuration space: only of a function that is awake.
	attrLinkSpeed
	attrLinkWidth
	attrLinkSpeedMax
	attrLinkWidthMax
	attributes
)

var attributeNames = [attributes]string{
	attrClass:           "class",
	attrVendor:          "vendor",
	attrDevice:          "device",
	attrSubsystemVendor: "subsystem_vendor",
	attrSubsystemDevice: "subsystem_device",
	attrRevision:        "revision",
	attrNUMANode:        "numa_node",
	attrPowerState:      "power_state",
	attrRuntimeStatus:   "power/runtime_status",
	attrCorrectable:     "aer_dev_correctable",
	attrNonfatal:        "aer_dev_nonfatal",
	attrFatal:           "aer_dev_fatal",
	attrLinkSpeed:       "current_link_speed",
	attrLinkWidth:       "current_link_width",
	attrLinkSpeedMax:    "max_link_speed",
	attrLinkWidthMax:    "max_link_width",
}

// aerFiles are in the order of severity.
var aerFiles = [severities]attribute{attrCorrectable, attrNonfatal, attrFatal}

// The maximum length of an attribute, in bytes. The kernel's longest AER file
// has 32 errors, each a name of at most 25 letters and a number of 20 digits.
const (
	shortText = 64
	aerText   = 2048
)

// errGone: a function left the bus while it was read.
var errGone = errors.New("left the bus")

// directory reads the attributes of one function.
type directory struct {
	fs   sysfs.FS
	path string
	// absent are the attributes that this function does not have.
	absent  [attributes]bool
	renewed time.Time
}

func openDirectory(fs sysfs.FS, address string) directory {
	return directory{fs: fs, path: path.Join(devicesDir, address)}
}

// renew drops the list of absent attributes from time to time: another function
// may have this address by now. It reports whether it did.
func (d *directory) renew(now time.Time) bool {
	if !d.renewed.IsZero() && now.Sub(d.renewed) < renewAfter {
		return false
	}
	d.renewed = now
	d.absent = [attributes]bool{}
	return true
}

// read returns the text of an attribute, "" where the function does not have
// it. The error is errGone where the function has left the bus.
func (d *directory) read(a attribute) (string, error) {
	if d.absent[a] {
		return "", nil
	}
	limit := shortText
	if a == attrCorrectable || a == attrNonfatal || a == attrFatal {
		limit = aerText
	}
	text, err := d.fs.ReadText(d.path+"/"+attributeNames[a], limit)
	if err == nil {
		return text, nil
	}
	switch sysfs.Errno(err) {
	case syscall.ENODEV: // the file is being removed
		return "", errGone
	case syscall.ENOENT, syscall.ENOTDIR:
		if !d.here() {
			return "", errGone
		}
		d.absent[a] = true
		return "", nil
	}
	return "", err
}

// here reports whether the function is on the bus. While a function is being
// removed, its link exists longer than the target.
func (d *directory) here() bool { return d.fs.Exists(d.path + "/" + attributeNames[attrVendor]) }

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

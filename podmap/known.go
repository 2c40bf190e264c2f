package podmap

import "errors"

// Known is a device of this machine with all its names. Numbers are decimal
// text; an unknown value is empty.
type Known struct {
	// ID is what Resolve returns.
	ID string
	// Parent is the ID of the device that this is a partition of.
	Parent string
	// Vendor is a name of collector.Vendors: nvidia, intel, amd.
	Vendor string
	// PCI is the address of the device, Functions the addresses of further functions
	// of the same card. A partition has no address.
	PCI       string
	Functions []string
	// Index is the number by which the vendor's tools know the device.
	Index string
	// GI and CI are the MIG instances of a partition, Profile its shape as
	// NVIDIA writes it (1g.10gb).
	GI, CI, Profile string
	// KubeIDs are further ids by which the kubelet may know the device, and the
	// kernel's names of it: nvidia2, MIG-GPU-<uuid>/1/0, dfl-port.0, renderD128,
	// /dev/ami0. GI and CI may stay empty if one of them has them.
	KubeIDs []string

	minor string   // of the device node of a GPU of NVIDIA
	names []string // of the kernel
}

// How is the way in which a device was found, or the reason why it was not.
type How string

// The ways to find a device.
const (
	HowAlias How = "alias" // an entry of Resolver.Aliases
	HowName  How = "name"  // by what the id names
	HowIndex How = "index" // by a bare number, which is the device's only with the other ids
)

// The ways not to find one; Resolve returns no id with these.
const (
	HowNone      How = "none"      // there is no such device
	HowAmbiguous How = "ambiguous" // there are several
	HowUnknown   How = "unknown"   // the form of the id is unknown
	HowIgnored   How = "ignored"   // the resource is in Resolver.Ignore, or its ids are known to be no devices
)

// Alias maps an id of the kubelet to a device.
type Alias struct {
	// Resource is the resource's name, or empty for any.
	Resource string `yaml:"resource"`
	// ID is the kubelet's id; without the number of a replica, it stands for
	// every replica.
	ID string `yaml:"id"`
	// Device is any id or name of the device that means no other: Known.ID, a
	// PCI address, a kernel's name.
	Device string `yaml:"device"`
}

// Check returns the mistake in an entry of a configuration file.
func (a *Alias) Check() error {
	if a.ID == "" || a.Device == "" {
		return errors.New("found an alias without an id or a device; accepted are both")
	}
	return nil
}

// Resolver finds devices by the ids that the kubelet has for them. Its zero
// value knows every form of id that Form lists and has no aliases.
type Resolver struct {
	// Aliases come before anything else.
	Aliases []Alias
	// Generic are the devices that generic-device-plugin gives out, whose ids
	// are hashes.
	Generic []Generic
	// Ignore are patterns of path.Match for names of resources that are no
	// accelerators: rdma/*.
	Ignore []string
}

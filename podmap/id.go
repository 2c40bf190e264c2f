package podmap

import (
	"strings"

	"github.com/accel-exporter/accel-exporter/collector"
)

// Form is the kind of a device id: what the id names a device by.
type Form string

// The forms of device ids.
const (
	// FormUUID: GPU-<uuid>, NVIDIA's device plugin on any cloud that uses it;
	// GPU-<uuid>::2 with time slicing or MPS; GPU-<uuid>-2 with HAMi;
	// GPU-<uuid>-_-2 with gpushare.
	FormUUID Form = "uuid"
	// FormMIG: MIG-<uuid>, and MIG-<uuid>::2.
	FormMIG Form = "mig_uuid"
	// FormMIGLegacy: MIG-GPU-<uuid>/<gi>/<ci>, NVIDIA drivers before R470.
	FormMIGLegacy Form = "mig_legacy"
	// FormMinor: nvidia0 and nvidia0/vgpu1 of GKE, /dev/nvidia0, and gpu-0 of
	// NVIDIA's DRA driver: the number of the device node.
	FormMinor Form = "minor"
	// FormInstance: nvidia0/gi3 and nvidia0/gi3/vgpu1 of GKE.
	FormInstance Form = "gpu_instance"
	// FormProfile: gpu-0-mig-1g10gb-19-2 of NVIDIA's DRA driver: the minor
	// number, the profile, its number and the first memory slice.
	FormProfile Form = "mig_profile"
	// FormPCI: 0000:1b:00.0 of AMD's plugins, SR-IOV and vfio; with -2 for a
	// virtual device of AMD's FPGA plugin, -slice-2 for time slicing on AMD
	// GPUs; 0000-03-00-0-0x56c0 of Intel's DRA driver.
	FormPCI Form = "pci"
	// FormName: the kernel's name of the device: dfl-port.0, dfl-fme.0 and
	// their names of before 5.x, card0-1 of Intel's GPU plugin, renderD128,
	// amdgpu_xcp_3, gpu-1-129 of AMD's DRA driver, /dev/NAME.
	FormName Form = "name"
	// FormOrder: gpu-vfio-0 of NVIDIA's DRA driver: the number of the GPU in
	// order of the PCI addresses.
	FormOrder Form = "pci_order"
	// FormMediated: a bare UUID, a mediated device of the kernel. Device plugins
	// for virtual machines name a vGPU so.
	FormMediated Form = "mediated"
	// FormIndex: a bare number.
	FormIndex Form = "index"
	// FormHash: 40 hexadecimal digits, as generic-device-plugin makes them.
	FormHash Form = "hash"
	// FormSole: tegra, the only GPU of its board.
	FormSole Form = "sole"
	// FormUnknown is any other form.
	FormUnknown Form = "unknown"
)

// Ref is a device id, taken apart. Numbers are decimal text without leading
// zeros; empty is none.
type Ref struct {
	Form Form `json:"form"`
	// ID is the id in its normal spelling: UUIDs and PCI addresses in lower
	// case, a PCI address with its domain. ParseID(r.ID) == r for what
	// ParseID made, and likewise for ParseDRA of one driver.
	ID      string `json:"id"`
	UUID    string `json:"uuid,omitempty"`    // GPU-… or MIG-…; of the parent in FormMIGLegacy
	PCI     string `json:"pci,omitempty"`     // dddd:bb:dd.f
	Minor   string `json:"minor,omitempty"`   // of the GPU, or of the parent of a partition
	GI      string `json:"gi,omitempty"`      // GPU instance
	CI      string `json:"ci,omitempty"`      // compute instance
	Profile string `json:"profile,omitempty"` // 1g10gb: NVIDIA's name without the dot
	Name    string `json:"name,omitempty"`    // below /sys or /dev
	Render  string `json:"render,omitempty"`  // a second name: renderD129
	Index   string `json:"index,omitempty"`
	Hash    string `json:"hash,omitempty"`
	// Replica distinguishes the ids of one shared device.
	Replica string `json:"replica,omitempty"`
	// Nominal: the device plugin may have given the container another device
	// than the device that this id names.
	Nominal bool `json:"nominal,omitempty"`
}

// maxID is the longest id that is parsed, in bytes.
const maxID = 512

// ParseID takes apart an id that a device plugin gave out. Every id yields a
// Ref, FormUnknown if the form is not one of these.
func ParseID(id string) Ref {
	unknown := Ref{Form: FormUnknown, ID: id}
	if len(id) > maxID {
		return unknown
	}
	id = cutKind(id)
	base, replica, shared := cutReplica(id)
	for _, parse := range []func(string) (Ref, bool){
		parseUUID, parseLegacyMIG, parseMinor, parsePCI, parseName, parseNode,
	} {
		if r, ok := parse(base); ok {
			if shared {
				if r.Replica != "" {
					return unknown
				}
				r.Replica = replica
				r.ID += "::" + replica
			}
			return r
		}
	}
	switch {
	case shared:
	case isNumber(id):
		return Ref{Form: FormIndex, ID: id, Index: id}
	case isUUID(id):
		return Ref{Form: FormMediated, ID: strings.ToLower(id)}
	case len(id) == 40 && isHex(id):
		return Ref{Form: FormHash, ID: strings.ToLower(id), Hash: strings.ToLower(id)}
	case id == "tegra":
		return Ref{Form: FormSole, ID: id}
	}
	return unknown
}

// cutKind returns the device's name in a qualified name of CDI
// (nvidia.com/gpu=GPU-…), any other id as it is.
func cutKind(id string) string {
	kind, name, ok := strings.Cut(id, "=")
	vendor, class, qualified := strings.Cut(kind, "/")
	if !ok || !qualified || !strings.Contains(vendor, ".") || class == "" || strings.Contains(class, "/") {
		return id
	}
	return name
}

// cutReplica splits the number of a replica, as NVIDIA's device plugin
// (base::2) and AMD's (base-slice-2) write it, from an id.
func cutReplica(id string) (base, replica string, ok bool) {
	for _, sep := range []string{"::", "-slice-"} {
		if i := strings.LastIndex(id, sep); i > 0 && isNumber(id[i+len(sep):]) {
			return id[:i], id[i+len(sep):], true
		}
	}
	return id, "", false
}

// device returns r without the part that distinguishes the pods sharing one
// device.
func (r Ref) device() Ref {
	if r.Replica != "" {
		r.Replica, r.Nominal = "", false
		r.ID = ""
	}
	switch r.Form {
	case FormUUID, FormMIG, FormMIGLegacy, FormMinor, FormInstance, FormPCI, FormName:
		r.ID = "" // the other fields identify the device
	}
	return r
}

// global reports whether the id means the same under every resource name.
func (r Ref) global() bool {
	switch r.Form {
	case FormUUID, FormMIG, FormMIGLegacy, FormInstance, FormPCI, FormMinor:
		return true
	}
	return false
}

// isNumber reports whether s is a decimal number without leading zeros.
func isNumber(s string) bool {
	if s == "" || len(s) > 9 || len(s) > 1 && s[0] == '0' {
		return false
	}
	return strings.Trim(s, "0123456789") == ""
}

func isHex(s string) bool {
	return s != "" && strings.Trim(s, "0123456789abcdefABCDEF") == ""
}

// ParseDRA takes apart the name by which a DRA driver (gpu.nvidia.com) calls a
// device. A name is read in the form of its driver's vendor, since others use
// the same for something else; an id of another form is read as ParseID
// does.
func ParseDRA(driver, name string) Ref {
	if len(name) > maxID {
		return ParseID(name)
	}
	for _, form := range []struct {
		vendor string
		parse  func(string) (Ref, bool)
	}{
		{"nvidia", parseNVIDIADRA},
		{"amd", parseAMDDRA},
		{"intel", parseDashedPCI},
	} {
		if collector.IsResourceOf(form.vendor, driver) {
			if r, ok := form.parse(name); ok {
				return r
			}
		}
	}
	return ParseID(name)
}

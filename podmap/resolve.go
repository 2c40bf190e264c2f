package podmap

import (
	"path"
	"slices"
	"strings"
)

// several means: more than one device has the name.
const several = -1

// Index has devices, prepared for look-ups. It is immutable.
type Index struct {
	resolver *Resolver
	devices  []Known
	// Each leads to the device's place in devices, or to several.
	ids, pci, functions, names map[string]int
	hashes                     map[string]int
	aliases                    map[[2]string]Alias
}

// Index prepares look-ups among the devices.
func (r *Resolver) Index(devices []Known) *Index {
	x := &Index{
		resolver: r, devices: slices.Clone(devices), aliases: make(map[[2]string]Alias, len(r.Aliases)),
		ids: map[string]int{}, pci: map[string]int{}, functions: map[string]int{}, names: map[string]int{},
	}
	for i := range x.devices {
		x.devices[i].complete()
		x.enter(i)
	}
	for _, a := range r.Aliases {
		x.aliases[[2]string{a.Resource, ParseID(a.ID).ID}] = a
	}
	x.hashes = hashes(r.Generic, x.devices)
	return x
}

// complete fills the fields of a device that follow from its ids.
func (d *Known) complete() {
	for _, id := range d.KubeIDs {
		switch r := ParseID(id); {
		case r.Replica != "":
		case r.Form == FormMinor && d.minor == "" && d.Parent == "":
			d.minor = r.Minor
		case r.Form == FormMIGLegacy && d.GI == "":
			d.GI, d.CI = r.GI, r.CI
		case r.Form == FormName:
			d.names = append(d.names, r.Name)
		}
	}
}

func (x *Index) enter(i int) {
	d := &x.devices[i]
	for _, id := range append([]string{d.ID}, d.KubeIDs...) {
		// A bare number is an index, and it is unknown of what.
		if r := ParseID(id); r.Form != FormIndex {
			put(x.ids, r.ID, i)
		}
	}
	// The address that a partition shares with its parent is the parent's.
	if pci, ok := normalPCI(d.PCI); ok && d.Parent == "" {
		put(x.pci, pci, i)
	}
	for _, f := range d.Functions {
		if pci, ok := normalPCI(f); ok {
			put(x.functions, pci, i)
		}
	}
	for _, n := range d.names {
		put(x.names, n, i)
		if alias := otherName(n); alias != "" {
			put(x.names, alias, i)
		}
	}
}

func put(m map[string]int, key string, i int) {
	if was, ok := m[key]; ok && was != i {
		i = several
	}
	m[key] = i
}

// otherName returns the name of an FPGA port or engine under the driver before
// Linux 5.x, or under the driver since.
func otherName(name string) string {
	if n, ok := strings.CutPrefix(name, "dfl-"); ok {
		return "intel-fpga-" + n
	}
	if n, ok := strings.CutPrefix(name, "intel-fpga-"); ok {
		return "dfl-" + n
	}
	return ""
}

// Resolve returns the ID of the device that is called ref under the name of
// the resource, or no id and why not.
func (x *Index) Resolve(resource string, ref Ref) (id string, how How) {
	if i, ok := x.alias(resource, ref); ok {
		return x.found(i, HowAlias)
	}
	for _, pattern := range slices.Concat(x.resolver.Ignore, noDevices) {
		if ok, _ := path.Match(pattern, resource); ok {
			return "", HowIgnored
		}
	}
	return x.found(x.find(resource, ref))
}

// noDevices are resources and DRA drivers of which an id is no device: channels
// of an NVLink domain, shares of memory or of computing time that a pod requests
// beside a device (Volcano, Tencent's GPU manager), and the right to read the
// counters of all Intel GPUs.
var noDevices = []string{
	"compute-domain.nvidia.com", "*/vgpu-memory", "*/vgpu-cores", "*/vcuda-memory", "*/vcuda-core",
	"*/i915_monitoring", "*/xe_monitoring",
}

// none means: not found.
const none = -2

func (x *Index) found(i int, how How) (string, How) {
	switch i {
	case none:
		if how == HowUnknown {
			return "", how
		}
		return "", HowNone
	case several:
		return "", HowAmbiguous
	}
	return x.devices[i].ID, how
}

func lookup(m map[string]int, key string) int {
	if i, ok := m[key]; ok && key != "" {
		return i
	}
	return none
}

func (x *Index) alias(resource string, ref Ref) (int, bool) {
	if len(x.aliases) == 0 {
		return none, false
	}
	for _, id := range []string{ref.ID, baseID(ref)} {
		for _, r := range []string{resource, ""} {
			if a, ok := x.aliases[[2]string{r, id}]; ok {
				return x.any(a.Device), true
			}
		}
	}
	return none, false
}

// any finds a device by any id or name.
func (x *Index) any(name string) int {
	if i := lookup(x.ids, ParseID(name).ID); i != none {
		return i
	}
	if pci, ok := normalPCI(name); ok {
		return x.byAddress(pci)
	}
	return lookup(x.names, nodeName(strings.TrimPrefix(name, "/dev/")))
}

// baseID returns ref's id without the number of the replica.
func baseID(ref Ref) string {
	if ref.Replica == "" {
		return ref.ID
	}
	switch ref.Form {
	case FormUUID, FormMIG:
		return ref.UUID
	case FormPCI:
		return ref.PCI
	case FormName:
		return ref.Name
	}
	for _, end := range []string{"::", "/vgpu"} {
		if base, ok := strings.CutSuffix(ref.ID, end+ref.Replica); ok {
			return base
		}
	}
	return ref.ID
}

// SliceDevice identifies a device by what its DRA driver publishes in a
// ResourceSlice. An unknown value is empty.
type SliceDevice struct {
	// UUID is in NVIDIA's form; any other form is ignored.
	UUID string
	// PCI is the device's address; of a partition, that of its parent.
	PCI       string
	Partition bool
}

// ResolveDRA returns the ID of the device that a claim's device is, or no id
// and the reason. Resolver's lists have precedence, then the published device,
// then its name.
func (x *Index) ResolveDRA(a Allocation, published SliceDevice) (id string, how How) {
	id, how = x.Resolve(a.Resource, a.Ref)
	if how == HowAlias || how == HowIgnored {
		return id, how
	}
	if published.Partition {
		published.PCI = ""
	}
	understood := false
	for _, text := range []string{published.UUID, published.PCI} {
		ref := ParseID(text)
		switch ref.Form {
		case FormUUID, FormMIG, FormMIGLegacy, FormPCI:
			understood = true
			if i, by := x.find(a.Resource, ref); i != none {
				return x.found(i, by)
			}
		}
	}
	if understood {
		return "", HowNone // the name does not count then
	}
	return id, how
}

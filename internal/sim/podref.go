package sim

import (
	"fmt"
	"regexp"
	"strings"
)

// deviceName is a valid id, or name of a resource or driver.
var deviceName = regexp.MustCompile(`^[!-~]{1,253}$`)

// allocated is a device of a pod as the kubelet has it.
type allocated struct {
	resource, id string // resource is "" where the reference does not imply one
	on           device // gpu is -1 where it is no GPU
}

// ReferenceHelp is the syntax of a reference to an allocated device, in a
// scenario or a fault.
const ReferenceHelp = "gpu:0, mig:4/0, replica:3::1 or the kubelet's own id"

// references make the ids of each device plugin.
var references = map[string]func(*State, string) (allocated, error){
	"gpu":     (*State).pluginGPU,
	"mig":     (*State).pluginMIG,
	"replica": (*State).pluginReplica,
}

// reference resolves a text. A text of an unknown kind is an id.
func (s *State) reference(text string) (allocated, error) {
	kind, arg := text, ""
	if i := strings.IndexAny(text, ": "); i >= 0 {
		kind, arg = text[:i], strings.TrimSpace(text[i+1:])
	}
	if find, ok := references[kind]; ok {
		h, err := find(s, arg)
		if err == nil && !deviceName.MatchString(h.id) {
			err = fmt.Errorf("%q has the odd id %q; want %s", text, h.id, ReferenceHelp)
		}
		return h, err
	}
	if !deviceName.MatchString(text) {
		return allocated{}, fmt.Errorf("%q is no id of a device; want %s", text, ReferenceHelp)
	}
	h := allocated{id: text, on: device{-1, -1}}
	id, _, _ := strings.Cut(text, "::")
	if ds, err := s.devices(id); err == nil && len(ds) == 1 && len(id) > len("GPU-") {
		h.on = ds[0]
	}
	return h, nil
}

// oneDevice finds a GPU, or a partition of one.
func (s *State) oneDevice(arg string, partition bool) (device, error) {
	ds, err := s.devices(arg)
	if err != nil {
		return device{-1, -1}, err
	}
	if len(ds) != 1 || (ds[0].mig >= 0) != partition {
		return device{-1, -1}, fmt.Errorf("%q is not one %s; the devices are:\n%s", arg, map[bool]string{false: "GPU", true: "MIG device"}[partition], s.deviceList())
	}
	return ds[0], nil
}

// pluginGPU is a whole GPU of NVIDIA's device plugin.
func (s *State) pluginGPU(arg string) (allocated, error) {
	d, err := s.oneDevice(arg, false)
	return allocated{"nvidia.com/gpu", s.deviceUUID(d), d}, err
}

// pluginMIG is a MIG device of NVIDIA's device plugin, with its strategy mixed.
func (s *State) pluginMIG(arg string) (allocated, error) {
	d, err := s.oneDevice(arg, true)
	if err != nil {
		return allocated{}, err
	}
	return allocated{migResource(attr(s.migRecord(d), "profile")), s.deviceUUID(d), d}, nil
}

// migResource is nvidia.com/mig-1g.10gb.me for 1g.10gb+me.
func migResource(profile string) string {
	return "nvidia.com/mig-" + strings.ReplaceAll(profile, "+", ".")
}

// pluginReplica is a replica of a GPU or a MIG device that NVIDIA's device
// plugin shares by time slicing or MPS: 3::1, 4/0::2.
func (s *State) pluginReplica(arg string) (allocated, error) {
	name, n, ok := strings.Cut(arg, "::")
	if !ok || n == "" {
		return allocated{}, fmt.Errorf("%q has no number of a replica; want 3::1", arg)
	}
	find := s.pluginGPU
	if strings.Contains(name, "/") || strings.HasPrefix(name, "MIG-") {
		find = s.pluginMIG
	}
	h, err := find(name)
	return allocated{h.resource + ".shared", h.id + "::" + n, h.on}, err
}

// draDriver is NVIDIA's driver of dynamic resource allocation.
const draDriver = "gpu.nvidia.com"

// draName is the name of a GPU or a MIG device in NVIDIA's DRA driver: gpu-0,
// gpu-4-mig-1g10gb-19-6. Another driver's devices are named in full.
func (s *State) draName(driver, text string) (allocated, error) {
	h, err := s.reference(text)
	if err != nil || driver != draDriver || h.on.gpu < 0 {
		h.resource = driver
		return h, err
	}
	name := "gpu-" + s.gpuGet(h.on.gpu, "minor_number")
	if h.on.mig >= 0 {
		rec := s.migRecord(h.on)
		profile := strings.NewReplacer(".", "", "+", "-").Replace(attr(rec, "profile"))
		name += fmt.Sprintf("-mig-%s-%s-%s", profile, attr(rec, "gi_profile"), attr(rec, "start"))
	}
	return allocated{driver, name, h.on}, nil
}

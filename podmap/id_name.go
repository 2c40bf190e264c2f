package podmap

import "strings"

// kernelNames are what the kernel's names of accelerators begin with; a number
// follows.
var kernelNames = []string{
	"dfl-port.", "dfl-fme.", // drivers/fpga/dfl.c
	"intel-fpga-port.", "intel-fpga-fme.", // the same before it went upstream
	"card", "renderD", "accel", // drivers/gpu/drm, drivers/accel
	"amdgpu_xcp_", "amdgpu_xcp.", // partitions of an AMD GPU
	"fpga", // drivers/fpga/fpga-mgr.c
}

// parseName reads a name as sysfs has it, and card<n>-<m> by which Intel's GPU
// plugin names sharer m of a card.
func parseName(id string) (Ref, bool) {
	for _, prefix := range kernelNames {
		rest, ok := strings.CutPrefix(id, prefix)
		if !ok {
			continue
		}
		n, sharer, shared := strings.Cut(rest, "-")
		if !isNumber(n) || shared && (!isNumber(sharer) || prefix != "card") {
			continue
		}
		return Ref{Form: FormName, ID: id, Name: prefix + n, Replica: sharer}, true
	}
	return Ref{}, false
}

// parseNode reads the path of a device node.
func parseNode(id string) (Ref, bool) {
	name, ok := strings.CutPrefix(id, "/dev/")
	if !ok || name == "" || strings.Contains(name, "..") || strings.ContainsAny(name, "\x00 \n\t") {
		return Ref{}, false
	}
	if r, ok := parseMinor(name); ok && r.Form == FormMinor && r.Replica == "" {
		r.ID = id
		return r, true
	}
	return Ref{Form: FormName, ID: id, Name: nodeName(name)}, true
}

// nodeName returns the kernel's name of a device node below /dev: what DRM
// puts into a folder has its name without it.
func nodeName(path string) string {
	for _, dir := range []string{"dri/", "accel/"} {
		if name, ok := strings.CutPrefix(path, dir); ok {
			return name
		}
	}
	return path
}

// parseAMDDRA reads gpu-<card>-<render>, by which AMD's DRA driver names a GPU
// or a partition of one.
func parseAMDDRA(name string) (Ref, bool) {
	rest, _ := strings.CutPrefix(name, "gpu-")
	card, render, ok := strings.Cut(rest, "-")
	if !ok || !isNumber(card) || !isNumber(render) || len(rest) == len(name) {
		return Ref{}, false
	}
	return Ref{Form: FormName, ID: name, Name: "card" + card, Render: "renderD" + render}, true
}

package podmap

import "strings"

// uuidLen is the length of 8-4-4-4-12.
const uuidLen = 36

// isUUID reports whether s is a UUID in its usual spelling.
func isUUID(s string) bool {
	if len(s) != uuidLen {
		return false
	}
	for i, group := range strings.Split(s, "-") {
		if i > 4 || len(group) != [...]int{8, 4, 4, 4, 12}[i] || !isHex(group) {
			return false
		}
	}
	return true
}

// parseUUID reads GPU-<uuid> and MIG-<uuid>, HAMi's GPU-<uuid>-<n> and
// gpushare's GPU-<uuid>-_-<n>. The schedulers of these two decide on the device
// and write it to an annotation of the pod, so their ids are nominal.
func parseUUID(id string) (Ref, bool) {
	prefix, form := "GPU-", FormUUID
	rest, ok := strings.CutPrefix(id, prefix)
	if !ok {
		prefix, form = "MIG-", FormMIG
		if rest, ok = strings.CutPrefix(id, prefix); !ok {
			return Ref{}, false
		}
	}
	if len(rest) < uuidLen || !isUUID(rest[:uuidLen]) {
		return Ref{}, false
	}
	r := Ref{Form: form, UUID: prefix + strings.ToLower(rest[:uuidLen])}
	r.ID = r.UUID
	if len(rest) == uuidLen {
		return r, true
	}
	for _, sep := range []string{"-", "-_-"} {
		if n, ok := strings.CutPrefix(rest[uuidLen:], sep); ok && isNumber(n) {
			r.Replica, r.Nominal = n, true
			r.ID += sep + n
			return r, true
		}
	}
	return Ref{}, false
}

// parseLegacyMIG reads MIG-GPU-<uuid>/<gi>/<ci>.
func parseLegacyMIG(id string) (Ref, bool) {
	rest, ok := strings.CutPrefix(id, "MIG-GPU-")
	parts := strings.Split(rest, "/")
	if !ok || len(parts) != 3 || !isUUID(parts[0]) || !isNumber(parts[1]) || !isNumber(parts[2]) {
		return Ref{}, false
	}
	r := Ref{Form: FormMIGLegacy, UUID: "GPU-" + strings.ToLower(parts[0]), GI: parts[1], CI: parts[2]}
	r.ID = "MIG-" + r.UUID + "/" + r.GI + "/" + r.CI
	return r, true
}

// parseMinor reads nvidia<minor>[/gi<n>][/vgpu<n>], by which GKE's device
// plugin names a device node, a GPU instance and a sharer of either.
func parseMinor(id string) (Ref, bool) {
	parts := strings.Split(id, "/")
	minor, ok := strings.CutPrefix(parts[0], "nvidia")
	if !ok || !isNumber(minor) {
		return Ref{}, false
	}
	r := Ref{Form: FormMinor, ID: id, Minor: minor}
	parts = parts[1:]
	if len(parts) > 0 {
		if gi, ok := strings.CutPrefix(parts[0], "gi"); ok && isNumber(gi) {
			r.Form, r.GI = FormInstance, gi
			parts = parts[1:]
		}
	}
	if len(parts) > 0 {
		if n, ok := strings.CutPrefix(parts[0], "vgpu"); ok && isNumber(n) {
			r.Replica = n
			parts = parts[1:]
		}
	}
	return r, len(parts) == 0
}

// parseNVIDIADRA reads the names of NVIDIA's DRA driver: gpu-<minor>,
// gpu-vfio-<number> of a GPU that is passed through, and
// gpu-<minor>-mig-<profile>-<profile number>-<first slice>. Its first versions
// wrote gpu-<minor>-mig-<profile number>-<first slice>-<slices>.
func parseNVIDIADRA(name string) (Ref, bool) {
	rest, ok := strings.CutPrefix(name, "gpu-")
	if !ok {
		return Ref{}, false
	}
	if isNumber(rest) {
		return Ref{Form: FormMinor, ID: name, Minor: rest}, true
	}
	if n, ok := strings.CutPrefix(rest, "vfio-"); ok && isNumber(n) {
		return Ref{Form: FormOrder, ID: name, Index: n}, true
	}
	minor, mig, ok := strings.Cut(rest, "-mig-")
	parts := strings.Split(mig, "-")
	n := len(parts)
	if !ok || !isNumber(minor) || n < 3 || !isNumber(parts[n-1]) || !isNumber(parts[n-2]) {
		return Ref{}, false
	}
	r := Ref{Form: FormProfile, ID: name, Minor: minor, Profile: strings.Join(parts[:n-2], "-")}
	if isNumber(r.Profile) {
		r.Profile = ""
	}
	return r, true
}

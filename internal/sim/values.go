package sim

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// aliases are short names for frequent keys.
var aliases = map[string]string{
	"temperature": "temperature.gpu",
	"power":       "power.usage",
	"util":        "utilization.gpu",
	"memory":      "memory.used",
}

// blanks are the marks of DCGM and others for "no value".
var blanks = map[string]string{"blank": "9223372036854775792", "blank32": "2147483632"}

// checkValue checks a key and its value, and returns the value in the form of
// the state file.
func checkValue(key, value string) (string, error) {
	if slices.Contains(textKeys, key) {
		if name, ok := strings.CutPrefix(value, "error:"); ok {
			code, err := ParseReturn(name)
			return "error:" + strconv.Itoa(code), err
		}
		return value, nil
	}
	if !numeric(key) {
		return "", fmt.Errorf("unknown key %q%s", key, similar(key))
	}
	if b, ok := blanks[value]; ok {
		return b, nil
	}
	return ParseSignal(value)
}

// checkValues checks keys of the model, each with a number, waveform or text.
func checkValues(at node, given map[string]string) (out []line, err error) {
	var all []error
	for _, key := range slices.Sorted(maps.Keys(given)) {
		value, err := checkValue(key, given[key])
		if err != nil {
			all = append(all, at.at(key).errorf("%w", err))
		}
		out = append(out, line{key, value})
	}
	return out, errors.Join(all...)
}

// isLoad reports whether a text is a load: a number from 0 to 1 or a waveform.
func isLoad(text string) bool {
	_, err := checkValue("load", text)
	return err == nil && !strings.HasPrefix(text, "error:") && text != "model"
}

// numeric reports whether the key is a number of a GPU or of one of its links.
func numeric(key string) bool {
	if slices.Contains(valueKeys, key) {
		return true
	}
	kind, rest, _ := strings.Cut(key, ".")
	switch kind {
	case "field":
		return inRange(rest, 1, 302)
	case "gpm":
		return inRange(rest, 1, 332) && !slices.Contains(valueKeys, key)
	case "link":
		n, what, _ := strings.Cut(rest, ".")
		id, field := strings.CutPrefix(what, "field.")
		return inRange(n, 0, 35) && (slices.Contains(linkKeys, what) || field && inRange(id, 201, 302))
	}
	return false
}

func inRange(s string, least, most int) bool {
	n, err := strconv.Atoi(s)
	return err == nil && n >= least && n <= most && strconv.Itoa(n) == s
}

// similar returns known keys of the same group, for an error message.
func similar(key string) string {
	group, _, _ := strings.Cut(key, ".")
	var out, far []string
	for _, k := range append(slices.Clone(valueKeys), textKeys...) {
		switch g, _, _ := strings.Cut(k, "."); {
		case g == group:
			out = append(out, k)
		case strings.Contains(k, group):
			far = append(far, k)
		}
	}
	if len(out) == 0 {
		out = far
	}
	if len(out) == 0 {
		return "; want a key of fixtures/nvml/keys.def, field.ID, gpm.ID, link.N.KEY or link.N.field.ID"
	}
	return "; want one of " + strings.Join(out, ", ")
}

// setAt changes a value from now on. Its past remains in the timeline, so that
// counters integrated from it never decrease.
func (s *State) setAt(gpu int, full, key, signal string) {
	mark, now := "1", s.gpuGet(gpu, key)
	if full != fmt.Sprintf("gpu.%d.%s", gpu, key) {
		now = s.Get(full)
	}
	if now == "" && servedWithout(strings.TrimPrefix(full, fmt.Sprintf("gpu.%d.", gpu))) {
		mark = absent
	}
	switch {
	case now == "" && strings.HasPrefix(key, "link."):
		now = "0"
		if strings.HasSuffix(key, ".state") {
			now = "1"
		}
	case now == "":
		now = "error:3"
	}
	if !strings.HasPrefix(now, "@") {
		now = "@0 " + now
	}
	s.Set(full, fmt.Sprintf("%s @%.3f %s", now, s.now(), signal))
	if !s.Has("touched." + full) {
		s.Set("touched."+full, mark)
	}
}

// absent marks a changed key that did not exist before: restore removes it.
const absent = "absent"

// servedWithout reports whether the library may return the key although the
// state lacks it: a field from the model, a MIG device's load from its GPU's. A
// GPU's key and a link's state are different: a constant replaces the absence,
// and counters are integrals over it, so its past must remain.
func servedWithout(own string) bool {
	if strings.HasPrefix(own, "link.") {
		return !strings.HasSuffix(own, ".state")
	}
	return !slices.Contains(valueKeys, own)
}

// set changes a key of a device.
func (s *State) set(d device, key, signal string) error {
	if d.mig >= 0 && !slices.Contains(migKeys, key) {
		return fmt.Errorf("a MIG device has no key %q; want one of %s, or name its GPU", key, strings.Join(migKeys, ", "))
	}
	if d.mig < 0 && slices.Contains(textKeys, key) {
		s.Set(d.prefix()+key, signal)
		return nil
	}
	s.setAt(d.gpu, d.prefix()+key, key, signal)
	return nil
}

// last returns the newest value of a key.
func (s *State) last(d device, key string) string {
	v := s.Get(d.prefix() + key)
	if v == "" && d.mig < 0 {
		v = s.gpuGet(d.gpu, key)
	}
	f := strings.Fields(v)
	if len(f) == 0 {
		return ""
	}
	return f[len(f)-1]
}

// add increases a counter; anything but a plain number counts as 0.
func (s *State) add(d device, key string, n uint64) error {
	old, _ := strconv.ParseUint(s.last(d, key), 0, 64)
	return s.set(d, key, strconv.FormatUint(old+n, 10))
}

// restore reverts every change of the keys with this prefix, from now on.
func (s *State) restore(prefix string) {
	for _, mark := range s.keys("touched." + prefix) {
		key := strings.TrimPrefix(mark, "touched.")
		if s.Get(mark) == absent {
			s.Delete(key)
		} else if f := strings.Fields(s.Get(key)); len(f) > 1 {
			first := f[1]
			if s.Has("life." + key) {
				first = s.Get("life." + key)
			}
			s.Set(key, fmt.Sprintf("%s @%.3f %s", s.Get(key), s.now(), first))
		}
		s.Delete(mark)
	}
}

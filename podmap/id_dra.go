package podmap

import "github.com/accel-exporter/accel-exporter/collector"

// ParseDRA takes apart the name by which a DRA driver (gpu.nvidia.com) calls a
// device. A name is read in the form of its driver's vendor, since others use
// the same for something else; one that has not that form is read as ParseID
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

package config

import (
	"fmt"
	"time"

	"github.com/accel-exporter/accel-exporter/collector/dcgm/dcgmfield"
	"github.com/accel-exporter/accel-exporter/internal/config/strict/wording"
)

// DCGM is the source that reads a host engine of DCGM. It takes
// --dcgm.address or --dcgm.embedded.
type DCGM struct {
	// Timeout is how long a round may take before it counts as stuck; 0 is 10s: the
	// library waits 5s for a host engine that does not answer.
	Timeout time.Duration `yaml:"timeout" accept:"100ms..5m"`
	// Fields are further fields of DCGM to read.
	Fields []DCGMField `yaml:"fields"`
}

// DCGMField names a field of DCGM, by its present or a former name.
type DCGMField struct{ dcgmfield.Field }

// UnmarshalText accepts the name of a field whose value can be shown.
func (f *DCGMField) UnmarshalText(b []byte) error {
	const longest = 100
	name := string(b)
	if len(name) > longest {
		return fmt.Errorf("found %d characters; accepted is the name of a field of DCGM", len(name))
	}
	field, known := dcgmfield.ByName(name)
	switch {
	case !known:
		var names []string
		for _, f := range dcgmfield.All() {
			names = append(append(names, f.Name), f.Former...)
		}
		near := ""
		for i, n := range wording.Nearest(name, names, 3) {
			near += []string{"; similar names: ", ", ", ", "}[i] + n
		}
		return fmt.Errorf("found %s, which is no field of DCGM 4%s; accepted are names such as DCGM_FI_DEV_GPU_TEMP", wording.Quote(name), near)
	case field.Kind == dcgmfield.None:
		return fmt.Errorf("found %s, whose value is a structure; accepted are fields that are numbers or texts", wording.Quote(name))
	}
	f.Field = field
	return nil
}

// MarshalText returns the name.
func (f DCGMField) MarshalText() ([]byte, error) { return []byte(f.Name), nil }

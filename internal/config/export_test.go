package config

import (
	"strings"

	"github.com/accel-exporter/accel-exporter/internal/strict"
)

// Parse reads the content of a file; name stands for the file in errors,
// which are of type strict.Mistakes.
func Parse(name string, data []byte) (*Config, error) {
	c := Default()
	if err := strict.Decode(name, data, c); err != nil {
		return nil, err
	}
	return c, nil
}

// String returns the selection as the file has it.
func (f Families) String() string {
	return strings.TrimSuffix(strings.TrimPrefix(f.re.String(), "^(?:"), ")$")
}

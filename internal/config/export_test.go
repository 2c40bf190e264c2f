package config

import "github.com/accel-exporter/accel-exporter/internal/config/strict"

// Parse reads the content of a file; name stands for the file in errors,
// which are of type strict.Mistakes.
func Parse(name string, data []byte) (*Config, error) {
	c := Default()
	if err := strict.Decode(name, data, c); err != nil {
		return nil, err
	}
	return c, nil
}

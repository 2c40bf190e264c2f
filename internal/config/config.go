// Package config reads the configuration file. A file is taken whole or not
// at all: every mistake in it is reported, each with its line, the path of its
// key, what was found and what is accepted.
//
// A new section is a struct with yaml tags and one field of Config, as package
// strict decodes it.
package config

import (
	"time"

	"github.com/accel-exporter/accel-exporter/internal/judge/allocation"
)

// Config is the content of a configuration file.
type Config struct {
	Collect Collect `yaml:"collect"`
	Sources Sources `yaml:"sources"`
	Devices Devices `yaml:"devices"`
	Metrics Metrics `yaml:"metrics"`
	// Allocation configures idleness and prices.
	Allocation allocation.Settings `yaml:"allocation"`
	// Alertmanager is a pointer to the settings of package rules/alertmanager;
	// while it is nil the section is not decoded.
	Alertmanager any `yaml:"alertmanager"`
}

// Collect configures the sampling of sources.
type Collect struct {
	// Interval is the time between two rounds; 0 leaves it to the flag
	// --collect.interval.
	Interval time.Duration `yaml:"interval" accept:"100ms..10m"`
}

// Sources holds the settings of each source under its name.
type Sources struct {
	NVIDIA    NVIDIA `yaml:"nvidia"`
	AMD       Source `yaml:"amd"`
	FPGA      Source `yaml:"fpga"`
	PCIe      Source `yaml:"pcie"`
	KernelLog Source `yaml:"kernellog"`
	DCGM      Source `yaml:"dcgm"`
}

// Source is the configuration common to all sources.
type Source struct {
	// Timeout is how long a round may take before it counts as stuck; 0 is 5s, of dcgm
	// 10s: its library waits 5s for a host engine that does not answer.
	Timeout time.Duration `yaml:"timeout" accept:"100ms..5m"`
}

// NVIDIA is the source of NVIDIA GPUs.
type NVIDIA struct {
	// Timeout is how long a round may take before it counts as stuck; 0 is 5s.
	Timeout time.Duration `yaml:"timeout" accept:"100ms..5m"`
	// SlowInterval is how often values that seldom change are read.
	SlowInterval time.Duration `yaml:"slow_interval" accept:"1s..1h"`
}

// Devices configures the handling of devices of all sources.
type Devices struct {
	// ForgetAfter is how long a device that vanished keeps its counters and
	// an accel_device_up of 0.
	ForgetAfter time.Duration `yaml:"forget_after" accept:"1m..720h"`
}

// Metrics configures the exported metrics.
type Metrics struct {
	// Detail is how much of each family is served: standard or full. Empty
	// leaves it to the flag --metrics.detail.
	Detail string `yaml:"detail" accept:"standard|full"`
}

// Default returns the configuration of an empty file.
func Default() *Config {
	return &Config{
		Sources: Sources{NVIDIA: NVIDIA{SlowInterval: 10 * time.Second}},
		Devices: Devices{ForgetAfter: 24 * time.Hour},

		Allocation: allocation.DefaultSettings(),
	}
}

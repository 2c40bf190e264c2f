package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"

	"go.yaml.in/yaml/v3"
)

// template is one file of rules/templates: groups as they will be.
type template struct {
	Groups []templateGroup `yaml:"groups"`
}

// subject is one file of rules/templates/devices: alerts on devices, which name
// the pods that hold them. Weeks are records that trends look back at for a week.
type subject struct {
	Rules  []templateRule `yaml:"rules"`
	Weeks  []templateRule `yaml:"weeks"`
	Trends []templateRule `yaml:"trends"`
	// Ranks names alerts on reasons, the one that matters most first: of these
	// only the first fires for a device.
	Ranks []string `yaml:"ranks"`
}

// templateGroup becomes one group of rules, or several where it has too many. A
// name that begins with accel-cluster- means that its rules need the series of
// more than one node, or of something else than the exporter.
type templateGroup struct {
	Name     string         `yaml:"name"`
	Interval string         `yaml:"interval"`
	Rules    []templateRule `yaml:"rules"`
}

// templateRule is a rule as Prometheus has it. An alert of a subject has, in
// place of Expr, either Device or Reason.
type templateRule struct {
	Record string `yaml:"record"`
	Alert  string `yaml:"alert"`

	Expr string `yaml:"expr"`
	// Device is an expression with one series per device at most, which must
	// have the labels ${target} and device and no other.
	Device string `yaml:"device"`
	// Reason is a regular expression over the label reason of
	// accel_device_health_reason, State one over its label severity, and
	// Except one over the reasons that are left out.
	Reason string `yaml:"reason"`
	State  string `yaml:"state"`
	Except string `yaml:"except"`
	// Yields makes the alert silent while the device has failed: its advice would
	// contradict that of the alert on the failure.
	Yields bool `yaml:"yields"`

	For           string            `yaml:"for"`
	KeepFiringFor string            `yaml:"keep_firing_for"`
	Severity      string            `yaml:"severity"`
	Labels        map[string]string `yaml:"labels"`
	Summary       string            `yaml:"summary"`
	Description   string            `yaml:"description"`

	// wait is that of an alert on a device, see render.Rule.
	wait string
	// rank is the place in ranks, or 0, and unobserved what that adds to the
	// annotation reasons.
	rank       int
	unobserved string
}

func decode(path string, into any) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	dec := yaml.NewDecoder(bytes.NewReader(data))
	dec.KnownFields(true)
	if err := dec.Decode(into); err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}

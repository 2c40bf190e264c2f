package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"

	"github.com/accel-exporter/accel-exporter/internal/config"
	"github.com/accel-exporter/accel-exporter/internal/config/strict"
	"github.com/accel-exporter/accel-exporter/rules/alertmanager"
)

const (
	schemaPath = "deploy/config.schema.json"
	valuesPath = "deploy/helm/accel-exporter/values.schema.json"
)

// configSchema returns the JSON schema of the configuration file, for editors, and
// the schema of the chart's values with the same for the value config.
func configSchema() (schema, values []byte, err error) {
	c, settings := config.Default(), alertmanager.Settings{}
	c.Alertmanager = &settings
	s := strict.Schema(c)
	part, err := json.MarshalIndent(s, "    ", "  ")
	if err != nil {
		return nil, nil, err
	}
	if values, err = os.ReadFile(valuesPath); err != nil {
		return nil, nil, err
	}
	head, rest, found := bytes.Cut(values, []byte("\n    \"config\": "))
	_, tail, ended := bytes.Cut(rest, []byte("\n    \"baseline\": "))
	if !found || !ended {
		return nil, nil, errors.New(valuesPath + " has no config before baseline")
	}
	values = bytes.Join([][]byte{head, []byte("\n    \"config\": "), part, []byte(",\n    \"baseline\": "), tail}, nil)
	s["$schema"], s["title"] = "http://json-schema.org/draft-07/schema#", "Configuration file of accel-exporter"
	schema, err = json.MarshalIndent(s, "", "  ")
	return append(schema, '\n'), values, err
}

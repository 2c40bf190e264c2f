package allocation_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/accel-exporter/accel-exporter/internal/judge/allocation"
	"github.com/accel-exporter/accel-exporter/internal/strict"
)

const everything = `
idle:
  floor: 0.02
  traffic_bytes_per_second: 2e6
  grace: 5m
  resources:
    - resource: fpga.intel.com/*
      grace: 10m
    - resource: example.com/notebook
      never: true
currency: EUR
prices:
  - resource: nvidia.com/mig-*
    profile: 1g.10gb
    per_hour: 0.4
  - class: gpu
    model: NVIDIA H100*
    per_hour: 2.5
aliases:
  - resource: example.com/widget
    id: left
    device: 0000:86:00.1
generic_devices:
  - paths: [/dev/ami*]
    count: 2
ignore_resources: [rdma/*]
max_holders: 500
`

func TestSettings(t *testing.T) {
	s := allocation.DefaultSettings()
	if err := strict.Decode("x", nil, &s); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(allocation.DefaultSettings(), s); diff != "" {
		t.Errorf("an empty file (-want +got):\n%s", diff)
	}
	if err := strict.Decode("x", []byte(everything), &s); err != nil {
		t.Fatal(err)
	}
	want := allocation.Settings{
		Idle: allocation.Idle{Floor: 0.02, Traffic: 2e6, Grace: 5 * time.Minute, Resources: []allocation.IdleResource{
			{Resource: "fpga.intel.com/*", Grace: 10 * time.Minute}, {Resource: "example.com/notebook", Never: true},
		}},
		Currency: "EUR",
		Prices: []allocation.Price{
			{Resource: "nvidia.com/mig-*", Profile: "1g.10gb", PerHour: 0.4}, {Class: "gpu", Model: "NVIDIA H100*", PerHour: 2.5},
		},
		Aliases:    []allocation.Alias{{Resource: "example.com/widget", ID: "left", Device: "0000:86:00.1"}},
		Generic:    []allocation.Generic{{Paths: []string{"/dev/ami*"}, Count: 2}},
		Ignore:     []string{"rdma/*"},
		MaxHolders: 500,
	}
	if diff := cmp.Diff(want, s); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestSettingsMistakes(t *testing.T) {
	for text, want := range map[string]string{
		"prices: [{per_hour: 1}]":                                      "prices without a currency",
		"currency: euro":                                               `the currency "euro"`,
		"currency: EUR\nprices: [{class: tpu}]":                        "gpu, fpga",
		"currency: EUR\nprices: [{per_hour: -1}]":                      "from 0 to",
		"currency: EUR\nprices: [{model: '[', per_hour: 1}]":           `the pattern "["`,
		"idle: {floor: 0.9}":                                           "from 0 to 0.5",
		"idle: {floor: .nan}":                                          "from 0 to 0.5",
		"idle: {grace: 48h}":                                           "from 0s to 24h",
		"idle: {resources: [{grace: 1m}]}":                             "no resource",
		"idle: {resources: [{resource: '['}]}":                         `the pattern "["`,
		"aliases: [{id: left}]":                                        "without an id or a device",
		"generic_devices: [{count: 2}]":                                "0 paths",
		"generic_devices: [{paths: ['[']}]":                            `the pattern "["`,
		"ignore_resources: ['[']":                                      `the pattern "["`,
		"max_holders: 0":                                               "from 1 to",
		"ignore_resources: [" + strings.Repeat("x", 600) + "]":         "up to 512 bytes",
		"aliases: [{id: a, device: " + strings.Repeat("x", 600) + "}]": "512 bytes",
	} {
		s := allocation.DefaultSettings()
		if err := strict.Decode("x", []byte(text), &s); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.60s: %v, want %q", text, err, want)
		}
	}
}

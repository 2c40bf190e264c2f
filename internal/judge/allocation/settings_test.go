package allocation_test

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/accel-exporter/accel-exporter/internal/config/strict"
	"github.com/accel-exporter/accel-exporter/internal/judge/allocation"
	"github.com/accel-exporter/accel-exporter/podmap"
)

// TestSettings: the configuration in docs/allocation.md has every key. What it shows of
// limits is their default.
func TestSettings(t *testing.T) {
	page, err := os.ReadFile("../../../docs/allocation.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(page), "```yaml\n")
	text, _, _ := strings.Cut(rest, "```")
	var file struct {
		Allocation allocation.Settings `yaml:"allocation"`
	}
	if err := strict.Decode("docs/allocation.md", []byte(text), &file); err != nil {
		t.Fatal(err)
	}
	want := allocation.DefaultSettings()
	want.Idle.Resources = []allocation.IdleResource{{Resource: "fpga.intel.com/*", Grace: 10 * time.Minute}, {Resource: "example.com/notebook", Never: true}}
	want.Currency = "EUR"
	want.Prices = []allocation.Price{
		{Resource: "nvidia.com/mig-*", Profile: "1g.10gb", PerHour: 0.4}, {Class: "gpu", Model: "NVIDIA H100*", PerHour: 2.5}, {Class: "fpga", PerHour: 1.65},
	}
	want.Aliases = []podmap.Alias{{Resource: "example.com/widget", ID: "left", Device: "0000:86:00.1"}}
	want.Generic = []podmap.Generic{{Paths: []string{"/dev/ami*"}, Count: 1}}
	want.Ignore = []string{"rdma/*"}
	if diff := cmp.Diff(want, file.Allocation); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestSettingsMistakes(t *testing.T) {
	for text, want := range map[string]string{
		"prices: [{per_hour: 1}]":                            "prices without a currency",
		"currency: euro":                                     `the currency "euro"`,
		"currency: EUR\nprices: [{class: tpu}]":              "gpu, fpga",
		"currency: EUR\nprices: [{per_hour: -1}]":            "from 0 to",
		"currency: EUR\nprices: [{model: '[', per_hour: 1}]": `the pattern "["`,
		"idle: {floor: 0.9}":                                 "from 0 to 0.5",
		"idle: {floor: .nan}":                                "from 0 to 0.5",
		"idle: {grace: 48h}":                                 "from 0s to 24h",
		"idle: {resources: [{grace: 1m}]}":                   "no resource",
		"idle: {resources: [{resource: '['}]}":               `the pattern "["`,
		"aliases: [{id: left}]":                              "without an id or a device",
		"generic_devices: [{count: 2}]":                      "no paths",
		"generic_devices: [{paths: ['[']}]":                  `the pattern "["`,
		"ignore_resources: ['[']":                            `the pattern "["`,
		"max_holders: 0":                                     "from 1 to",
	} {
		s := allocation.DefaultSettings()
		if err := strict.Decode("x", []byte(text), &s); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.60s: %v, want %q", text, err, want)
		}
	}
}

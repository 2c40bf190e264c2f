package config_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/accel-exporter/accel-exporter/collector"
	"github.com/accel-exporter/accel-exporter/internal/config"
	"github.com/accel-exporter/accel-exporter/internal/golden"
)

// FuzzParse: whatever the file holds, Parse returns. A refusal is a list of
// single-line messages, each with a line of the file; what is accepted lies
// within every limit and survives being written and read again.
func FuzzParse(f *testing.F) {
	files, err := filepath.Glob("testdata/*/*.yml")
	if err != nil {
		f.Fatal(err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := config.Parse("f.yml", data)
		if err != nil {
			golden.Refused(t, err, data)
			return
		}
		checkLimits(t, c)
		again, err := config.Parse("again.yml", write(c))
		if err != nil {
			t.Fatalf("%v\nof\n%s", err, write(c))
		}
		if diff := cmp.Diff(shapeOf(c), shapeOf(again)); diff != "" {
			t.Errorf("written and read again:\n%s", diff)
		}
	})
}

func checkLimits(t *testing.T, c *config.Config) {
	t.Helper()
	within := func(what string, d, low, high time.Duration) {
		if d < low || d > high {
			t.Errorf("%s is %v", what, d)
		}
	}
	if d := c.Collect.Interval; d != 0 {
		within("interval", d, 100*time.Millisecond, 10*time.Minute)
	}
	if d := c.Sources.NVIDIA.Timeout; d != 0 {
		within("timeout", d, 100*time.Millisecond, 5*time.Minute)
	}
	within("slow_interval", c.Sources.NVIDIA.SlowInterval, time.Second, time.Hour)
	within("forget_after", c.Devices.ForgetAfter, time.Minute, 720*time.Hour)
	if n := c.Metrics.MaxSeries; n < 1000 || n > 1_000_000 {
		t.Errorf("max_series is %d", n)
	}
	for _, x := range c.Xid.BaselineExtra {
		if x < 1 || x > 1023 {
			t.Errorf("Xid %d", x)
		}
	}
	if len(c.Metrics.Drop) > 0 && len(c.Dropped()) == 0 {
		t.Error("drop selects nothing")
	}
	for _, name := range c.Dropped() {
		if name == collector.DeviceUp.Name || strings.HasPrefix(name, "accel_source_") {
			t.Errorf("%s is dropped", name)
		}
	}
}

// write returns c as a file.
func write(c *config.Config) []byte {
	var b strings.Builder
	if d := c.Collect.Interval; d != 0 {
		fmt.Fprintf(&b, "collect:\n  interval: %s\n", d)
	}
	b.WriteString("sources:\n  nvidia:\n")
	if d := c.Sources.NVIDIA.Timeout; d != 0 {
		fmt.Fprintf(&b, "    timeout: %s\n", d)
	}
	fmt.Fprintf(&b, "    slow_interval: %s\n", c.Sources.NVIDIA.SlowInterval)
	fmt.Fprintf(&b, "devices:\n  forget_after: %s\n", c.Devices.ForgetAfter)
	fmt.Fprintf(&b, "metrics:\n  max_series: %d\n  drop:\n", c.Metrics.MaxSeries)
	for _, f := range shapeOf(c).Drop {
		fmt.Fprintf(&b, "    - %q\n", f)
	}
	b.WriteString("xid:\n  baseline_extra:\n")
	for _, x := range c.Xid.BaselineExtra {
		fmt.Fprintf(&b, "    - %d\n", x)
	}
	return []byte(b.String())
}

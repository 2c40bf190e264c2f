package config_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/accel-exporter/accel-exporter/internal/config"
	"github.com/accel-exporter/accel-exporter/internal/config/strict"
	"github.com/accel-exporter/accel-exporter/internal/sim/golden"
)

// TestBroken reads one file per mistake. Each golden file is what a person
// sees; read the diff after -update.
func TestBroken(t *testing.T) { golden.Mistakes(t, config.Parse) }

// shape is a Config in comparable form.
type shape struct {
	Interval, Timeout, Slow, Forget time.Duration
}

func shapeOf(c *config.Config) shape {
	return shape{
		Interval: c.Collect.Interval, Timeout: c.Sources.NVIDIA.Timeout, Slow: c.Sources.NVIDIA.SlowInterval,
		Forget: c.Devices.ForgetAfter,
	}
}

func TestGood(t *testing.T) {
	defaults := shapeOf(config.Default())
	alias := defaults
	alias.Timeout, alias.Slow = 4*time.Second, 4*time.Second
	for file, want := range map[string]shape{
		"empty.yml":    defaults,
		"comments.yml": defaults,
		"alias.yml":    alias,
		"full.yml": {
			Interval: 500 * time.Millisecond, Timeout: 3 * time.Second, Slow: time.Minute, Forget: 168 * time.Hour,
		},
	} {
		t.Run(file, func(t *testing.T) {
			if diff := cmp.Diff(want, shapeOf(load(t, file))); diff != "" {
				t.Errorf("configuration (-want +got):\n%s", diff)
			}
		})
	}
}

// load parses a file of testdata/good.
func load(t *testing.T, name string) *config.Config {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata/good", name))
	if err != nil {
		t.Fatal(err)
	}
	c, err := config.Parse(name, data)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// TestBounded: files made to be expensive are refused, and soon.
func TestBounded(t *testing.T) {
	bomb := "a: &a [x,x,x,x,x,x,x,x,x]\n"
	for c := 'b'; c < 'k'; c++ {
		before := string(c - 1)
		bomb += string(c) + ": &" + string(c) + " [" + strings.TrimSuffix(strings.Repeat("*"+before+",", 9), ",") + "]\n"
	}
	for name, data := range map[string]string{
		"too long":       strings.Repeat("#", strict.MaxSize+1),
		"aliases":        bomb + "allocation:\n  ignore_resources: *j\n",
		"nested lists":   "allocation: {ignore_resources: " + strings.Repeat("[", 5000) + strings.Repeat("]", 5000) + "}",
		"nested maps":    strings.Repeat("{a: ", 5000) + strings.Repeat("}", 5000),
		"many keys":      strings.Repeat("k: 1\n", 10_000),
		"many values":    "allocation: {ignore_resources: [" + strings.Repeat("5,", 20_000) + "]}",
		"unclosed lists": strings.Repeat("[\n", 400),
	} {
		t.Run(name, func(t *testing.T) {
			_, err := config.Parse("f.yml", []byte(data))
			if err == nil {
				t.Fatal("accepted")
			}
			if n := len(err.Error()); n > 20_000 {
				t.Errorf("message of %d bytes", n)
			}
			golden.Refused(t, err, []byte(data))
		})
	}
}

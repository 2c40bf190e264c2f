package allocation_test

import (
	"os"
	"strings"
	"testing"

	"github.com/accel-exporter/accel-exporter/internal/judge/allocation"
	"github.com/accel-exporter/accel-exporter/internal/strict"
)

// TestDocs: the configuration in docs/allocation.md is valid.
func TestDocs(t *testing.T) {
	page, err := os.ReadFile("../../../docs/allocation.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(page), "```yaml\n")
	text, _, ok := strings.Cut(rest, "```")
	if !ok {
		t.Fatal("no configuration")
	}
	var file struct {
		Allocation allocation.Settings `yaml:"allocation"`
	}
	if err := strict.Decode("docs/allocation.md", []byte(text), &file); err != nil {
		t.Fatal(err)
	}
	if s := file.Allocation; len(s.Prices) != 3 || len(s.Idle.Resources) != 2 || s.Idle.Grace != allocation.DefaultSettings().Idle.Grace ||
		s.Idle.Floor != allocation.DefaultSettings().Idle.Floor || s.Idle.Traffic != allocation.DefaultSettings().Idle.Traffic || s.MaxHolders != allocation.DefaultSettings().MaxHolders {
		t.Errorf("the configuration differs from the page's: %+v", s)
	}
}

package baseline_test

import (
	"os"
	"regexp"
	"testing"

	"github.com/accel-exporter/accel-exporter/internal/judge/baseline"
)

var yamlBlock = regexp.MustCompile("(?s)```yaml\n(.*?)```")

// TestDocumentation: the examples in docs/baseline.md are valid.
func TestDocumentation(t *testing.T) {
	page, err := os.ReadFile("../../../docs/baseline.md")
	if err != nil {
		t.Fatal(err)
	}
	blocks := yamlBlock.FindAllSubmatch(page, -1)
	if len(blocks) == 0 {
		t.Fatal("no example")
	}
	for _, b := range blocks {
		if c, err := baseline.Parse("docs/baseline.md", b[1]); err != nil || len(c.Entries) == 0 {
			t.Errorf("%v", err)
		}
	}
}

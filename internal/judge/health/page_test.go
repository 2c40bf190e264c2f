package health_test

import (
	"os"
	"regexp"
	"testing"

	"github.com/accel-exporter/accel-exporter/internal/judge/health"
)

const page = "../../../docs/health.md"

func readPage(t *testing.T) string {
	t.Helper()
	data, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// TestPageExample: the example of an override is valid and has the described effect.
func TestPageExample(t *testing.T) {
	m := regexp.MustCompile("(?s)```yaml\n(.*?)```").FindStringSubmatch(readPage(t))
	if m == nil {
		t.Fatal("no example")
	}
	c, err := health.Parse("example", []byte(m[1]))
	if err != nil {
		t.Fatal(err)
	}
	if got := judged(c, news(xid(31), xid(777), xid(901))); got != "failed replace xid_901 xid_31" {
		t.Error(got)
	}
}

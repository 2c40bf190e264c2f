package incidents_test

import (
	"os"
	"testing"
	"time"

	"github.com/accel-exporter/accel-exporter/internal/judge/health"
	"github.com/accel-exporter/accel-exporter/test/incidents"
)

// What is made of the built-in catalogue is taken by who reads it.
func TestShortenBuiltin(t *testing.T) {
	from, err := os.ReadFile("../../internal/judge/health/catalogue.yaml")
	if err != nil {
		t.Fatal(err)
	}
	short, err := incidents.ShortenCatalogue("catalogue.yaml", from, 60)
	if err != nil {
		t.Fatal(err)
	}
	c, err := health.Parse("short.yml", short)
	if err != nil {
		t.Fatal(err)
	}
	for _, condition := range c.Conditions() {
		if condition.For > 10*time.Second {
			t.Errorf("%s still takes %s", condition.Reason, condition.For)
		}
	}
}

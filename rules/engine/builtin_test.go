package engine_test

import (
	"testing"

	"github.com/accel-exporter/accel-exporter/rules/engine"
)

// TestUnitTests runs those of the rules themselves, which promtool passes, on
// the engine.
func TestUnitTests(t *testing.T) {
	pattern := "../tests/*.yaml"
	if raceEnabled {
		pattern = "tests/scenarios.yaml" // all of it is one goroutine
	}
	if err := engine.Test(t.Context(), t.Output(), pattern); err != nil {
		t.Error(err)
	}
}

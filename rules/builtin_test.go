package rules_test

import (
	"testing"

	"github.com/accel-exporter/accel-exporter/rules"
)

// TestUnitTests runs those of the rules themselves, which promtool passes, on
// the engine.
func TestUnitTests(t *testing.T) {
	if err := rules.Test(t.Context(), t.Output(), "tests/*.yaml"); err != nil {
		t.Error(err)
	}
}

package status_test

import (
	"testing"

	"github.com/accel-exporter/accel-exporter/internal/status"
)

// TestRunbook: the runbook of a device is that of the alert which fires for it.
func TestRunbook(t *testing.T) {
	for _, c := range []struct{ health, down, action, want string }{
		{"healthy", "", "none", ""},
		{"unknown", "", "", ""},
		{"failed", "lost", "reboot", "AcceleratorFailed"},
		{"failed", "", "replace", "AcceleratorFailed"},
		{"unknown", "stuck", "", "AcceleratorFailed"},
		{"degraded", "", "reset", "AcceleratorResetDue"},
		{"degraded", "", "drain_and_reset", "AcceleratorResetDue"},
		{"degraded", "", "replace", "AcceleratorReplaceSoon"},
		{"degraded", "", "inspect", "AcceleratorDegraded"},
	} {
		want := c.want
		if want != "" {
			want = "runbooks/" + want + ".md"
		}
		if got := status.Runbook(c.health, c.down, c.action); got != want {
			t.Errorf("%+v: %s", c, got)
		}
	}
}

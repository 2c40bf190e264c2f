package ruleapp_test

import (
	"strings"
	"testing"

	"github.com/accel-exporter/accel-exporter/internal/ruleapp"
	"github.com/accel-exporter/accel-exporter/internal/ruleproc"
)

// TestProgram: the program says what it is, and does for another build nothing.
func TestProgram(t *testing.T) {
	for _, c := range []struct {
		args       []string
		status     int
		out, error string
	}{
		{nil, 1, "", "accel-exporter rules --help"},
		{[]string{"--help"}, 0, "accel-exporter rules --help", ""},
		{[]string{"--version"}, 0, "accel-rules", ""},
		{[]string{"check", "another build", "x.yaml"}, 1, "", "was asked by another"},
		{[]string{"check"}, 1, "", "was asked by another"},
		{[]string{"check", ruleproc.Build(), "/nonexistent/x.yaml"}, 1, "", "/nonexistent/x.yaml"},
		{[]string{"test", ruleproc.Build(), "/nonexistent/x.yaml"}, 1, "", "/nonexistent/x.yaml"},
		{[]string{"fetch", ruleproc.Build(), "/nonexistent/http.yml", "http://localhost"}, 1, "", "/nonexistent/http.yml"},
		{[]string{"fetch", ruleproc.Build()}, 1, "", "a file and an address"},
		{[]string{"print", ruleproc.Build()}, 1, "", "did not answer"},
		{[]string{"dance", ruleproc.Build()}, 1, "", `"dance"`},
	} {
		var out, complaint strings.Builder
		status := ruleapp.Main(t.Context(), c.args, strings.NewReader("no JSON"), &out, &complaint)
		if status != c.status || !strings.Contains(out.String(), c.out) || !strings.Contains(complaint.String(), c.error) {
			t.Errorf("%q: status %d\n%s%s", c.args, status, &out, &complaint)
		}
	}
}

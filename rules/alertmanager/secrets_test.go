package alertmanager_test

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/prometheus/alertmanager/api/v2/models"
)

// inDebug is the variable that marks the process that rerun starts.
const inDebug = "ACCEL_TEST_DEBUG"

type alertOf = models.PostableAlert

// rerun runs a test in a new process with additional environment variables, and
// returns its output.
func rerun(t *testing.T, test string, env ...string) string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self, "-test.run", test, "-test.v")
	cmd.Env = append(os.Environ(), env...)
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "--- PASS") {
		t.Fatalf("%v:\n%s", err, out)
	}
	return string(out)
}

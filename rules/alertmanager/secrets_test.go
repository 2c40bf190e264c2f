package alertmanager_test

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/prometheus/alertmanager/api/v2/models"
)

// inDebug marks the test's own process with go-openapi's debugging on.
const inDebug = "ACCEL_TEST_DEBUG"

type alertOf = models.PostableAlert

// rerun runs a test again, in a process with a further environment, and returns
// all that it prints.
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

package deploy

import (
	"bufio"
	"bytes"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// beside are the series that show that alerts are evaluated.
var beside = map[string]string{"alerts": `accel_rules_skipped{reason="range"} 0`}

// TestRuns: the exporter starts as the user that a manifest gives it, without
// any capability and with nothing that it may write to, and reports that it is
// ready, and so do the programs beside it. Nothing of a cluster is there: no
// kubelet, API server, Alertmanager or collector.
func TestRuns(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can become another user")
	}
	for _, name := range []string{"default", "restricted", "alerts", "pod-metadata", "compat", "traces"} {
		t.Run(name, func(t *testing.T) {
			all := objects(t, name)
			address := serves(t, "accel-exporter", *podSpec(t, all).Containers[0].SecurityContext.RunAsUser, container(t, all))
			if family := beside[name]; family != "" {
				awaitText(t, "http://"+address+"/metrics", "\n"+family+"\n")
			}
		})
	}
}

// serves runs a program confined, waits until it answers, and returns where.
func serves(t *testing.T, name string, user int64, args []string) string {
	t.Helper()
	copied := filepath.Join(t.TempDir(), name)
	command(t, "install", "-m", "0755", program(t, name), copied)
	// Folders of tests are for their owner alone.
	command(t, "chmod", "-R", "a+rX", filepath.Dir(filepath.Dir(copied)))
	args = slices.DeleteFunc(args, func(a string) bool { return strings.HasPrefix(a, "--web.listen-address=") })
	address := start(t, copied, strconv.FormatInt(user, 10), append(args, "--web.listen-address=127.0.0.1:0"))
	for _, path := range []string{"/-/healthy", "/-/ready", "/metrics"} {
		awaitText(t, "http://"+address+path, "")
	}
	return address
}

var listening = regexp.MustCompile(`"address":"([^"]*)"`)

// confine has nothing that can be written to, or fails.
const confine = `mount -o remount,ro,bind / || exit 1
mount -o remount,ro,bind /tmp 2>/dev/null
touch "$PROBE" 2>/dev/null && { echo "$PROBE can be written to" >&2; exit 1; }
exec "$0" "$@"`

// start runs a program confined, and returns where it listens.
func start(t *testing.T, program, user string, args []string) string {
	t.Helper()
	// As a container's: a root that cannot be written to, one user, no
	// capability, and none to be had.
	confined := []string{
		"--mount", "--propagation=private", "sh", "-c", confine,
		"setpriv", "--reuid=" + user, "--regid=" + user, "--clear-groups", "--bounding-set=-all", "--inh-caps=-all", "--no-new-privs",
		program,
	}
	cmd := exec.Command("unshare", append(confined, args...)...)
	cmd.Env = []string{"NODE_NAME=node1", "POD_NAME=x", "POD_NAMESPACE=y", "KUBERNETES_SERVICE_HOST=127.0.0.1", "KUBERNETES_SERVICE_PORT=1", "PROBE=" + program + ".probe"}
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(os.Interrupt)
		_ = cmd.Wait()
	})
	found := make(chan string, 1)
	go func() {
		var output []string
		for lines := bufio.NewScanner(stderr); lines.Scan(); {
			output = append(output, lines.Text())
			if m := listening.FindStringSubmatch(lines.Text()); m != nil && len(found) == 0 {
				found <- m[1]
			}
		}
		found <- "it ended: " + strings.Join(output, "\n")
	}()
	address := <-found
	if _, _, err := net.SplitHostPort(address); err != nil {
		t.Fatal(address)
	}
	return address
}

// awaitText asks until the answer is 200 and has a text in it.
func awaitText(t *testing.T, url, want string) {
	t.Helper()
	const patience = 3 * time.Minute
	for deadline := time.Now().Add(patience); ; time.Sleep(50 * time.Millisecond) {
		var body []byte
		answer, err := http.Get(url)
		if err == nil {
			body, err = io.ReadAll(answer.Body)
			answer.Body.Close()
		}
		if err == nil && answer.StatusCode == http.StatusOK && bytes.Contains(body, []byte(want)) {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s: %v, %v, %q is not in\n%s", url, answer, err, want, body)
		}
	}
}

package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/accel-exporter/accel-exporter/internal/sim/simtest"
)

// TestMain lets the test binary run as a worker or as an exporter, in addition
// to running tests.
func TestMain(m *testing.M) {
	configPoll, jobsPoll = pollInterval, pollInterval
	pciNames.Files = nil // the machine may have them
	for i := range specs {
		specs[i].patience = time.Minute // no source is stuck because the machine is busy
	}
	if len(os.Args) > 2 && os.Args[1] == "worker" {
		findState(os.Args)
		os.Exit(exitCode(work(os.Args[2], os.Args[3:])))
	}
	if args, ok := os.LookupEnv("ACCEL_TEST_RUN"); ok {
		ctx, _ := signal.NotifyContext(context.Background(), syscall.SIGTERM)
		os.Exit(exitCode(command(ctx, strings.Split(args, "\n"), os.Stdout, os.Stderr)))
	}
	if slices.ContainsFunc(os.Args, func(a string) bool { return strings.HasPrefix(a, "-test.fuzzworker") }) {
		os.Exit(m.Run()) // the parent process checks for leaks and removes what was built
	}
	code := m.Run()
	if code == 0 {
		if err := goleak.Find(goleak.IgnoreTopFunction("net/http.(*persistConn).writeLoop"), goleak.IgnoreTopFunction("internal/poll.runtime_pollWait")); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	simtest.Clean()
	os.Exit(code)
}

// findState sets the state file of a worker's simulated library: the file beside
// the library. The environment cannot name it, because parallel tests share one.
func findState(args []string) {
	for _, a := range args {
		library, ok := strings.CutPrefix(a, "--nvml.library=")
		state := filepath.Join(filepath.Dir(library), "state")
		if _, err := os.Stat(state); ok && err == nil {
			os.Setenv("ACCEL_SIM_STATE", state)
		}
	}
}

var (
	simOnce sync.Once
	simErr  error
)

// simulator builds the simulated library of NVML and accel-sim once and returns
// their directory.
func simulator(t testing.TB) string {
	t.Helper()
	dir := simtest.Libraries(t, "nvml")
	simOnce.Do(func() {
		if out, err := exec.Command("go", "build", "-o", dir, "../accel-sim").CombinedOutput(); err != nil {
			simErr = fmt.Errorf("%w\n%s", err, out)
		}
	})
	if simErr != nil {
		t.Fatal(simErr)
	}
	return dir
}

// node is a simulated node with a running exporter.
type node struct {
	t     testing.TB
	url   string
	state string
	log   *logBuffer
	stop  func() error
}

// sim runs accel-sim against the node's state.
func (n *node) sim(args ...string) string {
	n.t.Helper()
	return accelSim(n.t, n.state, args...)
}

func accelSim(t testing.TB, state string, args ...string) string {
	t.Helper()
	out, err := simCommand(t, state, args...).CombinedOutput()
	if err != nil {
		t.Fatalf("accel-sim %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

func simCommand(t testing.TB, state string, args ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command(filepath.Join(simulator(t), "accel-sim"), args...)
	cmd.Env = append(os.Environ(), "ACCEL_SIM_STATE="+state)
	return cmd
}

// compile creates a node from a scenario, a name or an absolute path, without starting an exporter. It
// returns the state file and the exporter's flags for this node.
func compile(t testing.TB, scenario string, flags ...string) (state string, args []string) {
	t.Helper()
	dir := t.TempDir()
	state = filepath.Join(dir, "state")
	library := filepath.Join(dir, "libnvidia-ml.so.1")
	if err := os.Symlink(filepath.Join(simulator(t), "libnvidia-ml.so.1"), library); err != nil {
		t.Fatal(err)
	}
	if !filepath.IsAbs(scenario) {
		scenario = "../../fixtures/scenarios/" + scenario + ".yaml"
	}
	out := accelSim(t, state, append([]string{
		"compile", "--flags", "--scenario=" + scenario,
		"--state=" + state, "--library=" + library,
	}, flags...)...)
	return state, strings.Fields(out)
}

// start runs an exporter in this process on a node with a scenario, until the end
// of the test.
func start(t testing.TB, scenario string, simFlags []string, args ...string) *node {
	t.Helper()
	state, flags := compile(t, scenario, simFlags...)
	return startOn(t, state, append(flags, args...)...)
}

// startOn runs an exporter on the node at a state file.
func startOn(t testing.TB, state string, args ...string) *node {
	t.Helper()
	n := startExporter(t, args...)
	n.state = state
	return n
}

// startProcess runs an exporter on the node at a state file in a separate
// process, which the test can kill. env is added to its environment.
func startProcess(t testing.TB, state string, env []string, args ...string) (*node, *os.Process) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), append(env, "ACCEL_TEST_RUN="+strings.Join(withDefaults(t, args), "\n"))...)
	return startCommand(t, state, cmd), cmd.Process
}

// startCommand runs a program that is an exporter on the node at a state file.
func startCommand(t testing.TB, state string, cmd *exec.Cmd) *node {
	t.Helper()
	n := &node{t: t, state: state, log: newLogBuffer()}
	cmd.Env = append(cmd.Environ(), "ACCEL_SIM_STATE="+state)
	cmd.Stderr = n.log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() {
		err := cmd.Wait()
		n.log.end()
		ended <- err
	}()
	n.listen(func() error {
		cmd.Process.Signal(syscall.SIGTERM)
		return <-ended
	})
	return n
}

// startExporter runs an exporter in this process.
func startExporter(t testing.TB, args ...string) *node {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	n := &node{t: t, log: newLogBuffer()}
	ended := make(chan error, 1)
	args = withDefaults(t, args)
	go func() {
		err := runExporter(ctx, args, io.Discard, n.log)
		n.log.end()
		ended <- err
	}()
	n.listen(func() error {
		cancel()
		return <-ended
	})
	return n
}

// listen waits until the exporter listens, and stops it at the end of the test.
func (n *node) listen(stop func() error) {
	n.t.Helper()
	t := n.t
	n.stop = sync.OnceValue(stop)
	t.Cleanup(func() {
		n.stop()
		client.CloseIdleConnections()
		if t.Failed() {
			t.Logf("end of the log:\n%s", n.log.tail())
		}
	})
	m := n.log.await(regexp.MustCompile(`msg="Listening on" address=(\S+)`))
	if m == nil {
		t.Fatalf("exporter did not start: %v\n%s", n.stop(), n.log)
	}
	n.url = "http://" + m[1]
}

// withDefaults completes the arguments of an exporter under test. Tests read every
// series; a configuration file with metrics.detail overrides that.
func withDefaults(t testing.TB, args []string) []string {
	t.Helper()
	args = append([]string{"--web.listen-address=127.0.0.1:0", "--collect.interval=500ms", "--metrics.detail=full"}, args...)
	return append(isolated(t, args), args...)
}

// client requests pages without compression, which would be half of the cost of a
// page under the race detector. TestGzipReadsIt of internal/exposition is about it.
var client = &http.Client{Transport: &http.Transport{DisableCompression: true}}

// get fetches a path and returns status and body.
func (n *node) get(path string) (int, string) {
	n.t.Helper()
	resp, err := client.Get(n.url + path)
	if err != nil {
		n.t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		n.t.Fatal(err)
	}
	return resp.StatusCode, string(body)
}

func (n *node) post(path string) (int, string) {
	n.t.Helper()
	resp, err := client.Post(n.url+path, "", nil)
	if err != nil {
		n.t.Fatal(err)
	}
	defer resp.Body.Close()
	body, _ := io.ReadAll(resp.Body)
	return resp.StatusCode, string(body)
}

// patience is the time after which a condition that a test waits for has failed.
const patience = 5 * time.Minute

// until polls the metrics page until every pattern matches a line of it, or no
// line where the pattern begins with "!", and returns the page.
func (n *node) until(patterns ...string) string {
	n.t.Helper()
	var lines []linePattern
	for _, p := range patterns {
		lines = append(lines, newLinePattern(p))
	}
	var page string
	n.poll(func() bool {
		_, page = n.get("/metrics")
		return !slices.ContainsFunc(lines, func(l linePattern) bool { return l.in(page) == l.absent })
	}, func() string { return strings.Join(patterns, "\n") + "\non the page\n" + page })
	return page
}

// linePattern matches a line. A page has thousands of lines; the literal prefix
// of the pattern skips most of them.
type linePattern struct {
	re     *regexp.Regexp
	prefix string
	absent bool
}

func newLinePattern(p string) linePattern {
	p, absent := strings.CutPrefix(p, "!")
	rest, anchored := strings.CutPrefix(p, "^")
	l := linePattern{re: regexp.MustCompile(p), absent: absent}
	if anchored {
		l.prefix, _ = regexp.MustCompile(rest).LiteralPrefix()
	}
	return l
}

func (l linePattern) in(page string) bool {
	for line := range strings.Lines(page) {
		if strings.HasPrefix(line, l.prefix) && l.re.MatchString(strings.TrimSuffix(line, "\n")) {
			return true
		}
	}
	return false
}

// pollInterval is half of the exporters' sampling interval: reading the page
// more often costs CPU time and shows nothing new.
const pollInterval = 250 * time.Millisecond

// poll waits for cond. It polls because the condition depends on other
// processes.
func (n *node) poll(cond func() bool, what func() string) {
	n.t.Helper()
	for end := time.Now().Add(patience); !cond(); time.Sleep(pollInterval) {
		if time.Now().After(end) {
			n.t.Fatalf("timed out waiting for %s", what())
		}
	}
}

// logBuffer collects the log and lets tests wait for a line.
type logBuffer struct {
	mu    sync.Mutex
	cond  *sync.Cond
	text  strings.Builder
	ended bool
}

func newLogBuffer() *logBuffer {
	b := &logBuffer{}
	b.cond = sync.NewCond(&b.mu)
	return b
}

func (b *logBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.cond.Broadcast()
	return b.text.Write(p)
}

func (b *logBuffer) end() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.ended = true
	b.cond.Broadcast()
}

func (b *logBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

func (b *logBuffer) tail() string {
	s := b.String()
	return s[max(0, len(s)-2000):]
}

// await returns the first match of re, nil if the log ends without one.
func (b *logBuffer) await(re *regexp.Regexp) []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	for {
		scan := bufio.NewScanner(strings.NewReader(b.text.String()))
		for scan.Scan() {
			if m := re.FindStringSubmatch(scan.Text()); m != nil {
				return m
			}
		}
		if b.ended {
			return nil
		}
		b.cond.Wait()
	}
}

// isolated returns flags that prevent an exporter under test from reading the
// machine that it runs on, except for paths that args name.
func isolated(t testing.TB, args []string) []string {
	t.Helper()
	var more []string
	empty := t.TempDir()
	for flag, value := range map[string]string{
		"--path.sysfs":      empty,
		"--path.procfs":     empty,
		"--kernel-log.path": filepath.Join(empty, "kmsg"),

		"--podresources.socket": filepath.Join(empty, "kubelet.sock"),
	} {
		if !slices.ContainsFunc(args, func(a string) bool { return strings.HasPrefix(a, flag+"=") }) {
			more = append(more, flag+"="+value)
		}
	}
	return more
}

// tempFile writes a file into a new directory and returns its path.
func tempFile(t testing.TB, name, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), name)
	writeFile(t, file, text)
	return file
}

func writeFile(t testing.TB, file, text string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

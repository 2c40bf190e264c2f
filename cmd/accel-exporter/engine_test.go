package main

import (
	"bytes"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// enginePID returns the process id of the rule engine that this process has
// started, 0 where there is none.
func enginePID(t *testing.T) int { return childPID(t, "accel-rules\x00serve") }

// childPID returns the process id of a program that this process has started,
// by its command line, 0 where there is none.
func childPID(t *testing.T, command string) int {
	t.Helper()
	paths, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range paths {
		stat, _ := os.ReadFile(path) // processes come and go
		_, rest, _ := bytes.Cut(stat, []byte(") "))
		fields := strings.Fields(string(rest))
		if len(fields) < 2 || fields[1] != strconv.Itoa(os.Getpid()) || fields[0] == "Z" {
			continue
		}
		if line, _ := os.ReadFile(filepath.Join(filepath.Dir(path), "cmdline")); bytes.Contains(line, []byte(command)) {
			pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(path)))
			return pid
		}
	}
	return 0
}

// TestEngineKilled: without its rule engine the exporter serves on, and the
// next engine says the same of the node.
func TestEngineKilled(t *testing.T) {
	am := newAlertmanager(t)
	n := start(t, "no-driver", nil, "--alertmanager.url="+am.URL, "--rules.interval=1s", "--rules.file="+mine(t, "sum(accel_source_up) >= 0"))
	n.until(`^accel_rules_engine_up 1$`, `^accel_rules_alerts\{state="firing"\} [1-9]`, `^accel_alertmanager_alerts_sent_total\{.*\} [1-9]`)
	pid := enginePID(t)
	if name, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/comm"); err != nil || string(name) != "accel-rules\n" {
		t.Errorf("the process is called %q: %v", name, err)
	}
	syscall.Kill(pid, syscall.SIGKILL)
	n.until(`^accel_rules_engine_restarts_total 1$`, `^accel_rules_engine_up 1$`, `^accel_rules_alerts\{state="firing"\} [1-9]`, `^accel_source_up\{`)
	n.poll(func() bool {
		code, body := n.get("/debug/rules?explain=1")
		return code == http.StatusOK && strings.Contains(body, `"alertname": "Mine"`) && strings.Contains(body, `"because"`)
	}, func() string { return "the state of the rules" })
	if end := time.Time(am.about("Mine", "").EndsAt); end.Before(time.Now()) {
		t.Errorf("Alertmanager was told that the alert ended at %v", end)
	}
	if now := enginePID(t); now == pid || now == 0 {
		t.Errorf("engine %d works after %d", now, pid)
	}
	if err := n.stop(); err != nil || enginePID(t) != 0 {
		t.Errorf("after the exporter's end (%v) engine %d is still there", err, enginePID(t))
	}
}

// mine writes a rule file with an alert called Mine.
func mine(t *testing.T, expr string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "mine.yaml")
	if err := os.WriteFile(file, []byte("groups:\n  - name: mine\n    rules:\n      - alert: Mine\n        expr: "+expr+"\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	return file
}

// TestNoEngine: a rule engine that is missing is named, and by whom it is
// needed; whoever evaluates no rules needs none.
func TestNoEngine(t *testing.T) {
	const missing = "--rules.program=/nonexistent/accel-rules"
	config := filepath.Join(t.TempDir(), "accel.yml")
	if err := os.WriteFile(config, []byte("alertmanager: {queue_size: 5}\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	for name, args := range map[string][]string{
		"engine":       {missing, "--rules.file=" + mine(t, "up")},
		"Alertmanager": {missing, "--alertmanager.url=http://localhost:9093"},
		"section":      {missing, "--config.file=" + config},
		"check":        {missing, "--config.file=" + config, "--config.check"},
		"command":      {"rules", missing, "check", mine(t, "up")},
	} {
		t.Run(name, func(t *testing.T) {
			var complaint strings.Builder
			args := append(args, elsewhere(t, args)...)
			if name == "command" {
				args = args[:4]
			}
			err := command(t.Context(), args, io.Discard, &complaint)
			if text := complaint.String(); err == nil || !regexp.MustCompile(`accel-rules.*--rules\.program.*/nonexistent/accel-rules`).MatchString(text+err.Error()) {
				t.Errorf("%v\n%s", err, text)
			}
		})
	}
	n := start(t, "no-driver", nil, missing)
	n.until(`^accel_source_up\{`)
}

// TestStrangeEngine: a program that is none, and one that is another's, are
// refused.
func TestStrangeEngine(t *testing.T) {
	for program, says := range map[string]string{"/bin/true": "exit_0", "/bin/cat": ""} {
		var complaint strings.Builder
		args := []string{"--rules.program=" + program, "--rules.file=" + mine(t, "up"), "--config.check"}
		if err := command(t.Context(), args, io.Discard, &complaint); err == nil || !strings.Contains(complaint.String(), says) {
			t.Errorf("%s: %v\n%s", program, err, &complaint)
		}
	}
}

// TestCheckAll: --config.check names the mistakes of a file whoever decodes
// which section, in the order of its lines.
func TestCheckAll(t *testing.T) {
	config := filepath.Join(t.TempDir(), "accel.yml")
	text := "alertmanager:\n  queue_size: 0\ncollect:\n  interval: soon\n"
	if err := os.WriteFile(config, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"--config.check"}, nil} {
		var complaint strings.Builder
		err := command(t.Context(), append(args, "--config.file="+config), io.Discard, &complaint)
		said := regexp.MustCompile(`(?s)accel\.yml:2: alertmanager\.queue_size: .*accel\.yml:4: collect\.interval: `)
		if err == nil || !said.MatchString(complaint.String()) {
			t.Errorf("%q: %v\n%s", args, err, &complaint)
		}
	}
}

// TestRulesCommands: what needs the engine is done by it, and its outcome is
// the command's.
func TestRulesCommands(t *testing.T) {
	var out, complaint strings.Builder
	if err := command(t.Context(), []string{"rules", "check", mine(t, "accel_source_up == 0")}, &out, &complaint); err != nil || !strings.Contains(out.String(), "1 alerts") {
		t.Errorf("check: %v\n%s%s", err, &out, &complaint)
	}
	complaint.Reset()
	bad := mine(t, "accel_source_up ===")
	if err := command(t.Context(), []string{"rules", "check", bad}, &out, &complaint); err == nil || !strings.Contains(complaint.String(), bad+":5:") {
		t.Errorf("check of a mistake: %v\n%s", err, &complaint)
	}
	complaint.Reset()
	if err := command(t.Context(), []string{"rules", "test", "../../rules/tests/scenarios.yaml"}, &out, &complaint); err != nil {
		t.Errorf("test: %v\n%s", err, &complaint)
	}
}

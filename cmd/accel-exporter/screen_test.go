package main

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/accel-exporter/accel-exporter/internal/exposition/status"
	"github.com/accel-exporter/accel-exporter/rules/engine"
)

// TestWatch: --watch prints again, also after an error and while nothing matches, and
// ends without an error.
func TestWatch(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	answers := []error{noMatch{"device", "failed"}, nil, errors.New("the exporter is\x1b[2J away"), nil}
	var out strings.Builder
	n := 0
	err := show(ctx, &viewFlags{watch: true, interval: 1}, &out, func(context.Context) (int, error) {
		if n++; n > len(answers) {
			cancel()
			return 0, ctx.Err()
		}
		return n, answers[n-1]
	}, func(s *screen, n int) error {
		_, err := fmt.Fprintln(s, "answer", n)
		return err
	})
	const want = "no device matches \"failed\"; without an argument, all are listed\n\nanswer 2\n\nthe exporter is?[2J away\n\nanswer 4\n"
	if err != nil || out.String() != want {
		t.Errorf("%v\n%q", err, &out)
	}
	broken := errors.New("refused")
	err = show(t.Context(), &viewFlags{watch: true}, &out, func(context.Context) (int, error) { return 0, broken }, func(*screen, int) error { return nil })
	if !errors.Is(err, broken) {
		t.Errorf("an error at first: %v", err)
	}
}

// TestLongWords: a word that is wider than the screen is broken.
func TestLongWords(t *testing.T) {
	if got := strings.Join(wrap("a bbbbbbb cc", 3), "|"); got != "a|bbb|bbb|b|cc" {
		t.Error(got)
	}
}

// TestRulesOnScreen: rules eval fits the terminal, keeps its indentation, and has the
// urgent alerts in red.
func TestRulesOnScreen(t *testing.T) {
	at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	alert := engine.Alert{
		State: engine.Firing, Labels: map[string]string{"alertname": "AcceleratorFailed", "device": "GPU-11114707-9d28-0ab5-175a-3cf7e5e24303", "severity": "critical"},
		Annotations: map[string]string{"summary": "It is\x1b[2J gone", "runbook_url": status.Docs + "runbooks/AcceleratorFailed.md"}, FiredAt: at,
	}
	report := &engine.Report{Time: at, Groups: []engine.GroupState{{Rules: []engine.RuleState{{Name: "AcceleratorFailed", Query: "up == 0", Alerts: []engine.Alert{alert}}}}}}
	var out strings.Builder
	if err := printRules(&screen{Writer: &out, width: 60, color: true}, report); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"\x1b[31mfiring ", "\n  It is?[2J gone\n", "\n  runbook: docs/runbooks/AcceleratorFailed.md\n", "\n    up == 0\n"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is not in\n%s", want, &out)
		}
	}
	for line := range strings.Lines(regexp.MustCompile(`\x1b\[\d+m`).ReplaceAllString(out.String(), "")) {
		if len(strings.TrimSuffix(line, "\n")) > 60 {
			t.Errorf("wider than the screen: %s", line)
		}
	}
}

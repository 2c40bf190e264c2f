package repocheck

import (
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/prometheus/promql/parser"
	"go.yaml.in/yaml/v3"

	"github.com/accel-exporter/accel-exporter/internal/judge/health"
	"github.com/accel-exporter/accel-exporter/internal/status"
)

// Limits of the runbooks: a person reads one on a telephone at night.
const (
	maxRunbooks     = 51
	maxRunbookLines = 40
)

// procedure is the page with the steps that runbooks share.
const procedure = "docs/runbooks/device-procedure.md"

var (
	form     = regexp.MustCompile(`(?s)^# (\w+)\n\n## Meaning\n\n\S.*?\n\n## First minute\n\n(\S.*?)\n\n## Over when\n\n(\S.*)$`)
	block    = regexp.MustCompile("(?ms)^ *```(\\w+)\n(.*?)^ *```$")
	span     = regexp.MustCompile("`([^`\n]+)`")
	proxied  = regexp.MustCompile(`/pods/(?:https:)?[^:/]+:?([^/]*)/proxy`)
	flagName = regexp.MustCompile(`--[a-z][a-z0-9-]*(?:\.[a-z0-9-]+)*`)
	ourFlags = regexp.MustCompile(`--[a-z][a-z0-9-]*\.[a-z0-9.-]*[a-z]`)
	ours     = regexp.MustCompile(`\b(?:[a-z_]+:)?(?:accel|dcgm)_[a-z0-9_]+(?::[a-z0-9_]+)?`)
	destroys = regexp.MustCompile(`#reset|#power-cycle|gpu-reset`)
	evidence = regexp.MustCompile(`journalctl|#collect-evidence`)
)

// queriesOf returns the queries of a text: each line of its blocks, and the spans that
// select series of the exporter.
func queriesOf(text string) []string {
	var out []string
	for _, b := range block.FindAllStringSubmatch(text, -1) {
		for line := range strings.Lines(b[2]) {
			if line = strings.TrimSpace(line); b[1] == "promql" && line != "" {
				out = append(out, line)
			}
		}
	}
	for _, m := range span.FindAllStringSubmatch(withoutCode(text), -1) {
		if strings.Contains(m[1], "accel_") && strings.ContainsAny(m[1], "({") {
			out = append(out, m[1])
		}
	}
	return out
}

// TestRunbookCommands: the flags, the port and the series that runbooks name exist.
func TestRunbookCommands(t *testing.T) {
	var values struct{ Web struct{ Port string } }
	if err := yaml.Unmarshal(read(t, "deploy/helm/accel-exporter/values.yaml"), &values); err != nil {
		t.Fatal(err)
	}
	all := families(t)
	flags := flagName.FindAllString(string(read(t, "docs/flags.md"))+string(read(t, "docs/remediator.md")), -1)
	for _, name := range match(t, "docs/runbooks/*.md") {
		text := string(read(t, name))
		for _, m := range proxied.FindAllStringSubmatch(text, -1) {
			if m[1] != values.Web.Port {
				t.Errorf("%s: %s: the API server connects to a pod by number, %s", name, m[0], values.Web.Port)
			}
		}
		for _, flag := range ourFlags.FindAllString(text, -1) {
			if !slices.Contains(flags, flag) {
				t.Errorf("%s: no program has the flag %s", name, flag)
			}
		}
		for _, series := range ours.FindAllString(text, -1) {
			if _, ok := all[series]; !ok {
				t.Errorf("%s: no series is named %s", name, series)
			}
		}
		for _, query := range queriesOf(text) {
			e, err := parser.ParseExpr(query)
			if err != nil {
				t.Errorf("%s: %s: %v", name, query, err)
				continue
			}
			for _, fault := range exprFaults(all, e) {
				t.Errorf("%s: %s", name, fault)
			}
		}
	}
}

// TestRunbooks: each alert has a runbook and the reverse. A runbook is short, has its
// chapters, and saves the evidence before it destroys it.
func TestRunbooks(t *testing.T) {
	books := match(t, "docs/runbooks/*.md")
	if len(books) > maxRunbooks {
		t.Errorf("%d runbooks, the limit is %d", len(books), maxRunbooks)
	}
	alerts := map[string]alertRule{}
	for _, r := range loadRules(t) {
		if r.Alert != "" {
			alerts[r.Alert] = r
		}
	}
	for _, name := range books {
		text := string(read(t, name))
		alert := strings.TrimSuffix(filepath.Base(name), ".md")
		r, ok := alerts[alert]
		delete(alerts, alert)
		if !ok {
			if name != procedure {
				t.Errorf("%s belongs to no alert", name)
			}
			continue
		}
		need := func(ok bool, text string) {
			t.Helper()
			if !ok {
				t.Errorf("%s: %s", name, text)
			}
		}
		need(strings.Count(text, "\n") <= maxRunbookLines, "it is too long")
		m := form.FindStringSubmatch(text)
		if m == nil || m[1] != alert || strings.Count(withoutCode(text), "\n#") != 3 {
			t.Errorf("%s: its chapters are not # %s, ## Meaning, ## First minute, ## Over when", name, alert)
			continue
		}
		need(block.MatchString(m[2]) || len(queriesOf(m[2])) > 0, "the first minute has no command and no query")
		need(len(queriesOf(m[3])) > 0, "no query shows that it is over")
		if at := destroys.FindStringIndex(m[2]); at != nil && r.Labels["severity"] == "critical" {
			need(evidence.MatchString(m[2][:at[0]]), "a reset or power cycle comes before the evidence is saved")
			need(strings.Contains(m[2], "kubectl cordon"), "no kubectl cordon")
		}
	}
	for alert := range alerts {
		t.Errorf("%s has no runbook", alert)
	}
}

// otherAlerts are reasons whose devices have other alerts than AcceleratorFailed,
// AcceleratorResetDue and AcceleratorDegraded: critical limits, heat, power, replacement.
var otherAlerts = regexp.MustCompile(`^(temperature_(warning|critical)|shutdown_near|throttled_|fpga_(too_hot|(sensor|voltage|voltage_low|current|power)_(critical|fatal)|throttled)|sram_threshold)`)

// TestRunbookReasons: the runbook of a device's alert has a row for every condition of the
// catalogue: its words, or its first words and an ellipsis.
func TestRunbookReasons(t *testing.T) {
	for _, c := range health.Builtin().Conditions() {
		reason := c.Reason
		if otherAlerts.MatchString(reason) {
			continue
		}
		book := filepath.Join("docs", status.Runbook(c.Severity.String(), "", c.Action.String()))
		words := strings.Split(reason, "_")
		if !slices.ContainsFunc(strings.Split(string(read(t, book)), "\n"), func(line string) bool {
			cell, isRow := strings.CutPrefix(line, "| ")
			cell, _, _ = strings.Cut(cell, " |")
			all := strings.FieldsFunc(strings.ToLower(cell), func(c rune) bool { return strings.ContainsRune(" ,:", c) })
			wild := false
			for i := range words {
				wild = wild || strings.Contains(cell, strings.Join(words[:i], " ")+" …") && i > 0
			}
			return isRow && (wild || !slices.ContainsFunc(words, func(w string) bool { return !slices.Contains(all, w) }))
		}) {
			t.Errorf("%s has no row for %s", book, reason)
		}
	}
}

// TestActionsOnPages: docs/health.md lists the actions with the words of the status page.
func TestActionsOnPages(t *testing.T) {
	text := string(read(t, "docs/health.md"))
	for a := health.Inspect; a <= health.Replace; a++ {
		if row := "| `" + a.String() + "` | " + status.Action(a.String()) + " |\n"; !strings.Contains(text, row) {
			t.Errorf("docs/health.md lacks the row %s", row)
		}
	}
}

package repocheck

import (
	"fmt"
	"os"
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
	maxRunbooks     = 50
	maxRunbookLines = 40
)

// procedure is the page with the steps that runbooks share.
const procedure = "docs/runbooks/device-procedure.md"

// reachable is what a runbook can reach with the values of the chart.
type reachable struct {
	port         string
	paths, flags []string
	families     map[string]family
}

func chartServes(t *testing.T) reachable {
	t.Helper()
	var values struct{ Web struct{ Port string } }
	if err := yaml.Unmarshal(read(t, "deploy/helm/accel-exporter/values.yaml"), &values); err != nil {
		t.Fatal(err)
	}
	s := reachable{port: values.Web.Port, families: families(t)}
	papers := string(read(t, "docs/flags.md"))
	for _, m := range regexp.MustCompile("(?m)^\\| `(?:POST )?(/[^`?]*)|, `POST (/[^`?]*)").FindAllStringSubmatch(papers, -1) {
		s.paths = append(s.paths, m[1]+m[2])
	}
	s.flags = flagName.FindAllString(papers+string(read(t, "docs/remediator.md")), -1)
	return s
}

var (
	form     = regexp.MustCompile(`(?s)^# (\w+)\n\n## Meaning\n\n\S.*?\n\n## First minute\n\n(\S.*?)\n\n## Over when\n\n(\S.*)$`)
	block    = regexp.MustCompile("(?ms)^ *```(\\w+)\n(.*?)^ *```$")
	span1    = regexp.MustCompile("`([^`\n]+)`")
	host     = regexp.MustCompile(`https?://([^/:\s'"` + "`" + `]+)`)
	proxied  = regexp.MustCompile(`/pods/(?:https:)?([^:/]+):?([^/]*)/proxy(/[^"?\s|]*)`)
	flagName = regexp.MustCompile(`--[a-z][a-z0-9-]*(?:\.[a-z0-9-]+)*`)
	ourFlags = regexp.MustCompile(`--[a-z][a-z0-9-]*\.[a-z0-9.-]*[a-z]`)
	programs = regexp.MustCompile(`(?m)(?:^|[ \x60])accel-(?:exporter|remediator) (?:(?:who|alerts|doctor|series|top|rules|baseline)\b|--).*$`)
	ours     = regexp.MustCompile(`\b(?:[a-z_]+:)?(?:accel|dcgm)_[a-z0-9_]+(?::[a-z0-9_]+)?`)
	destroys = regexp.MustCompile(`#reset|#power-cycle|gpu-reset`)
	evidence = regexp.MustCompile(`journalctl|#collect-evidence`)
)

// optional are features that the chart has off by default: what a runbook that
// uses one must mention.
var optional = map[string]*regexp.Regexp{
	"web.enableRelease":   regexp.MustCompile(`/-/(release|attach)`),
	"releaseDirectory":    regexp.MustCompile(`/run/accel-exporter|RELEASE_DIRECTORY`),
	"web.enableLifecycle": regexp.MustCompile(`/-/reload`),
	"nodeRules":           regexp.MustCompile(`/debug/rules`),
}

// needsAttention reports whether the devices of an alert have all their series at every
// --metrics.detail: they have an incident, or links with a fault.
func needsAttention(r alertRule) bool {
	return strings.Contains(r.Expr, "incident") || strings.Contains(r.Expr, "nvlink")
}

// commandFaults returns what a person on call cannot use, or what would load a
// Prometheus with a query over the whole fleet. attention is needsAttention of the alert.
func commandFaults(text string, s reachable, attention bool) []string {
	var out []string
	bad := func(format string, args ...any) { out = append(out, fmt.Sprintf(format, args...)) }
	for _, m := range host.FindAllStringSubmatch(text, -1) {
		if m[1] != "localhost" && m[1] != "127.0.0.1" {
			bad("%s: the chart does not serve this host; use kubectl get --raw, or ssh and localhost", m[0])
		}
	}
	for _, m := range proxied.FindAllStringSubmatch(text, -1) {
		if m[2] != s.port {
			bad("%s: the API server connects to a pod by number, %s", m[0], s.port)
		}
		if !slices.Contains(s.paths, m[3]) && !strings.HasSuffix(m[3], "…") {
			bad("%s: the exporter has no %s", m[0], m[3])
		}
	}
	for value, uses := range optional {
		if m := uses.FindString(text); m != "" && (!strings.Contains(text, value) || !strings.Contains(text, "off")) {
			bad("%s: %s is off in the chart; say so", m, value)
		}
	}
	for _, flag := range flagsIn(text) {
		if !slices.Contains(s.flags, flag) {
			bad("no program has the flag %s", flag)
		}
	}
	for _, name := range ours.FindAllString(text, -1) {
		if _, ok := s.families[name]; !ok {
			bad("no series is named %s", name)
		}
	}
	for _, query := range queriesOf(text) {
		e, err := parser.ParseExpr(query)
		if err != nil {
			bad("%s: %v", query, err)
			continue
		}
		for _, fault := range slices.Concat(exprFaults(s.families, e), unbounded(query)) {
			bad("%s", fault)
		}
		for _, r := range baseless(e) {
			bad("%s: its first increase is from absence; show the total", r)
		}
		for _, v := range unserved(e) {
			if !attention {
				bad("%s is only served for a device that needs attention", v)
			}
		}
	}
	return out
}

// flagsIn returns the flags of our programs: those with a dot in their name, and those of
// a command.
func flagsIn(text string) []string {
	flags := ourFlags.FindAllString(text, -1)
	for _, command := range programs.FindAllString(text, -1) {
		command, _, _ = strings.Cut(command, "#")
		command, _, _ = strings.Cut(command, "`")
		flags = append(flags, flagName.FindAllString(command, -1)...)
	}
	return flags
}

// queriesOf returns the queries of a text: each line of its blocks, and the spans that
// select series of ours.
func queriesOf(text string) []string {
	var out []string
	for _, b := range block.FindAllStringSubmatch(text, -1) {
		for line := range strings.Lines(b[2]) {
			if line = strings.TrimSpace(line); b[1] == "promql" && line != "" {
				out = append(out, line)
			}
		}
	}
	for _, m := range span1.FindAllStringSubmatch(withoutCode(text), -1) {
		if strings.Contains(m[1], "accel_") && strings.ContainsAny(m[1], "({") {
			out = append(out, m[1])
		}
	}
	return out
}

// unbounded returns the selectors of a query that read more than a device, a
// node, a pod or a pool.
func unbounded(query string) []string {
	expr, err := parser.ParseExpr(query)
	if err != nil {
		return nil // reported elsewhere
	}
	var out []string
	for _, v := range selectors(expr) {
		has := func(names ...string) bool {
			return !slices.ContainsFunc(names, func(name string) bool { return !chosen(v, name) })
		}
		level, _, recorded := strings.Cut(v.Name, ":")
		few := false // series of the cluster
		switch {
		case recorded && level == "device" && !strings.HasPrefix(v.Name, "device:accel_incident:"):
			// A series of each device.
		case recorded, v.Name == "up", v.Name == "accel_device_incident_timestamp_seconds":
			few = has("cluster") || has("namespace") || has("cluster_uuid") || has("workload") || has("job")
		case strings.HasPrefix(v.Name, "accel_remediator_"): // one in a cluster
			few = has("job") || has("cluster")
		case v.Name == "ALERTS":
			few = has("alertname")
		case strings.HasPrefix(v.Name, "accel_gpu_fabric_"):
			few = has("cluster_uuid")
		case strings.HasPrefix(v.Name, "prometheus_"): // of Prometheus itself
			few = true
		}
		if !few && !has("instance") && !has("node") && !has("device") && !has("namespace", "pod") && !has("cluster", "pool") {
			out = append(out, fmt.Sprintf("%s reads the whole fleet", v))
		}
	}
	return out
}

// runbookFaults returns what the runbook of an alert lacks.
func runbookFaults(text string, r alertRule) []string {
	var out []string
	need := func(ok bool, format string, args ...any) {
		if !ok {
			out = append(out, fmt.Sprintf(format, args...))
		}
	}
	lines := strings.Count(text, "\n")
	need(lines <= maxRunbookLines, "%d lines, the limit is %d", lines, maxRunbookLines)
	m := form.FindStringSubmatch(text)
	if m == nil || strings.Count(withoutCode(text), "\n#") != 3 {
		return append(out, "its chapters are not # ALERT, ## Meaning, ## First minute, ## Over when")
	}
	need(m[1] == r.Alert, "it is headed %s", m[1])
	need(block.MatchString(m[2]) || len(queriesOf(m[2])) > 0, "the first minute has no command and no query")
	need(len(queriesOf(m[3])) > 0, "no query shows that it is over")
	if at := destroys.FindStringIndex(m[2]); at != nil && r.Labels["severity"] == "critical" {
		need(evidence.MatchString(m[2][:at[0]]), "a reset or power cycle comes before the evidence is saved")
		need(strings.Contains(m[2], "kubectl cordon"), "no kubectl cordon")
	}
	// A variable in a command is set there or in the procedure.
	for _, v := range []string{"$POD", "$DEVICE"} {
		need(!strings.Contains(m[2], v) || strings.Contains(m[2], "](device-procedure.md#ask-the-exporter)"), "no link to the steps that set %s", v)
	}
	return out
}

// TestRunbooks checks that each alert has a runbook and the reverse, that it is short and
// has its chapters, and that its commands and queries work with the chart.
func TestRunbooks(t *testing.T) {
	s := chartServes(t)
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
		for _, f := range commandFaults(text, s, needsAttention(r)) {
			t.Errorf("%s: %s", name, f)
		}
		delete(alerts, alert)
		switch {
		case ok:
			for _, f := range runbookFaults(text, r) {
				t.Errorf("%s: %s", name, f)
			}
		case name != procedure:
			t.Errorf("%s belongs to no alert", name)
		}
	}
	for alert := range alerts {
		t.Errorf("%s has no runbook", alert)
	}
}

// TestRunbookFaultsAreFound checks that each kind of mistake is found, in texts
// that runbooks once had.
func TestRunbookFaultsAreFound(t *testing.T) {
	s := chartServes(t)
	for text, want := range map[string]string{
		"```sh\ncurl -s http://NODE:19400/debug/state\n```\n":                                                         "does not serve this host",
		"`curl -X POST 'http://localhost:19400/-/attach?source=SOURCE'`":                                              "web.enableRelease is off",
		"```sh\nls -l RELEASE_DIRECTORY\n```\n":                                                                       "releaseDirectory is off",
		"```sh\nkubectl get --raw \"/api/v1/namespaces/accel-exporter/pods/$POD:metrics/proxy/metrics\"\n```\n":       "by number, " + s.port,
		"```sh\nkubectl get --raw \"/api/v1/namespaces/accel-exporter/pods/$POD:19400/proxy/state\"\n```\n":           "has no /state",
		"```sh\nkubectl -n accel-exporter exec $POD -- accel-exporter who --wider\n```\n":                             "no program has the flag --wider",
		"set `--kernel-log.fall-back`":                                                                                "no program has the flag --kernel-log.fall-back",
		"`accel_device_serial` has it":                                                                                "no series is named accel_device_serial",
		"```promql\nresets(accel_energy_joules_total[7d])\n```\n":                                                     "reads the whole fleet",
		"```promql\naccel_device_up{instance=\"I\"} == 0 and on (device) accel_device_info{vendor=\"nvidia\"}\n```\n": "reads the whole fleet",
		"```promql\nnode:accel_exporter:up == 0\n```\n":                                                               "reads the whole fleet",
		"`sort(accel_remediator_node_out_timestamp_seconds)`":                                                         "reads the whole fleet",
		"```promql\naccel_device_up{instance=~\".+\"}\n```\n":                                                         "reads the whole fleet",
		"```promql\naccel_device_up{instance=\"I\"\n```\n":                                                            "parse error",
		"```promql\naccel_device_health{node=\"N\",state=\"dead\"}\n```\n":                                            "state is never dead",
		"```promql\nincrease(accel_gpu_xid_errors_total{node=\"N\"}[1h])\n```\n":                                      "show the total",
	} {
		if got := commandFaults(text, s, false); len(got) != 1 || !strings.Contains(got[0], want) {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
	page := alertRule{Alert: "A", Labels: map[string]string{"severity": "critical"}}
	const over = "\n\n## Over when\n\n```promql\nup{node=\"N\"} == 1\n```\n"
	for text, want := range map[string]string{
		"# A\n\n## Meaning\n\nx\n\n## First minute\n\n```sh\nkubectl cordon $NODE\n```" + over:                                           "",
		"# A\n\n## First minute\n\nx\n\n## Meaning\n\nx" + over:                                                                          "chapters",
		"# A\n\n## Meaning\n\nx\n\n## Impact\n\nx\n\n## First minute\n\n```sh\nls\n```" + over:                                           "chapters",
		"# B\n\n## Meaning\n\nx\n\n## First minute\n\n```sh\nls\n```" + over:                                                             "headed B",
		"# A\n\n## Meaning\n\nx\n\n## First minute\n\nCordon and drain the node." + over:                                                 "command and no query",
		"# A\n\n## Meaning\n\nx\n\n## First minute\n\n```sh\nls\n```\n\n## Over when\n\nWhen it works.\n":                                "no query shows",
		"# A\n\n## Meaning\n\nx\n\n## First minute\n\n```sh\nkubectl cordon $NODE\n```\n\n[Reset](device-procedure.md#reset) it." + over: "before the evidence",
		"# A\n\n## Meaning\n\nx\n\n## First minute\n\n```sh\nkubectl logs $POD\n```" + over:                                              "set $POD",
		"# A\n\n## Meaning\n\nx\n\n## First minute\n\n```sh\nls\n```" + strings.Repeat("\nx", maxRunbookLines) + over:                    "the limit is 40",
	} {
		got := strings.Join(runbookFaults(text, page), "\n")
		if want == "" && got != "" || !strings.Contains(got, want) {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
}

// TestRunbookLinks: every runbook that a program or a rule names exists.
func TestRunbookLinks(t *testing.T) {
	names := regexp.MustCompile(`runbooks/(\w+)\.md`)
	for _, name := range tracked(t) {
		if !strings.HasSuffix(name, ".go") && !strings.HasPrefix(name, "rules/") || strings.HasSuffix(name, "_test.go") {
			continue
		}
		for _, m := range names.FindAllStringSubmatch(string(read(t, name)), -1) {
			if _, err := os.Stat(filepath.Join(root, "docs", m[0])); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
}

// otherAlerts are reasons whose devices have other alerts than those of AcceleratorFailed,
// AcceleratorResetDue and AcceleratorDegraded: critical limits, heat, power, replacement.
var otherAlerts = regexp.MustCompile(`^(temperature_|shutdown_near|throttled_|fpga_(too_hot|sensor_critical|throttled)|sram_threshold)`)

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

package repocheck

import (
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"
	"go.yaml.in/yaml/v3"

	"github.com/accel-exporter/accel-exporter/collector"
	"github.com/accel-exporter/accel-exporter/internal/exposition"
	"github.com/accel-exporter/accel-exporter/internal/remediation"
)

// alertRule is a rule of rules/*.yaml, recording or alerting.
type alertRule struct {
	Record, Alert, Expr string
	Labels, Annotations map[string]string
}

func (r alertRule) name() string { return r.Alert + r.Record }

// loadRules returns every rule of the rule files.
func loadRules(t *testing.T) []alertRule {
	t.Helper()
	var all []alertRule
	for _, name := range match(t, "rules/*.yaml") {
		var f struct{ Groups []struct{ Rules []alertRule } }
		if err := yaml.Unmarshal(read(t, name), &f); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		for _, g := range f.Groups {
			all = append(all, g.Rules...)
		}
	}
	return all
}

func match(t *testing.T, pattern string) []string {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(root, pattern))
	if err != nil || len(paths) == 0 {
		t.Fatalf("%s: %d files, %v", pattern, len(paths), err)
	}
	for i, p := range paths {
		paths[i], _ = filepath.Rel(root, p)
	}
	return paths
}

// TestAlerts: each alert has a severity, a summary, a description with an
// action and a runbook; each runbook has its chapters and belongs to an alert.
func TestAlerts(t *testing.T) {
	const runbooks = "https://github.com/accel-exporter/accel-exporter/blob/main/docs/runbooks/"
	chapters := []string{"## Meaning\n", "## Impact\n", "## Diagnosis\n", "## Mitigation\n", "## When it resolves\n"}
	known := map[string]bool{}
	for _, r := range loadRules(t) {
		if r.Alert == "" {
			continue
		}
		if known[r.Alert] {
			t.Errorf("%s is there twice", r.Alert)
		}
		known[r.Alert] = true
		if !slices.Contains([]string{"critical", "warning", "info"}, r.Labels["severity"]) {
			t.Errorf("%s: severity is %q", r.Alert, r.Labels["severity"])
		}
		if r.Annotations["summary"] == "" || strings.Count(r.Annotations["description"], ".") < 2 {
			t.Errorf("%s: the summary, or the description with the action, is missing", r.Alert)
		}
		if got := r.Annotations["runbook_url"]; got != runbooks+r.Alert+".md" {
			t.Errorf("%s: runbook_url is %q", r.Alert, got)
		}
		book, at := string(read(t, "docs/runbooks/"+r.Alert+".md")), 0
		for _, c := range chapters {
			i := strings.Index(book[at:], c)
			if i < 0 {
				t.Errorf("%s: its runbook lacks %q, or has it in another place", r.Alert, strings.TrimSpace(c))
				break
			}
			at += i
		}
	}
	for _, name := range match(t, "docs/runbooks/*.md") {
		if alert := strings.TrimSuffix(filepath.Base(name), ".md"); isRunbook(name) && !known[alert] {
			t.Errorf("%s belongs to no alert", name)
		}
	}
}

// isRunbook reports whether a page of docs/runbooks is that of an alert, and
// not one that several share.
func isRunbook(path string) bool { return unicode.IsUpper(rune(filepath.Base(path)[0])) }

// TestAlertTests: each alert has a test in which it fires and one in which it
// is silent. One that always fires is never silent.
func TestAlertTests(t *testing.T) {
	about := regexp.MustCompile(`^ALERTS\{alertname="(\w+)",alertstate="firing"\}$`)
	fires, silent := map[string]bool{}, map[string]bool{}
	for _, name := range match(t, "rules/tests/*.yaml") {
		var f struct {
			Tests []struct {
				Exprs []struct {
					Expr    string
					Samples []struct{ Labels string } `yaml:"exp_samples"`
				} `yaml:"promql_expr_test"`
			}
		}
		if err := yaml.Unmarshal(read(t, name), &f); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		for _, test := range f.Tests {
			for _, e := range test.Exprs {
				if m := about.FindStringSubmatch(e.Expr); m != nil {
					fires[m[1]] = fires[m[1]] || len(e.Samples) > 0
					silent[m[1]] = silent[m[1]] || len(e.Samples) == 0
				}
			}
		}
	}
	for _, r := range loadRules(t) {
		if strings.TrimSpace(r.Expr) == "vector(1)" {
			silent[r.Alert] = true
		}
		if r.Alert != "" && (!fires[r.Alert] || !silent[r.Alert]) {
			t.Errorf("%s: a test in which it fires: %v, in which it is silent: %v", r.Alert, fires[r.Alert], silent[r.Alert])
		}
	}
}

// targetLabels are set by the scrape.
var targetLabels = []string{"cluster", "pool", "node", "job", "instance", "rack"}

// foreign are the series of other exporters that rules join, with their labels.
var foreign = map[string][]string{
	"up":                                        {},
	"accel_config_last_reload_successful":       {},
	"accel_alertmanager_queue_length":           {"endpoint"},
	"accel_alertmanager_alerts_dropped_total":   {"endpoint", "reason"},
	"accel_alertmanager_request_failures_total": {"endpoint", "reason"},
	"accel_traces_spans_total":                  {"result"},
	"accel_traces_batches_total":                {"outcome"},
	"accel_traces_queue_spans":                  {},
	"kube_node_status_allocatable":              {"resource"},
	"kube_node_status_capacity":                 {"resource"},
	"kube_pod_labels":                           {"namespace", "pod", "label_accel_exporter_io_idle_allowed"},
	"kube_pod_deletion_timestamp":               {"namespace", "pod"},
	"kube_pod_status_phase":                     {"namespace", "pod", "phase"},
	"kube_node_spec_unschedulable":              {},
	"kube_pod_owner":                            {"namespace", "pod", "owner_kind", "owner_name", "owner_is_controller"},
	"kube_pod_container_status_restarts_total":  {"namespace", "pod", "container"},
	"kube_pod_container_resource_limits":        {"namespace", "pod", "container", "resource"},
	"container_cpu_usage_seconds_total":         {"namespace", "pod", "container"},
	"container_memory_working_set_bytes":        {"namespace", "pod", "container"},
	"kube_pod_info":                             {"namespace", "pod"},
	"node_memory_SUnreclaim_bytes":              {},
	"node_infiniband_state_id":                  {"device", "port"},
	"node_infiniband_symbol_error_total":        {"device", "port"},
	"node_infiniband_link_error_recovery_total": {"device", "port"},
	"node_infiniband_link_downed_total":         {"device", "port"},
	"node_edac_correctable_errors_total":        {"controller"},
	"node_edac_uncorrectable_errors_total":      {"controller"},
	"node_systemd_unit_state":                   {"name", "state", "type"},
	"ipmi_sensor_state":                         {"id", "name", "type"},
	"ipmi_fan_speed_state":                      {"id", "name"},
	"node_context_switches_total":               {},
}

// family is what rules may use of a series: its labels, and the values of those
// with a documented set.
type family struct {
	labels []string
	values map[string][]string
}

// families returns all series that rules may use.
func families(t *testing.T) map[string]family {
	t.Helper()
	all := map[string]family{}
	for name, labels := range foreign {
		all[name] = family{labels: labels}
	}
	for _, m := range slices.Concat(collector.Table(), exposition.Metrics(), remediation.Metrics()) {
		f := family{labels: m.Labels, values: map[string][]string{}}
		if m.Scope == collector.PerDevice {
			f.labels = slices.Concat([]string{"device", "parent"}, m.Labels)
		}
		if slices.Contains(m.Labels, "pod") {
			f.labels = append(slices.Clone(f.labels), "exported_pod")
		}
		for _, v := range m.Values {
			names, values, _ := strings.Cut(v, ":")
			for name := range strings.SplitSeq(names, ", ") {
				name, _, _ = strings.Cut(name, " ") // "type from Blackwell"
				f.values[name] = append(f.values[name], documented(values)...)
			}
		}
		if m.Name == collector.DeviceHealthReason.Name {
			f.values["reason"] = reasons(t)
		}
		all[m.Name] = f
		if m.Kind == collector.Histogram {
			all[m.Name+"_bucket"] = family{labels: append(slices.Clone(f.labels), "le")}
		}
	}
	for _, r := range loadRules(t) {
		if r.Record != "" {
			all[r.Record] = family{labels: grouped(r.Expr)}
		}
	}
	return all
}

// grouped returns the labels that the outermost grouping of an expression
// keeps.
func grouped(expr string) []string {
	m := grouping.FindStringSubmatch(expr)
	if m == nil {
		return nil
	}
	return strings.FieldsFunc(m[1], func(c rune) bool { return c == ',' || c == ' ' })
}

var aside = regexp.MustCompile(`\([^)]*\)`)

// documented returns the values in a text of the metric table, and the words
// that explain them; none where the set is open.
func documented(text string) []string {
	if strings.Contains(text, "as the driver prints") || strings.Contains(text, "other once there are too many") {
		return nil
	}
	values := strings.Fields(strings.ReplaceAll(text, ",", " "))
	for v := range strings.SplitSeq(strings.ReplaceAll(aside.ReplaceAllString(text, ""), ";", ","), ",") {
		v = strings.TrimPrefix(strings.TrimSpace(v), "else ")
		if strings.HasPrefix(v, "empty") {
			v = ""
		}
		values = append(values, v)
	}
	return values
}

// reasons returns the values of accel_device_health_reason in docs/health.md.
func reasons(t *testing.T) []string {
	t.Helper()
	row := regexp.MustCompile("^\\| `?([a-z0-9_]+)`?(?: `([a-z0-9_]+)`)? ")
	prefixes := map[string]string{"### Xids": "xid_", "### NVLink 5": "xid_", "### SXids": "sxid_", "### Other events": "event_", "### Conditions": ""}
	var all []string
	var prefix string
	var within bool
	for line := range strings.SplitSeq(string(read(t, "docs/health.md")), "\n") {
		if strings.HasPrefix(line, "#") {
			prefix, within = prefixes[line]
		}
		if m := row.FindStringSubmatch(line); m != nil && within {
			all = append(all, strings.TrimSuffix(prefix+m[1]+"_"+m[2], "_"))
		}
	}
	for _, v := range collector.RecoveryAction.Values {
		for _, action := range documented(strings.TrimPrefix(v, "action:")) {
			all = append(all, "recovery_action_"+action)
		}
	}
	if len(all) < 100 {
		t.Fatalf("docs/health.md: only %d reasons found", len(all))
	}
	return all
}

var grouping = regexp.MustCompile(`\b(?:by|on|ignoring|group_left|group_right)\s*\(([^)]*)\)`)

// TestRuleSeries: rules use only existing series and labels, and documented
// values of labels, so that a rename cannot silence an alert.
func TestRuleSeries(t *testing.T) {
	all := families(t)
	known := map[string]bool{"le": true}
	for _, f := range all {
		for _, l := range slices.Concat(f.labels, targetLabels) {
			known[l] = true
		}
	}
	for _, r := range loadRules(t) {
		for _, s := range selectors(parsed(t, r.name(), r.Expr)) {
			for _, fault := range selectorFaults(all, s) {
				t.Errorf("%s: %s", r.name(), fault)
			}
		}
		for _, m := range grouping.FindAllString(r.Expr, -1) {
			for _, l := range grouped(m) {
				if !known[l] {
					t.Errorf("%s: no series has the label %s", r.name(), l)
				}
			}
		}
	}
}

// TestExportedPods: rules refuse series whose pod Prometheus has renamed, because
// the label pod is then that of the exporter.
func TestExportedPods(t *testing.T) {
	rules := loadRules(t)
	for name, f := range families(t) {
		if !strings.HasPrefix(name, "accel_") || !slices.Contains(f.labels, "exported_pod") {
			continue
		}
		bare := regexp.MustCompile(`\b` + name + `\b(?:[^{_:]|$|\{[^}]*\})`)
		for _, r := range rules {
			text := r.Expr + "\n" + strings.Join(slices.Collect(maps.Values(r.Annotations)), "\n")
			if !strings.Contains(text, name) {
				continue
			}
			for _, m := range bare.FindAllString(text, -1) {
				if !strings.Contains(m, "exported_pod") {
					t.Errorf("%s: %s does not refuse series with exported_pod", r.name(), m)
				}
			}
		}
	}
}

// selectors returns the selectors of an expression.
func selectors(e parser.Expr) []*parser.VectorSelector {
	var all []*parser.VectorSelector
	parser.Inspect(e, func(n parser.Node, _ []parser.Node) error {
		if s, ok := n.(*parser.VectorSelector); ok {
			all = append(all, s)
		}
		return nil
	})
	return all
}

// selectorFaults returns the mistakes of a selector.
func selectorFaults(all map[string]family, s *parser.VectorSelector) []string {
	f, ok := all[s.Name]
	if !ok {
		return []string{"no series is named " + s.Name}
	}
	var faults []string
	for _, m := range s.LabelMatchers {
		if m.Name == model.MetricNameLabel {
			continue
		}
		label, value := m.Name, m.Value
		if !slices.Contains(f.labels, label) && !slices.Contains(targetLabels, label) {
			faults = append(faults, s.Name+" has no label "+label)
			continue
		}
		known := f.values[label]
		if len(known) == 0 || value == "" || strings.Contains(value, "/") || label == "index" { // which is described in words
			continue
		}
		wanted := []string{regexp.QuoteMeta(value)}
		if m.Type == labels.MatchRegexp || m.Type == labels.MatchNotRegexp {
			wanted = alternatives(value)
		}
		for _, w := range wanted {
			re, err := regexp.Compile("^(?:" + w + ")$")
			if err != nil || !slices.ContainsFunc(known, re.MatchString) {
				faults = append(faults, s.Name+": "+label+" is never "+w)
			}
		}
	}
	return faults
}

// alternatives returns the strings of a regular expression with groups of
// alternatives at its end at most: a|b_(c|d) is a, b_c and b_d.
func alternatives(re string) []string {
	var all []string
	depth, start := 0, 0
	for i, c := range re + "|" {
		switch {
		case c == '(':
			depth++
		case c == ')':
			depth--
		case c == '|' && depth == 0:
			head, group, ok := strings.Cut(re[start:i], "(")
			if !ok {
				all = append(all, head)
			} else {
				for _, tail := range alternatives(strings.TrimSuffix(group, ")")) {
					all = append(all, head+tail)
				}
			}
			start = i + 1
		}
	}
	return all
}

// TestRulePapers: runbooks and annotations use only existing series.
func TestRulePapers(t *testing.T) {
	all := families(t)
	ours := regexp.MustCompile(`\b(?:[a-z_]+:)?(?:accel|dcgm)_[a-z0-9_]+(?::[a-z0-9_]+)?`)
	papers := map[string]string{}
	for _, name := range match(t, "docs/runbooks/*.md") {
		papers[name] = string(read(t, name))
	}
	for _, r := range loadRules(t) {
		papers[r.name()] = strings.Join(slices.Sorted(maps.Values(r.Annotations)), "\n")
	}
	for where, text := range papers {
		for _, name := range ours.FindAllString(text, -1) {
			if _, ok := all[name]; !ok {
				t.Errorf("%s: no series is named %s", where, name)
			}
		}
	}
}

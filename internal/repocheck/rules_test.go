package repocheck

import (
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"
	"go.yaml.in/yaml/v3"

	"github.com/accel-exporter/accel-exporter/collector"
	"github.com/accel-exporter/accel-exporter/internal/exposition"
	"github.com/accel-exporter/accel-exporter/internal/judge/health"
	"github.com/accel-exporter/accel-exporter/internal/remediation"
)

// alertRule is a rule of rules/*.yaml, recording or alerting.
type alertRule struct {
	Record, Alert, Expr string
	Labels, Annotations map[string]string
}

func (r alertRule) name() string { return r.Alert + r.Record }

// maxGroup is the number of rules of a group that Mimir accepts by default.
const maxGroup = 20

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
			if len(g.Rules) > maxGroup {
				t.Errorf("%s: a group has %d rules, the limit is %d", name, len(g.Rules), maxGroup)
			}
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

// runbookURL is the beginning of the URL of each runbook.
const runbookURL = "https://github.com/accel-exporter/accel-exporter/blob/main/docs/runbooks/"

// TestAlerts: each alert has a severity, a summary of one line, a description and its
// runbook.
func TestAlerts(t *testing.T) {
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
		if r.Annotations["summary"] == "" || !strings.Contains(r.Annotations["description"], ".") {
			t.Errorf("%s: the summary or the description is missing", r.Alert)
		}
		if got := r.Annotations["runbook_url"]; got != runbookURL+r.Alert+".md" {
			t.Errorf("%s: runbook_url is %q", r.Alert, got)
		}
	}
}

// TestAlertTests: each alert has a promtool test in which it fires. The incidents that
// make incidents plays assert when it is silent.
func TestAlertTests(t *testing.T) {
	fires := map[string]bool{}
	for _, name := range match(t, "rules/tests/*.yaml") {
		var f struct {
			Tests []struct {
				Alerts []struct {
					Name string `yaml:"alertname"`
					Want []any  `yaml:"exp_alerts"`
				} `yaml:"alert_rule_test"`
				Exprs []struct {
					Want []struct{ Labels string } `yaml:"exp_samples"`
				} `yaml:"promql_expr_test"`
			}
		}
		if err := yaml.Unmarshal(read(t, name), &f); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		for _, test := range f.Tests {
			for _, a := range test.Alerts {
				fires[a.Name] = fires[a.Name] || len(a.Want) > 0
			}
			for _, e := range test.Exprs {
				for _, w := range e.Want {
					if m := nameOfAlert.FindStringSubmatch(w.Labels); m != nil {
						fires[m[1]] = true
					}
				}
			}
		}
	}
	for _, r := range loadRules(t) {
		if r.Alert != "" && !fires[r.Alert] {
			t.Errorf("%s: no test in which it fires", r.Alert)
		}
	}
}

var nameOfAlert = regexp.MustCompile(`alertname="(\w+)"`)

// targetLabels are set by the scrape.
var targetLabels = []string{"cluster", "pool", "node", "job", "instance", "rack"}

// foreign are the series of other exporters and of the program itself that rules and
// runbooks use, with their labels.
var foreign = map[string][]string{
	"ALERTS":                                            {"alertname", "alertstate", "severity", "cluster_uuid", "clique"}, // of NvLinkDomainFault
	"up":                                                {},
	"accel_config_last_reload_successful":               {},
	"accel_bundles_written_total":                       {"outcome"},
	"accel_bundles_unsent":                              {},
	"accel_alertmanager_queue_length":                   {"endpoint"},
	"accel_alertmanager_alerts_dropped_total":           {"endpoint", "reason"},
	"accel_alertmanager_request_failures_total":         {"endpoint", "reason"},
	"container_cpu_usage_seconds_total":                 {"namespace", "pod", "container"},
	"container_memory_working_set_bytes":                {"namespace", "pod", "container"},
	"ipmi_fan_speed_state":                              {"id", "name"},
	"ipmi_sensor_state":                                 {"id", "name", "type"},
	"kube_node_info":                                    {},
	"kube_node_spec_unschedulable":                      {},
	"kube_node_status_allocatable":                      {"resource"},
	"kube_node_status_capacity":                         {"resource"},
	"kube_pod_container_resource_limits":                {"namespace", "pod", "container", "resource"},
	"kube_pod_container_status_restarts_total":          {"namespace", "pod", "container"},
	"kube_pod_deletion_timestamp":                       {"namespace", "pod"},
	"kube_pod_info":                                     {"namespace", "pod"},
	"kube_pod_labels":                                   {"namespace", "pod", "label_accel_exporter_io_idle_allowed"},
	"kube_pod_owner":                                    {"namespace", "pod", "owner_kind", "owner_name", "owner_is_controller"},
	"kube_pod_status_phase":                             {"namespace", "pod", "phase"},
	"node_context_switches_total":                       {},
	"node_edac_uncorrectable_errors_total":              {"controller"},
	"node_infiniband_link_error_recovery_total":         {"device", "port"},
	"node_infiniband_state_id":                          {"device", "port"},
	"node_infiniband_symbol_error_total":                {"device", "port"},
	"node_memory_SUnreclaim_bytes":                      {},
	"node_systemd_unit_state":                           {"name", "state", "type"},
	"prometheus_notifications_alertmanagers_discovered": {},
	"prometheus_notifications_errors_total":             {"alertmanager"},
}

// family is what rules may use of a series: its labels, and the values of those
// with a documented set. The labels of a recording are checked by its tests in promtool.
type family struct {
	labels   []string
	values   map[string][]string
	recorded bool
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
			f.labels = append(slices.Clone(f.labels), "exported_pod", "exported_namespace")
		}
		for _, v := range m.Values {
			names, values, _ := strings.Cut(v, ":")
			for name := range strings.SplitSeq(names, ", ") {
				name, _, _ = strings.Cut(name, " ") // "type from Blackwell"
				f.values[name] = append(f.values[name], documented(values)...)
			}
		}
		if m.Name == collector.DeviceHealthReason.Name {
			f.values["reason"] = health.Builtin().Reasons()
		}
		all[m.Name] = f
	}
	for _, r := range loadRules(t) {
		if r.Record != "" {
			all[r.Record] = family{recorded: true}
		}
	}
	return all
}

var aside = regexp.MustCompile(`\([^)]*\)`)

// documented returns the values in a text of the metric table, and the words
// that explain them; nil if the set is open.
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

// TestRuleSeries: rules use only series, labels and values of labels that exist, so that
// a rename cannot silence an alert.
func TestRuleSeries(t *testing.T) {
	all := families(t)
	for _, r := range loadRules(t) {
		faults := exprFaults(all, parsed(t, r.name(), r.Expr))
		for _, text := range r.Annotations {
			queries := annotationQuery.FindAllStringSubmatch(text, -1)
			if len(queries) != strings.Count(text, "| query") {
				faults = append(faults, "a query of another form than range printf `…` … | query")
			}
			for _, q := range queries {
				faults = append(faults, exprFaults(all, parsed(t, r.name(), annotationArgument.ReplaceAllString(q[1], `""`)))...)
			}
		}
		for _, fault := range faults {
			t.Errorf("%s: %s", r.name(), fault)
		}
	}
}

var annotationQuery = regexp.MustCompile("range printf `([^`]+)`[^|}]*\\| query")

// annotationArgument is a value in such a query.
var annotationArgument = regexp.MustCompile(`%(\[\d])?q`)

// placeholder is a value that a person replaces in a query of a runbook.
var placeholder = regexp.MustCompile(`^[A-Z]{3,}$`)

// selectorFaults returns the mistakes of a selector. Values that the documentation
// describes in words are not compared.
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
		if !f.recorded && !slices.Contains(f.labels, label) && !slices.Contains(targetLabels, label) {
			faults = append(faults, s.Name+" has no label "+label)
			continue
		}
		known := f.values[label]
		if len(known) == 0 || value == "" || strings.Contains(value, "/") || label == "index" || placeholder.MatchString(value) {
			continue
		}
		wanted := m.SetMatches() // the alternatives of a regular expression
		switch {
		case len(wanted) > 0:
		case m.Type == labels.MatchEqual || m.Type == labels.MatchNotEqual:
			wanted = []string{value}
		case !slices.ContainsFunc(known, regexp.MustCompile("^(?:"+value+")$").MatchString):
			wanted = []string{value}
		}
		for _, w := range wanted {
			if !slices.Contains(known, w) {
				faults = append(faults, s.Name+": "+label+" is never "+w)
			}
		}
	}
	return faults
}

// exprFaults returns the mistakes of the selectors of an expression.
func exprFaults(all map[string]family, e parser.Expr) []string {
	var out []string
	for _, s := range selectors(e) {
		out = append(out, selectorFaults(all, s)...)
	}
	return out
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

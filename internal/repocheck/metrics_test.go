package repocheck

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/accel-exporter/accel-exporter/collector"
	"github.com/accel-exporter/accel-exporter/internal/compat"
	"github.com/accel-exporter/accel-exporter/internal/exposition"
	"github.com/accel-exporter/accel-exporter/internal/remediation"
)

var (
	familyName = regexp.MustCompile(`^accel_[a-z0-9_]+$`)
	labelName  = regexp.MustCompile(`^[a-z][a-z0-9_]*$`)
)

// maxLabels bounds a family's own labels, except of an incident: its labels are the texts
// of an alert, and only a device that needs attention has one.
const maxLabels = 10

// metricFaults returns the violations of the naming rules that promlint, which reads
// the golden pages, does not know.
func metricFaults(table []*collector.Metric) []string {
	var out []string
	seen := map[string]bool{}
	for _, m := range table {
		fault := func(wrong bool, text string) {
			if wrong {
				out = append(out, m.Name+": "+text)
			}
		}
		fault(!familyName.MatchString(m.Name), "name is not accel_ and lower snake case")
		fault(seen[m.Name], "defined twice")
		seen[m.Name] = true
		fault((m.Kind == collector.Counter) != strings.HasSuffix(m.Name, "_total"), "every counter, and nothing else, ends in _total")
		fault((m.Kind == collector.Info) != strings.HasSuffix(m.Name, "_info"), "_info is for Info and all of it")
		fault(m.Kind == collector.Mark && !strings.HasSuffix(m.Name, "_timestamp_seconds"), "a Mark ends in _timestamp_seconds")
		fault(m.Kind == 0, "no kind")
		fault(strings.HasSuffix(m.Name, "_ratio") && m.Range != collector.Range{Min: 0, Max: 1}, "a ratio lies from 0 to 1")
		fault(m.Range.Min > m.Range.Max || m.Range == collector.Range{}, "empty range")
		fault(!strings.HasSuffix(m.Help, "."), "help does not end with a full stop")
		fault(len(m.From) == 0 || slices.Contains(m.From, ""), "has no origin")
		fault(len(m.Labels) > maxLabels && m.Name != collector.DeviceIncident.Name, "too many labels")
		out = append(out, labelFaults(m)...)
	}
	return out
}

func labelFaults(m *collector.Metric) []string {
	var out []string
	for i, l := range m.Labels {
		switch {
		case !labelName.MatchString(l) || strings.HasPrefix(l, "__"):
			out = append(out, m.Name+": label "+l+" is not lower snake case")
		case slices.Contains(m.Labels[:i], l):
			out = append(out, m.Name+": label "+l+" twice")
		case l == "node" && strings.HasPrefix(m.Name, "accel_remediator_node_"): // which are about other nodes
		case slices.Contains([]string{"owner", "instance", "job", "node", "le", "quantile"}, l):
			out = append(out, m.Name+": label "+l+" belongs to the scraper or to Prometheus")
		case m.Scope == collector.PerDevice && (l == "device" || l == "parent"):
			out = append(out, m.Name+": label "+l+" is put there by the scope")
		}
	}
	for _, v := range m.Values {
		names, _, ok := strings.Cut(v, ":")
		for label := range strings.SplitSeq(names, ", ") {
			label, _, _ = strings.Cut(label, " ") // "type from Blackwell: …"
			if !ok || !slices.Contains(m.Labels, label) {
				out = append(out, m.Name+": values of a label that it does not have: "+v)
			}
		}
	}
	return out
}

func TestMetrics(t *testing.T) {
	for _, f := range metricFaults(slices.Concat(collector.Table(), exposition.Metrics(), compat.Metrics(), remediation.Metrics())) {
		t.Error(f)
	}
}

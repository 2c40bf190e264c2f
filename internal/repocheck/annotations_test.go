package repocheck

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/template"
)

// maxSummary is the number of characters of a message that a telephone shows.
const maxSummary = 140

// typical are values of labels, of the length that they have in clusters.
var typical = map[string]string{
	"clique":       "32766",
	"cluster":      "east-1",
	"cluster_uuid": "a2b9ee3f-51b9-4b3e-a1f1-3f1a5b3c6c11",
	"component":    "driver",
	"device":       "GPU-11114707-9d28-0ab5-175a-3cf7e5e24303",
	"endpoint":     "http://alertmanager-0.monitoring.svc:9093",
	"instance":     "gpu-node-17.example:19400",
	"job":          "accel-exporter/accel-exporter",
	"link":         "17",
	"model":        "NVIDIA H100 80GB HBM3",
	"namespace":    "inference",
	"node":         "gpu-node-17.example",
	"pod":          "chat-6b9f7d5c4-tq8zn",
	"pool":         "h100-training",
	"rack":         "hall-2-row-3-rack-12",
	"source":       "nvidia",
	"unit":         "nvidia-fabricmanager.service",
	"workload":     "chat-6b9f7d5c4",
	// The longest that the exporter writes.
	"summary": "GPU 2 failed (Xid 79, device lost): inference/chat-6b9f7d5c4-tq8zn and 7 more. Cordon, save the kernel log, power cyc.",
}

// samples returns sets of labels that the expression can have: one for each value that it
// sets itself.
func (s shape) samples() []map[string]string {
	sample, most := map[string]string{}, 1
	for name, values := range s {
		sample[name] = cmp.Or(typical[name], "value")
		most = max(most, len(values))
	}
	var all []map[string]string
	for i := range most {
		one := maps.Clone(sample)
		for name, values := range s {
			if len(values) > 0 {
				one[name] = values[i%len(values)]
			}
		}
		all = append(all, one)
	}
	return all
}

// annotation is the text of an annotation, expanded as Prometheus does. A label that the
// alert or a query lacks is an error here; in Prometheus it is empty.
type annotation struct {
	all    map[string]family
	text   string
	rows   int // of the answer of a query
	faults []string
}

func (a *annotation) ask(_ context.Context, query string, _ time.Time) (promql.Vector, error) {
	e, err := parser.ParseExpr(query)
	if err != nil {
		return nil, err
	}
	a.faults = append(a.faults, exprFaults(a.all, e)...)
	var answer promql.Vector
	rows := a.rows
	if top, ok := e.(*parser.AggregateExpr); ok && top.Op == parser.TOPK {
		rows = min(rows, int(top.Param.(*parser.NumberLiteral).Val))
	}
	for range rows {
		answer = append(answer, promql.Sample{Metric: labels.FromMap(shapeOf(a.all, e).samples()[0]), F: 12})
	}
	return answer, nil
}

func (a *annotation) expand(alert map[string]string) (string, error) {
	const variables = "{{$labels := .Labels}}{{$externalLabels := .ExternalLabels}}{{$externalURL := .ExternalURL}}{{$value := .Value}}"
	data := template.AlertTemplateData(alert, map[string]string{}, "", promql.Sample{F: 12})
	return template.NewTemplateExpander(context.Background(), variables+a.text, "alert", data, model.Time(0), a.ask, &url.URL{}, []string{"missingkey=error"}).Expand()
}

// annotationFaults returns what would be wrong in the annotations of a firing alert.
func annotationFaults(all map[string]family, r alertRule) []string {
	e, err := parser.ParseExpr(r.Expr)
	if err != nil {
		return []string{err.Error()}
	}
	var out []string
	for name, text := range r.Annotations {
		bad := func(format string, args ...any) { out = append(out, name+": "+fmt.Sprintf(format, args...)) }
		for _, alert := range shapeOf(all, e).samples() {
			maps.Copy(alert, r.Labels)
			for rows := range 3 {
				a := &annotation{all: all, text: text, rows: rows}
				got, err := a.expand(alert)
				if err != nil {
					bad("%v", err)
				}
				for _, fault := range a.faults {
					bad("%s", fault)
				}
				if n := utf8.RuneCountInString(got); name == "summary" && n > maxSummary {
					bad("%d characters, the limit is %d: %s", n, maxSummary, got)
				}
				if strings.Contains(got, "%!") || name == "summary" && strings.Join(strings.Fields(got), " ") != got {
					bad("a mistake in its form: %q", got)
				}
			}
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// TestAnnotations: every template of every alert expands, with one sample, with several
// and without one, and a summary fits a telephone.
func TestAnnotations(t *testing.T) {
	all := families(t)
	for _, r := range loadRules(t) {
		if r.Alert == "" {
			continue
		}
		for _, fault := range annotationFaults(all, r) {
			t.Errorf("%s: %s", r.Alert, fault)
		}
	}
}

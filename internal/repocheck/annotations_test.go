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
	"text/template/parse"
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
	all     map[string]family
	text    string
	rows    int // of the answer of a query
	queries []string
	faults  []string
}

func (a *annotation) ask(_ context.Context, query string, _ time.Time) (promql.Vector, error) {
	a.queries = append(a.queries, query)
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

// queriesIn returns the number of queries in a template.
func queriesIn(text string) int {
	t := parse.New("alert")
	t.Mode = parse.SkipFuncCheck
	if _, err := t.Parse("{{$labels := .}}{{$value := .}}"+text, "", "", map[string]*parse.Tree{}); err != nil {
		return 0 // which expanding it reports
	}
	n := 0
	var walk func(parse.Node)
	branch := func(b *parse.BranchNode) {
		walk(b.Pipe)
		walk(b.List)
		if b.ElseList != nil {
			walk(b.ElseList)
		}
	}
	walk = func(node parse.Node) {
		switch node := node.(type) {
		case *parse.ListNode:
			for _, c := range node.Nodes {
				walk(c)
			}
		case *parse.ActionNode:
			walk(node.Pipe)
		case *parse.PipeNode:
			for _, c := range node.Cmds {
				for _, arg := range c.Args {
					walk(arg)
				}
			}
		case *parse.IdentifierNode:
			if node.Ident == "query" {
				n++
			}
		case *parse.IfNode:
			branch(&node.BranchNode)
		case *parse.RangeNode:
			branch(&node.BranchNode)
		case *parse.WithNode:
			branch(&node.BranchNode)
		}
	}
	walk(t.Root)
	return n
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
		if n := queriesIn(text); n > 1 {
			bad("%d queries, the limit is one", n)
		}
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
				for _, q := range a.queries {
					for _, fault := range unbounded(q) {
						bad("%s", fault)
					}
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

// annotationExempt are accepted faults, with the reason.
var annotationExempt = map[string]string{
	"NvLinkDomainFault: description: accel_nvlink_up reads the whole fleet": "the links of a domain have no label of it, and an alert is one for a domain",
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
			if fault := r.Alert + ": " + fault; annotationExempt[fault] == "" {
				t.Error(fault)
			}
		}
	}
}

func TestAnnotationFaultsAreFound(t *testing.T) {
	all := families(t)
	rule := alertRule{Alert: "A", Expr: `max by (node, device) (accel_power_watts) > 9`, Labels: map[string]string{"severity": "warning"}}
	for text, want := range map[string]string{
		`{{ $labels.node }} draws {{ $value | humanize }} W.`: "",
		`{{ or $labels.cluster "no cluster" }}`:               `no entry for key "cluster"`,
		`{{ $labels.pod }}`:                                   `no entry for key "pod"`,
		`{{ .Node }}`:                                         "can't evaluate field Node",
		`{{ template "nope" . }}`:                             `template "nope" not defined`,
		`{{ $value | nope }}`:                                 `function "nope" not defined`,
		`{{ if $value }}`:                                     "unexpected EOF",
		"{{ range query \"accel_power_watts{node='x'}\" }}{{ .Labels.model }}{{ end }}":                                       `no entry for key "model"`,
		"{{ range query \"accel_power_watts{node='x'}\" }}{{ .Nope }}{{ end }}":                                               "can't evaluate field Nope",
		"{{ range query \"accel_power_wats{node='x'}\" }}{{ end }}x":                                                          "no series is named accel_power_wats",
		"{{ range query \"accel_power_watts{\" }}{{ end }}x":                                                                  "parse error",
		"{{ range query \"accel_power_watts\" }}{{ end }}x":                                                                   "reads the whole fleet",
		"{{ range printf `accel_power_watts{node=%q}` $labels.node | query }}{{ else }}{{ $labels.nope }}{{ end }}x":          `no entry for key "nope"`,
		"{{ range printf `accel_power_watts{node=%q}` $labels.node $labels.device | query }}{{ end }}x":                       "parse error",
		"{{ with query \"accel_power_watts{node='x'}\" }}{{ end }}{{ range query \"accel_power_watts{node='y'}\" }}{{ end }}": "2 queries",
		strings.Repeat("x", maxSummary+1):                                                                                     "141 characters",
		` {{ $labels.node }}`:                                                                                                 "form",
	} {
		rule.Annotations = map[string]string{"summary": text}
		got := strings.Join(annotationFaults(all, rule), "\n")
		if want == "" && got != "" || !strings.Contains(got, want) {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
}

package engine

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/promql/parser"

	"github.com/accel-exporter/accel-exporter/internal/config/strict"
	"github.com/accel-exporter/accel-exporter/internal/config/strict/wording"
)

// maxText bounds an expression and a template, in bytes.
const maxText = 64 << 10

// ruleFile is the format of a rule file. Prometheus reads numbers and booleans
// as texts where it expects a text.
type ruleFile struct {
	Groups []groupSpec `yaml:"groups"`
}

type groupSpec struct {
	strict.Position
	Name     string   `yaml:"name" accept:"scalar"`
	Interval duration `yaml:"interval" accept:"scalar"`
	// Offset makes Prometheus evaluate the past, for late samples. An Engine has none
	// and evaluates the present.
	Offset duration          `yaml:"query_offset" accept:"scalar"`
	Limit  int               `yaml:"limit" accept:"0..2147483647"`
	Labels map[string]string `yaml:"labels" accept:"scalar"`
	Rules  []ruleSpec        `yaml:"rules"`
}

type ruleSpec struct {
	strict.Position
	Record        string            `yaml:"record" accept:"scalar"`
	Alert         string            `yaml:"alert" accept:"scalar"`
	Expr          string            `yaml:"expr" accept:"scalar"`
	For           duration          `yaml:"for" accept:"scalar"`
	KeepFiringFor duration          `yaml:"keep_firing_for" accept:"scalar"`
	Labels        map[string]string `yaml:"labels" accept:"scalar"`
	Annotations   map[string]string `yaml:"annotations" accept:"scalar"`

	expr parser.Expr
}

// duration is a duration in Prometheus' form.
type duration time.Duration

// UnmarshalText implements encoding.TextUnmarshaler.
func (d *duration) UnmarshalText(text []byte) error {
	v, err := model.ParseDuration(string(text))
	if *d = duration(v); err != nil {
		return fmt.Errorf("found %s; accepted is a duration such as 30s, 5m or 1h30m", wording.Quote(string(text)))
	}
	return nil
}

// Check implements strict.Checker.
func (f *ruleFile) Check() error {
	lines := map[string]int{}
	for i, g := range f.Groups {
		if first, again := lines[g.Name]; again {
			return strict.At(fmt.Errorf("found %s a second time, first on line %d; accepted is once in a file", wording.Quote(g.Name), first), "groups", i, "name")
		}
		lines[g.Name] = g.Line
	}
	return nil
}

// Check implements strict.Checker.
func (g *groupSpec) Check() error {
	if g.Name == "" {
		return strict.At(errors.New("found none; accepted is a name that is unique in the file"), "name")
	}
	return checkNames("labels", g.Labels)
}

// Check implements strict.Checker.
func (r *ruleSpec) Check() error {
	switch {
	case r.Record == "" && r.Alert == "":
		return errors.New("found neither record nor alert; accepted is one of record and alert")
	case r.Record != "" && r.Alert != "":
		return errors.New("found both record and alert; accepted is one of record and alert")
	}
	var err error
	if r.expr, err = parseExpr(r.Expr); err != nil {
		err = strict.At(fmt.Errorf("%w; accepted is an expression of PromQL that yields an instant vector or a scalar", err), "expr")
	}
	err = errors.Join(err, checkNames("labels", r.Labels), checkNames("annotations", r.Annotations))
	if r.Record != "" {
		return errors.Join(err, r.checkRecording())
	}
	return errors.Join(err, checkTemplates(r.Alert, "labels", r.Labels), checkTemplates(r.Alert, "annotations", r.Annotations))
}

func (r *ruleSpec) checkRecording() (err error) {
	if !model.LegacyValidation.IsValidMetricName(r.Record) {
		err = strict.At(fmt.Errorf("found %s; accepted is a metric name: letters, digits, _ and :, not beginning with a digit", wording.Quote(r.Record)), "record")
	}
	for field, is := range map[string]bool{"for": r.For != 0, "keep_firing_for": r.KeepFiringFor != 0, "annotations": r.Annotations != nil} {
		if is {
			err = errors.Join(err, strict.At(errors.New("found on a recording rule; accepted on alerts only"), field))
		}
	}
	return err
}

// checkNames checks the names of labels or annotations.
func checkNames(field string, texts map[string]string) (err error) {
	for _, name := range slices.Sorted(maps.Keys(texts)) {
		if !model.LegacyValidation.IsValidLabelName(name) || name == model.MetricNameLabel {
			err = errors.Join(err, strict.At(fmt.Errorf("found the name %s; accepted are letters, digits and _, not beginning with a digit", wording.Quote(name)), field, name))
		}
	}
	return err
}

// checkTemplates checks the templates of an alert.
func checkTemplates(alert, field string, texts map[string]string) (err error) {
	for _, name := range slices.Sorted(maps.Keys(texts)) {
		bad := new(expander).template(context.Background(), alert, texts[name], nil).ParseTest()
		if bad != nil {
			bad = fmt.Errorf("found a template with a mistake: %s; accepted is Prometheus' template language", templateError(bad))
		}
		if n := len(texts[name]); n > maxText {
			bad = fmt.Errorf("found %d bytes; accepted are at most %d", n, maxText)
		}
		if bad != nil {
			err = errors.Join(err, strict.At(bad, field, name))
		}
	}
	return err
}

func parseExpr(text string) (parser.Expr, error) {
	switch {
	case strings.TrimSpace(text) == "":
		return nil, errors.New("found none")
	case len(text) > maxText:
		return nil, fmt.Errorf("found %d bytes", len(text))
	}
	e, err := parser.ParseExpr(text)
	if err != nil {
		return nil, fmt.Errorf("found %s: %s", wording.Quote(text), exprError(err))
	}
	if t := e.Type(); t != parser.ValueTypeVector && t != parser.ValueTypeScalar {
		return nil, fmt.Errorf("found %s, which yields a %s", wording.Quote(text), parser.DocumentedType(t))
	}
	return e, nil
}

// exprError is the first error in an expression, with its position as
// line:column.
func exprError(err error) string {
	text, _, _ := strings.Cut(err.Error(), "\n")
	return strings.Replace(text, "parse error: ", "", 1)
}

// rule returns the Rule of a group with labels.
func (r *ruleSpec) rule(labels map[string]string) *Rule {
	all := map[string]string{}
	maps.Copy(all, labels)
	maps.Copy(all, r.Labels)
	return &Rule{
		Record: r.Record, Alert: r.Alert, Line: r.Line, Expr: r.expr,
		For: time.Duration(r.For), KeepFiringFor: time.Duration(r.KeepFiringFor), Labels: all, Annotations: r.Annotations,
	}
}

// loader reads the files of one Set.
type loader struct {
	set      Set
	mistakes strict.Mistakes
	known    map[string]string // the position of each rule
}

func newLoader() *loader { return &loader{known: map[string]string{}} }

// read adds the groups of one file. A rule that is defined twice, word for
// word, is a mistake.
func (l *loader) read(file string, data []byte) {
	var f ruleFile
	if mistakes, ok := errors.AsType[strict.Mistakes](strict.Decode(file, data, &f)); ok {
		l.mistakes = append(l.mistakes, mistakes...)
		return
	}
	if f.Groups == nil {
		// Without rules every alert ends, so a file that was emptied by mistake is refused.
		l.mistakes = append(l.mistakes, strict.Mistake{File: file, Line: 1, Path: "groups", Text: "found none; accepted is a list of groups, or [] for no rules"})
		return
	}
	for i := range f.Groups {
		spec := &f.Groups[i]
		g := &Group{File: file, Name: spec.Name, Interval: time.Duration(spec.Interval), Limit: spec.Limit}
		for n := range spec.Rules {
			r := spec.Rules[n].rule(spec.Labels)
			key := fmt.Sprintf("%q %q %q %q", r.Record, r.Alert, r.Expr.String(), r.Labels)
			if first, again := l.known[key]; again {
				l.mistakes = append(l.mistakes, strict.Mistake{File: file, Line: r.Line, Path: fmt.Sprintf("groups[%d].rules[%d]", i, n), Text: "found a second time, first at " + first + "; accepted is once"})
			} else {
				l.known[key] = fmt.Sprintf("%s:%d", file, r.Line)
			}
			g.Rules = append(g.Rules, r)
		}
		l.set.Groups = append(l.set.Groups, g)
	}
}

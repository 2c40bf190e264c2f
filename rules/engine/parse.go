package engine

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/promql/parser"
	"go.yaml.in/yaml/v3"

	"github.com/accel-exporter/accel-exporter/internal/strict"
	"github.com/accel-exporter/accel-exporter/internal/strict/wording"
)

// Limits of rule files: bytes of one expression or template, visited nodes
// (against multiplying aliases), and reported mistakes.
const (
	maxText     = 64 << 10
	maxNodes    = 100_000
	maxMistakes = 100
)

// loader reads the files of one Set.
type loader struct {
	set      Set
	mistakes strict.Mistakes
	file     string
	// group and rule are the position in the file.
	group, rule string
	nodes       int
	// known is the position of each rule.
	known map[string]string
}

func newLoader() *loader { return &loader{known: map[string]string{}} }

func (l *loader) err() error {
	if len(l.mistakes) == 0 {
		return nil
	}
	if more := len(l.mistakes) - maxMistakes; more > 0 {
		last := l.mistakes[maxMistakes]
		return append(l.mistakes[:maxMistakes:maxMistakes], strict.Mistake{File: last.File, Line: last.Line, Text: fmt.Sprintf("and %d more mistakes from here on", more)})
	}
	return l.mistakes
}

// mistake records a mistake in the field at n, or in n as a whole if field is
// empty.
func (l *loader) mistake(n *yaml.Node, field, format string, args ...any) {
	where := slices.DeleteFunc([]string{l.group, l.rule, field}, func(s string) bool { return s == "" })
	l.mistakes = append(l.mistakes, strict.Mistake{File: l.file, Line: max(n.Line, 1), Path: strings.Join(where, ", "), Text: fmt.Sprintf(format, args...)})
}

// read adds the groups of one file.
func (l *loader) read(file string, data []byte) {
	l.file, l.group, l.rule = file, "", ""
	before := len(l.mistakes)
	root := l.document(data)
	if root == nil {
		return
	}
	names := map[string]int{}
	l.fields(root, map[string]func(*yaml.Node){"groups": func(n *yaml.Node) {
		l.each(n, "groups", func(i int, n *yaml.Node) {
			l.group = fmt.Sprintf("group %d", i+1)
			if g := l.readGroup(n); g != nil {
				if first, again := names[g.Name]; again {
					l.mistake(n, "name", "found %s a second time, first on line %d; accepted is once in a file", wording.Quote(g.Name), first)
				}
				names[g.Name] = n.Line
				l.set.Groups = append(l.set.Groups, g)
			}
			l.group = ""
		})
	}})
	slices.SortStableFunc(l.mistakes[before:], func(a, b strict.Mistake) int { return a.Line - b.Line })
}

var syntaxError = regexp.MustCompile(`^yaml: (?:line (\d+): )?`)

// document returns the root of the only document, or nil.
func (l *loader) document(data []byte) (root *yaml.Node) {
	broken := func(err error) {
		text, line := err.Error(), 1
		if m := syntaxError.FindStringSubmatch(text); m != nil {
			line, _ = strconv.Atoi(cmp.Or(m[1], "1"))
			text = text[len(m[0]):]
		}
		l.mistake(&yaml.Node{Line: line}, "", "is not YAML: %s", text)
		root = nil
	}
	if len(data) > strict.MaxSize {
		l.mistake(&yaml.Node{}, "", "found more than %d bytes; accepted is a file of at most that size", strict.MaxSize)
		return nil
	}
	defer func() {
		if r := recover(); r != nil {
			broken(fmt.Errorf("the parser gave up: %v", r))
		}
	}()
	var doc, second yaml.Node
	dec := yaml.NewDecoder(bytes.NewReader(data))
	if err := dec.Decode(&doc); errors.Is(err, io.EOF) {
		return nil
	} else if err != nil {
		broken(err)
		return nil
	}
	switch err := dec.Decode(&second); {
	case err == nil:
		l.mistake(&second, "", "found a second document; accepted is one")
		return nil
	case !errors.Is(err, io.EOF):
		broken(err)
		return nil
	}
	if root = doc.Content[0]; isNull(root) {
		return nil
	}
	return root
}

func (l *loader) readGroup(n *yaml.Node) *Group {
	g := &Group{File: l.file, Line: n.Line}
	var labels map[string]string
	var list *yaml.Node
	if !l.fields(n, map[string]func(*yaml.Node){
		"name": func(n *yaml.Node) {
			g.Name = l.text(n, "name")
			if g.Name != "" {
				l.group = "group " + wording.Quote(g.Name)
			}
		},
		"interval":     func(n *yaml.Node) { g.Interval = l.duration(n, "interval") },
		"query_offset": func(n *yaml.Node) { g.Offset = l.duration(n, "query_offset") },
		"limit":        func(n *yaml.Node) { g.Limit = l.whole(n, "limit") },
		"labels":       func(n *yaml.Node) { labels = l.labels(n, "labels") },
		"rules":        func(n *yaml.Node) { list = n },
	}) {
		return nil
	}
	if g.Name == "" {
		l.mistake(n, "name", "found none; accepted is a name that is unique in the file")
	}
	if list != nil {
		l.each(list, "rules", func(i int, n *yaml.Node) {
			l.rule = fmt.Sprintf("rule %d", i+1)
			if r := l.readRule(n, labels); r != nil {
				g.Rules = append(g.Rules, r)
			}
			l.rule = ""
		})
	}
	return g
}

func (l *loader) readRule(n *yaml.Node, groupLabels map[string]string) *Rule {
	r := &Rule{Line: n.Line}
	before := len(l.mistakes)
	at := map[string]*yaml.Node{}
	text := func(field string, to *string) func(*yaml.Node) {
		return func(n *yaml.Node) { at[field], *to = n, l.text(n, field) }
	}
	var expr string
	// The name comes first, so that other mistakes can name the rule.
	if n.Kind == yaml.MappingNode {
		for i := 0; i+1 < len(n.Content); i += 2 {
			if key, val := n.Content[i].Value, n.Content[i+1]; (key == "alert" || key == "record") && val.Kind == yaml.ScalarNode {
				l.rule += " " + wording.Quote(val.Value)
			}
		}
	}
	if !l.fields(n, map[string]func(*yaml.Node){
		"record":          text("record", &r.Record),
		"alert":           text("alert", &r.Alert),
		"expr":            text("expr", &expr),
		"for":             func(n *yaml.Node) { at["for"], r.For = n, l.duration(n, "for") },
		"keep_firing_for": func(n *yaml.Node) { at["keep_firing_for"], r.KeepFiringFor = n, l.duration(n, "keep_firing_for") },
		"labels":          func(n *yaml.Node) { at["labels"], r.Labels = n, l.labels(n, "labels") },
		"annotations":     func(n *yaml.Node) { at["annotations"], r.Annotations = n, l.labels(n, "annotations") },
	}) {
		return nil
	}
	if (r.Record == "") == (r.Alert == "") {
		l.mistake(n, "", "found %s; accepted is one of record and alert", map[bool]string{true: "neither record nor alert", false: "both record and alert"}[r.Record == ""])
	}
	if at["expr"] != nil || len(l.mistakes) == before {
		r.Expr = l.expr(cmp.Or(at["expr"], n), expr)
	}
	if r.Record != "" {
		l.checkRecording(r, at)
	} else {
		l.checkTemplates(r, at)
	}
	own := r.Labels
	r.Labels = maps.Clone(groupLabels)
	if r.Labels == nil {
		r.Labels = map[string]string{}
	}
	maps.Copy(r.Labels, own)
	if len(l.mistakes) == before {
		l.checkOnce(n, r)
	}
	return r
}

func (l *loader) checkRecording(r *Rule, at map[string]*yaml.Node) {
	if !model.LegacyValidation.IsValidMetricName(r.Record) {
		l.mistake(at["record"], "record", "found %s; accepted is a metric name: letters, digits, _ and :, not beginning with a digit", wording.Quote(r.Record))
	}
	for _, field := range []string{"for", "keep_firing_for", "annotations"} {
		if n := at[field]; n != nil {
			l.mistake(n, field, "found on a recording rule; accepted on alerts only")
		}
	}
}

// checkTemplates parses the templates of an alert.
func (l *loader) checkTemplates(r *Rule, at map[string]*yaml.Node) {
	for field, texts := range map[string]map[string]string{"labels": r.Labels, "annotations": r.Annotations} {
		for name, text := range texts {
			if len(text) > maxText {
				l.mistake(at[field], field+"."+name, "found %d bytes; accepted are at most %d", len(text), maxText)
			} else if err := checkTemplate(r.Alert, text); err != nil {
				l.mistake(valueOf(at[field], name), field+"."+name, "found a template that does not parse: %s; accepted is Prometheus' template language", templateError(err))
			}
		}
	}
}

// checkOnce refuses a rule that is defined twice, word for word.
func (l *loader) checkOnce(n *yaml.Node, r *Rule) {
	key := fmt.Sprintf("%q %q %q %q", r.Record, r.Alert, r.Expr.String(), r.Labels)
	if first, again := l.known[key]; again {
		l.mistake(n, "", "found a second time, first at %s; accepted is once", first)
		return
	}
	l.known[key] = fmt.Sprintf("%s:%d", l.file, n.Line)
}

func (l *loader) expr(n *yaml.Node, text string) parser.Expr {
	const accepted = "accepted is an expression of PromQL that yields an instant vector or a scalar"
	switch {
	case strings.TrimSpace(text) == "":
		l.mistake(n, "expr", "found none; %s", accepted)
		return nil
	case len(text) > maxText:
		l.mistake(n, "expr", "found %d bytes; accepted are at most %d", len(text), maxText)
		return nil
	}
	e, err := parser.ParseExpr(text)
	if err != nil {
		l.mistake(n, "expr", "found %s: %s; %s", wording.Quote(text), exprError(err), accepted)
		return nil
	}
	if t := e.Type(); t != parser.ValueTypeVector && t != parser.ValueTypeScalar {
		l.mistake(n, "expr", "found %s, which yields a %s; %s", wording.Quote(text), parser.DocumentedType(t), accepted)
		return nil
	}
	if err := checkLiterals(e); err != nil {
		l.mistake(n, "expr", "found %s: %s; %s", wording.Quote(text), err, accepted)
		return nil
	}
	return e
}

// exprError is the first error in an expression, with its position as
// line:column.
func exprError(err error) string {
	text, _, _ := strings.Cut(err.Error(), "\n")
	return strings.Replace(text, "parse error: ", "", 1)
}

package engine

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/prometheus/promql/parser"

	"github.com/accel-exporter/accel-exporter/internal/config/strict"
	"github.com/accel-exporter/accel-exporter/rules"
)

var builtin = sync.OnceValue(func() *Set {
	files := map[string][]byte{}
	names, err := rules.Files.ReadDir(".")
	for _, f := range names {
		data, readErr := rules.Files.ReadFile(f.Name())
		err = errors.Join(err, readErr)
		files[f.Name()] = data
	}
	set, bad := Parse(files)
	if err := errors.Join(err, bad); err != nil {
		panic(fmt.Sprintf("rules: a built-in file is broken: %v", err))
	}
	return set
})

// Builtin returns the built-in rules. The Set is shared.
func Builtin() *Set { return builtin() }

// Load reads rule files, given by path or by pattern of path/filepath.Match.
// The error is of type strict.Mistakes when the files can be read and their
// content is invalid; it names every mistake of all files.
func Load(patterns ...string) (*Set, error) {
	set, err := Check(io.Discard, patterns...)
	if err != nil {
		return nil, err
	}
	return set, nil
}

// Parse is Load for the content of files by their name in errors.
func Parse(files map[string][]byte) (*Set, error) {
	l := newLoader()
	for _, name := range slices.Sorted(maps.Keys(files)) {
		l.read(name, files[name])
	}
	return l.result()
}

// result returns the rules, or the mistakes in the files.
func (l *loader) result() (*Set, error) {
	if len(l.mistakes) > 0 {
		return nil, l.mistakes
	}
	return &l.set, nil
}

// ClusterPrefix is the start of the name of a group that needs the series of
// more than one node. An Engine skips and counts the rules of such groups.
const ClusterPrefix = "accel-cluster-"

// Set are the rules of some files. It must not be changed once it is in use.
type Set struct {
	// Groups are in the order of evaluation: by file, and within a file as
	// written.
	Groups []*Group
}

// Group is a list of rules that are evaluated in order at one timestamp.
type Group struct {
	// File is the path the group was read from, Name unique within it.
	File, Name string
	// Interval is 0 if the file gives none.
	Interval time.Duration
	// Limit is the most series or alerts that a rule may yield; 0 is no limit.
	Limit int
	Rules []*Rule
}

// Cluster reports whether the group needs series of more than one node.
func (g *Group) Cluster() bool { return strings.HasPrefix(g.Name, ClusterPrefix) }

// Rule is one recording or alerting rule.
type Rule struct {
	// Record is the name of the recorded series, Alert the name of the alert.
	// One of them is empty.
	Record, Alert string
	// Line is where the rule starts in its file, counted from 1.
	Line int
	// Expr is the expression.
	Expr parser.Expr
	// For is how long an alert is pending before it fires; KeepFiringFor how
	// long it keeps firing after its expression stops yielding it.
	For, KeepFiringFor time.Duration
	// Labels are the labels of the group and the rule. The labels of an alert,
	// and its Annotations, may be templates.
	Labels, Annotations map[string]string
}

// Name returns the name of the recorded series or of the alert.
func (r *Rule) Name() string { return r.Record + r.Alert }

// Check reads rule files, given by path or pattern, and writes a summary of
// each file without a mistake. It returns the rules of these files. The error names
// every mistake in every file.
func Check(w io.Writer, patterns ...string) (*Set, error) {
	paths, err := strict.Glob(patterns)
	l := newLoader()
	longest := Limits{}.withDefaults().Range
	for _, path := range paths {
		data, unread := strict.NewFile(path).Read()
		if unread != nil {
			err = errors.Join(err, unread)
			continue
		}
		mistakes, groups := len(l.mistakes), len(l.set.Groups)
		l.read(path, data)
		if len(l.mistakes) == mistakes {
			file := Set{Groups: l.set.Groups[groups:]}
			fmt.Fprintf(w, "%s: %s\n", path, file.summary(longest))
		}
	}
	switch {
	case len(l.mistakes) == 0:
		return &l.set, err
	case err == nil:
		return &l.set, l.mistakes
	}
	return &l.set, errors.Join(err, l.mistakes)
}

// summary describes the rules in one line.
func (s *Set) summary(longest time.Duration) string {
	kinds := map[string]int{}
	skipped := map[Skip]int{}
	for _, g := range s.Groups {
		for _, r := range g.Rules {
			kinds[r.kind()]++
			skipped[skipOf(g, r, longest)]++
		}
	}
	text := fmt.Sprintf("%d groups, %d alerts, %d recorded series", len(s.Groups), kinds[typeAlerting], kinds[typeRecording])
	if n := skipped[SkipCluster]; n > 0 {
		text += fmt.Sprintf("; %d rules compare several nodes, which only Prometheus evaluates", n)
	}
	if n := skipped[SkipRange]; n > 0 {
		text += fmt.Sprintf("; %d rules look back more than %v, which only Prometheus evaluates", n, longest)
	}
	return text
}

// Unknown returns a mistake for each metric that a rule reads, that no rule of the
// Set records, and that exists does not know. Such a rule yields nothing.
func (s *Set) Unknown(exists func(metric string) bool) (unknown strict.Mistakes) {
	recorded := map[string]bool{}
	for _, g := range s.Groups {
		for _, r := range g.Rules {
			recorded[r.Record] = true
		}
	}
	for _, g := range s.Groups {
		for _, r := range g.Rules {
			parser.Inspect(r.Expr, func(n parser.Node, _ []parser.Node) error {
				v, ok := n.(*parser.VectorSelector)
				if !ok {
					return nil
				}
				if name := nameOf(v.LabelMatchers); name != "" && !recorded[name] && !exists(name) {
					unknown = append(unknown, strict.Mistake{File: g.File, Line: r.Line, Path: r.Name(), Text: "unknown metric " + name})
				}
				return nil
			})
		}
	}
	return slices.CompactFunc(unknown, func(a, b strict.Mistake) bool { return a == b })
}

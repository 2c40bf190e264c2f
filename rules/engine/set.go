package engine

import (
	"strings"
	"time"

	"github.com/prometheus/prometheus/promql/parser"
)

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
	// Line is where the group starts in File, counted from 1.
	Line int
	// Interval is 0 if the file gives none.
	Interval time.Duration
	// Offset is query_offset: Prometheus evaluates that far in the past, for
	// late samples. An Engine has none and evaluates the present.
	Offset time.Duration
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
	// Labels are the labels of the group and the rule. Those of an alert, and
	// its Annotations, may be templates.
	Labels, Annotations map[string]string
}

// Name returns the name of the recorded series or of the alert.
func (r *Rule) Name() string { return r.Record + r.Alert }

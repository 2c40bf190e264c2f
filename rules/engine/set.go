package engine

import (
	"strings"
	"time"

	"github.com/prometheus/prometheus/promql/parser"
)

// ClusterPrefix begins the name of a group that needs the series of more than
// one node. An Engine skips and counts the rules of such groups.
const ClusterPrefix = "accel-cluster-"

// Set is the rules of some files. It must not be changed once it is in use.
type Set struct {
	// Groups are in the order in which they are evaluated: that of the files
	// and of the groups in each.
	Groups []*Group
}

// Group is rules that are evaluated one after the other at one timestamp.
type Group struct {
	// File is the path the group was read from, Name unique within it.
	File, Name string
	// Line is where the group begins in File, counted from 1.
	Line int
	// Interval is 0 where the file gives none.
	Interval time.Duration
	// Offset is by how much Prometheus is to evaluate the past instead of now,
	// because samples may come late. To an Engine none do: it evaluates now.
	Offset time.Duration
	// Limit is the most series or alerts that a rule may yield; 0 is no limit.
	Limit int
	Rules []*Rule
}

// Cluster reports whether the group needs series of more than one node.
func (g *Group) Cluster() bool { return strings.HasPrefix(g.Name, ClusterPrefix) }

// Rule is one recording or alerting rule.
type Rule struct {
	// Record is the name of the recorded series, Alert that of the alert. One
	// of them is empty.
	Record, Alert string
	// Line is where the rule begins in its file, counted from 1.
	Line int
	// Expr is the expression.
	Expr parser.Expr
	// For is how long an alert is pending before it fires; KeepFiringFor how
	// long it fires on after its expression has ceased to yield it.
	For, KeepFiringFor time.Duration
	// Labels are those of the group and the rule; of an alert they may be
	// templates. Annotations may be, too.
	Labels, Annotations map[string]string
}

// Name returns the name of the recorded series or of the alert.
func (r *Rule) Name() string { return r.Record + r.Alert }

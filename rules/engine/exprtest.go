package engine

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
)

// check compares what an expression yields with what is expected.
func (x *exprTest) check(ctx context.Context, e *Engine, start time.Time, fuzzy bool) error {
	got, err := e.Query(ctx, x.Expr, start.Add(time.Duration(x.EvalTime)))
	if err != nil {
		return err
	}
	var want promql.Vector
	for _, s := range x.Expected {
		if s.Histogram != "" {
			return errors.New("exp_samples: found a native histogram; accepted are floats")
		}
		l, err := parser.ParseMetric(s.Labels)
		if err != nil {
			return fmt.Errorf("labels %q: %s", s.Labels, exprError(err))
		}
		want = append(want, promql.Sample{Metric: l, F: s.Value})
	}
	byLabels := func(a, b promql.Sample) int { return labels.Compare(a.Metric, b.Metric) }
	slices.SortFunc(want, byLabels)
	slices.SortFunc(got, byLabels)
	same := func(a, b promql.Sample) bool {
		return labels.Equal(a.Metric, b.Metric) && (sameFloat(a.F, b.F) || fuzzy && near(a.F, b.F))
	}
	if slices.EqualFunc(want, got, same) {
		return nil
	}
	return fmt.Errorf("\n    expected %s\n    found    %s", vectorText(want), vectorText(got))
}

func sameFloat(a, b float64) bool { return a == b || a != a && b != b }

// near reports whether nothing lies between a and b.
func near(a, b float64) bool {
	return math.Nextafter(a, math.Inf(-1)) == b || math.Nextafter(a, math.Inf(1)) == b
}

func vectorText(v promql.Vector) string {
	if len(v) == 0 {
		return "nothing"
	}
	var parts []string
	for _, s := range v {
		parts = append(parts, fmt.Sprintf("%s %v", s.Metric, s.F))
	}
	return strings.Join(parts, ", ")
}

package engine

import (
	"context"
	"errors"
	"time"

	"github.com/prometheus/prometheus/promql"
)

// query evaluates an expression at a time. The caller holds mu.
func (e *Engine) query(ctx context.Context, expr string, at time.Time) (promql.Vector, error) {
	q, err := e.promql.NewInstantQuery(ctx, e.ring, nil, expr, at)
	if err != nil {
		return nil, err
	}
	result := q.Exec(ctx)
	if result.Err != nil {
		return nil, result.Err
	}
	switch v := result.Value.(type) {
	case promql.Vector:
		return v, nil
	case promql.Scalar:
		return promql.Vector{{T: v.T, F: v.V}}, nil
	}
	return nil, errors.New("the expression yields neither an instant vector nor a scalar")
}

// queryRule evaluates the expression of a rule.
func (e *Engine) queryRule(ctx context.Context, r *rule, at time.Time) (promql.Vector, error) {
	if e.ring.nothing(r.Expr) && !e.ring.fallible(r.Expr) {
		return nil, nil
	}
	return e.query(ctx, r.query, at)
}

// Query evaluates an expression over what the engine holds at the time at. It
// finds only series that some rule selects and the latest of what rules
// recorded.
func (e *Engine) Query(ctx context.Context, expr string, at time.Time) (promql.Vector, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.query(ctx, expr, at)
}

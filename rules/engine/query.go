package engine

import (
	"context"
	"errors"
	"time"

	"github.com/prometheus/prometheus/promql"
)

// Query evaluates an expression over the samples in memory at the time at. It
// finds only series of metrics that some rule reads and the latest samples that
// rules recorded.
func (e *Engine) Query(ctx context.Context, expr string, at time.Time) (promql.Vector, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.query(ctx, expr, at)
}

// query is Query for a caller that has locked mu.
func (e *Engine) query(ctx context.Context, expr string, at time.Time) (promql.Vector, error) {
	q, err := e.promql.NewInstantQuery(ctx, e.ring, nil, expr, at)
	if err != nil {
		return nil, err
	}
	defer q.Close()
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

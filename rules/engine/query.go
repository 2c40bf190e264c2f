package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
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
func (e *Engine) query(ctx context.Context, text string, at time.Time) (promql.Vector, error) {
	expr, err := parser.ParseExpr(text)
	if err != nil {
		return nil, err
	}
	return e.compute(ctx, expr, at)
}

// compute evaluates an expression at a time. The caller has locked mu.
func (e *Engine) compute(ctx context.Context, expr parser.Expr, at time.Time) (promql.Vector, error) {
	// promql.Engine accepts text only, and parsing the text of a rule takes
	// longer than its evaluation. Therefore it parses a number, and the
	// statement gets the expression afterwards.
	q, err := e.promql.NewInstantQuery(ctx, e.ring, nil, "0", at)
	if err != nil {
		return nil, err
	}
	defer q.Close()
	statement, ok := q.Statement().(*parser.EvalStmt)
	if !ok {
		return nil, fmt.Errorf("the statement of a query is a %T", q.Statement())
	}
	if statement.Expr, err = promql.PreprocessExpr(clone(expr), at, at, 0); err != nil {
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

// clone copies the parts of an expression that an evaluation changes: it sorts
// labels, and leaves series and the samples of subqueries behind.
func clone(e parser.Expr) parser.Expr {
	switch e := e.(type) {
	case *parser.VectorSelector:
		c := *e
		return &c
	case *parser.MatrixSelector:
		c := *e
		c.VectorSelector = clone(e.VectorSelector)
		return &c
	case *parser.SubqueryExpr:
		c := *e
		c.Expr = clone(e.Expr)
		return &c
	case *parser.ParenExpr:
		c := *e
		c.Expr = clone(e.Expr)
		return &c
	case *parser.UnaryExpr:
		c := *e
		c.Expr = clone(e.Expr)
		return &c
	case *parser.AggregateExpr:
		c := *e
		c.Expr, c.Param, c.Grouping = clone(e.Expr), clone(e.Param), slices.Clone(e.Grouping)
		return &c
	case *parser.Call:
		c := *e
		c.Args = slices.Clone(e.Args)
		for i, arg := range c.Args {
			c.Args[i] = clone(arg)
		}
		return &c
	case *parser.BinaryExpr:
		c := *e
		c.LHS, c.RHS = clone(e.LHS), clone(e.RHS)
		return &c
	}
	return e // a literal
}

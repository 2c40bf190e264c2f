package engine

import (
	"fmt"
	"regexp"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/promql/parser"

	"github.com/accel-exporter/accel-exporter/internal/strict/wording"
)

// checkLiterals returns the first literal of an expression that the query
// engine would refuse at each evaluation. The parser checks only their types.
func checkLiterals(expr parser.Expr) error {
	var first error
	parser.Inspect(expr, func(n parser.Node, _ []parser.Node) error {
		var err error
		switch n := n.(type) {
		case *parser.Call:
			err = checkCall(n)
		case *parser.AggregateExpr:
			if n.Op == parser.COUNT_VALUES {
				err = checkLabel("count_values", n.Param)
			}
		}
		if first == nil {
			first = err
		}
		return nil
	})
	return first
}

func checkCall(c *parser.Call) error {
	switch c.Func.Name {
	case "label_replace":
		if err := checkLabel("label_replace", c.Args[1]); err != nil {
			return err
		}
		pattern, ok := literal(c.Args[4])
		if !ok {
			return nil
		}
		// As label_replace compiles it.
		if _, err := regexp.Compile("^(?s:" + pattern + ")$"); err != nil {
			return fmt.Errorf("label_replace: %s is not a regular expression: %w", wording.Quote(pattern), err)
		}
	case "label_join":
		if err := checkLabel("label_join", c.Args[1]); err != nil {
			return err
		}
		for _, source := range c.Args[3:] {
			if err := checkLabel("label_join", source); err != nil {
				return err
			}
		}
	}
	return nil
}

func checkLabel(function string, arg parser.Expr) error {
	name, ok := literal(arg)
	if ok && !model.LegacyValidation.IsValidLabelName(name) {
		return fmt.Errorf("%s: %s is not a label name", function, wording.Quote(name))
	}
	return nil
}

// literal returns the text of a string literal, with or without parentheses.
func literal(e parser.Expr) (string, bool) {
	for {
		switch x := e.(type) {
		case *parser.ParenExpr:
			e = x.Expr
		case *parser.StepInvariantExpr:
			e = x.Expr
		case *parser.StringLiteral:
			return x.Val, true
		default:
			return "", false
		}
	}
}

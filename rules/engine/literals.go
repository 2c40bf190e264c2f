package engine

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"sync"
	"text/template/parse"

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

// parsed are templates without a mistake. Most alerts have the same annotations, and
// parsing them again would be a third of the time that a rule file takes.
var parsed = struct {
	sync.Mutex
	texts map[string]bool
}{texts: map[string]bool{}}

// maxParsed bounds parsed; beyond it, it is cleared.
const maxParsed = 1024

// checkTemplate returns why a template of the alert, or a literal query in it,
// does not parse.
func checkTemplate(alert, text string) error {
	if !strings.Contains(text, "{{") {
		return nil
	}
	parsed.Lock()
	defer parsed.Unlock()
	if parsed.texts[text] {
		return nil
	}
	if err := new(expander).template(context.Background(), alert, text, nil).ParseTest(); err != nil {
		return err
	}
	t, trees := parse.New(alert), map[string]*parse.Tree{}
	t.Mode = parse.SkipFuncCheck
	if _, err := t.Parse(variables+text, "", "", trees); err != nil {
		return err
	}
	for _, t := range trees {
		if err := checkNode(t.Root); err != nil {
			return err
		}
	}
	if len(parsed.texts) >= maxParsed {
		clear(parsed.texts)
	}
	parsed.texts[text] = true
	return nil
}

func checkNodes[N parse.Node](nodes ...N) error {
	for _, n := range nodes {
		if err := checkNode(n); err != nil {
			return err
		}
	}
	return nil
}

// checkNode checks a node and its children.
func checkNode(n parse.Node) error {
	switch n := n.(type) {
	case *parse.ListNode:
		if n != nil { // there is no else
			return checkNodes(n.Nodes...)
		}
	case *parse.PipeNode:
		if n != nil { // the template has no argument
			return checkNodes(n.Cmds...)
		}
	case *parse.ActionNode:
		return checkNode(n.Pipe)
	case *parse.TemplateNode:
		return checkNode(n.Pipe)
	case *parse.IfNode:
		return checkBranch(&n.BranchNode)
	case *parse.RangeNode:
		return checkBranch(&n.BranchNode)
	case *parse.WithNode:
		return checkBranch(&n.BranchNode)
	case *parse.CommandNode:
		if err := checkQuery(n.Args); err != nil {
			return err
		}
		return checkNodes(n.Args...)
	}
	return nil
}

func checkBranch(n *parse.BranchNode) error {
	return checkNodes[parse.Node](n.Pipe, n.List, n.ElseList)
}

// checkQuery refuses a call of query with an invalid expression.
func checkQuery(call []parse.Node) error {
	if len(call) != 2 {
		return nil
	}
	function, ok := call[0].(*parse.IdentifierNode)
	text, is := call[1].(*parse.StringNode)
	if !ok || !is || function.Ident != "query" {
		return nil
	}
	if _, err := parser.ParseExpr(text.Text); err != nil {
		return fmt.Errorf("query %s: %s", wording.Quote(text.Text), exprError(err))
	}
	return nil
}

package engine

import (
	"context"
	"fmt"
	"strings"
	"text/template/parse"

	"github.com/prometheus/prometheus/promql/parser"

	"github.com/accel-exporter/accel-exporter/internal/config/strict/wording"
)

// checkTemplate returns the first mistake in a template of the alert.
func checkTemplate(alert, text string) error {
	if !strings.Contains(text, "{{") {
		return nil
	}
	if err := new(expander).template(context.Background(), alert, text, nil).ParseTest(); err != nil {
		return err
	}
	// Two mistakes would only fail once the alert fires: a query that does not
	// parse, and a template that is not defined.
	defined := templates{}
	t := parse.New(alert)
	t.Mode = parse.SkipFuncCheck
	if _, err := t.Parse(variables+text, "", "", defined); err != nil {
		return err
	}
	for _, t := range defined {
		if err := defined.check(t.Root); err != nil {
			return err
		}
	}
	return nil
}

// templates are the templates that a text defines, and the text itself, by name.
type templates map[string]*parse.Tree

// check checks nodes and their children.
func (t templates) check(nodes ...parse.Node) error {
	for _, n := range nodes {
		if err := t.checkNode(n); err != nil {
			return err
		}
	}
	return nil
}

func (t templates) checkNode(n parse.Node) error {
	switch n := n.(type) {
	case *parse.ListNode:
		if n != nil { // there is no else
			return t.check(n.Nodes...)
		}
	case *parse.PipeNode:
		for _, c := range n.Cmds {
			if err := checkQuery(c.Args); err != nil {
				return err
			}
			if err := t.check(c.Args...); err != nil {
				return err
			}
		}
	case *parse.ChainNode:
		return t.check(n.Node)
	case *parse.ActionNode:
		return t.check(n.Pipe)
	case *parse.TemplateNode:
		if t[n.Name] == nil {
			return fmt.Errorf("template %s is not defined", wording.Quote(n.Name))
		}
		if n.Pipe != nil {
			return t.check(n.Pipe)
		}
	case *parse.IfNode:
		return t.check(n.Pipe, n.List, n.ElseList)
	case *parse.RangeNode:
		return t.check(n.Pipe, n.List, n.ElseList)
	case *parse.WithNode:
		return t.check(n.Pipe, n.List, n.ElseList)
	}
	return nil
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

package engine

import (
	"fmt"
	"net/url"
	"strings"
	"text/template/parse"

	"github.com/prometheus/prometheus/promql/parser"

	"github.com/accel-exporter/accel-exporter/internal/strict/wording"
)

// checkTemplate returns why a template of the alert, or a literal query in it,
// does not parse.
func checkTemplate(alert, text string) error {
	if !strings.Contains(text, "{{") {
		return nil
	}
	x := &expander{url: &url.URL{}}
	t, err := x.parse(alert, text)
	if err != nil {
		return err
	}
	for _, t := range t.Templates() {
		if err := checkNode(t.Root); err != nil {
			return err
		}
	}
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

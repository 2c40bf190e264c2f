package incidents

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/promql/parser"
	"go.yaml.in/yaml/v3"
)

// The shortest times that make sense: rules are evaluated once a second, and a
// rate needs two samples, also where one of them is late.
const (
	leastWait   = time.Second
	leastWindow = 3 * time.Second
)

// shorter divides a time, rounded to milliseconds; 0 stays.
func shorter(d time.Duration, factor int, least time.Duration) time.Duration {
	if d == 0 {
		return 0
	}
	short := max((d.Abs() / time.Duration(factor)).Round(time.Millisecond), min(least, d.Abs()))
	if d < 0 {
		return -short
	}
	return short
}

// ShortenRules divides every duration of a rule file by factor: for,
// keep_firing_for and interval, and in expressions ranges, subqueries, offsets and
// the numbers that gauges in seconds are compared with. Nothing else changes; name
// stands for the file in errors.
func ShortenRules(name string, data []byte, factor int) ([]byte, error) {
	return edit(name, data, func(n *yaml.Node, key string) error {
		switch key {
		case "for", "keep_firing_for", "interval":
			d, err := model.ParseDuration(n.Value)
			if err != nil {
				return err
			}
			n.Value = model.Duration(shorter(time.Duration(d), factor, leastWait)).String()
		case "expr":
			short, err := shortenExpr(n.Value, factor)
			if err != nil {
				return err
			}
			n.Value = short
		}
		return nil
	})
}

func shortenExpr(text string, factor int) (string, error) {
	e, err := parser.ParseExpr(text)
	if err != nil {
		return "", err
	}
	parser.Inspect(e, func(n parser.Node, _ []parser.Node) error {
		switch n := n.(type) {
		case *parser.VectorSelector:
			n.OriginalOffset = shorter(n.OriginalOffset, factor, leastWait)
		case *parser.MatrixSelector:
			n.Range = shorter(n.Range, factor, leastWindow)
		case *parser.SubqueryExpr:
			n.Range = shorter(n.Range, factor, leastWindow)
			n.Step = shorter(n.Step, factor, leastWait)
			n.OriginalOffset = shorter(n.OriginalOffset, factor, leastWait)
		case *parser.BinaryExpr:
			if limit, ok := n.RHS.(*parser.NumberLiteral); ok && n.Op.IsComparisonOperator() && inSeconds(n.LHS) {
				limit.Val = shorter(time.Duration(limit.Val*float64(time.Second)), factor, leastWait).Seconds()
			}
		}
		return nil
	})
	return e.String(), nil
}

// inSeconds reports whether an expression reads gauges in seconds and nothing else. A
// range of them, as of rate, has another unit.
func inSeconds(e parser.Expr) bool {
	found, other := false, false
	parser.Inspect(e, func(n parser.Node, _ []parser.Node) error {
		switch n := n.(type) {
		case *parser.VectorSelector:
			found = true
			other = other || !strings.HasSuffix(n.Name, "_seconds")
		case *parser.MatrixSelector:
			other = true
		}
		return nil
	})
	return found && !other
}

// ShortenCatalogue returns a file for --health.catalogue that divides every
// duration of the built-in catalogue by factor.
func ShortenCatalogue(name string, data []byte, factor int) ([]byte, error) {
	var all struct {
		Unknown    map[string]any   `yaml:"unknown"`
		Xid        []map[string]any `yaml:"xid"`
		SXid       []map[string]any `yaml:"sxid"`
		Events     []map[string]any `yaml:"events"`
		Conditions []map[string]any `yaml:"conditions"`
	}
	if err := yaml.Unmarshal(data, &all); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	changed := func(entry map[string]any, keys, times []string) map[string]any {
		out := map[string]any{}
		for _, key := range times {
			text, _ := entry[key].(string)
			// reset and answer are no durations.
			if d, err := time.ParseDuration(text); err == nil {
				out[key] = shorter(d, factor, leastWait).String()
			}
		}
		if len(out) == 0 {
			return nil
		}
		for _, key := range keys {
			if v, ok := entry[key]; ok {
				out[key] = v
			}
		}
		return out
	}
	out := map[string]any{}
	if u := changed(all.Unknown, nil, []string{"ends"}); u != nil {
		out["unknown"] = u
	}
	for _, list := range []struct {
		name        string
		entries     []map[string]any
		keys, times []string
	}{
		{"xid", all.Xid, []string{"code", "sub"}, []string{"ends"}},
		{"sxid", all.SXid, []string{"code", "sub"}, []string{"ends"}},
		{"events", all.Events, []string{"event", "sub"}, []string{"ends", "grace"}},
		{"conditions", all.Conditions, []string{"reason"}, []string{"for", "lasts"}},
	} {
		var entries []map[string]any
		for _, e := range list.entries {
			if c := changed(e, list.keys, list.times); c != nil {
				entries = append(entries, c)
			}
		}
		if len(entries) > 0 {
			out[list.name] = entries
		}
	}
	return yaml.Marshal(out)
}

// edit calls change with every scalar of a file that is the value of a key.
func edit(name string, data []byte, change func(n *yaml.Node, key string) error) ([]byte, error) {
	var doc yaml.Node
	if err := yaml.Unmarshal(data, &doc); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	if doc.Kind == 0 {
		return data, nil // there is nothing in it
	}
	var walk func(n *yaml.Node) error
	walk = func(n *yaml.Node) error {
		if n.Kind != yaml.MappingNode {
			for _, c := range n.Content {
				if err := walk(c); err != nil {
					return err
				}
			}
			return nil
		}
		for pair := range slices.Chunk(n.Content, 2) {
			if len(pair) < 2 {
				break
			}
			key, value := pair[0], pair[1]
			if value.Kind != yaml.ScalarNode {
				if err := walk(value); err != nil {
					return err
				}
			} else if err := change(value, key.Value); err != nil {
				return fmt.Errorf("%s:%d: %s: %w", name, value.Line, key.Value, err)
			}
		}
		return nil
	}
	if err := walk(&doc); err != nil {
		return nil, err
	}
	var b bytes.Buffer
	enc := yaml.NewEncoder(&b)
	enc.SetIndent(2)
	if err := enc.Encode(&doc); err != nil {
		return nil, err
	}
	return b.Bytes(), enc.Close()
}

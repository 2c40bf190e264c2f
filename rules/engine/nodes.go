package engine

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/common/model"
	"go.yaml.in/yaml/v3"

	"github.com/accel-exporter/accel-exporter/internal/strict/wording"
)

// fields calls the function of each field of the mapping n; an unknown field is
// a mistake. It reports whether n is a mapping.
func (l *loader) fields(n *yaml.Node, known map[string]func(*yaml.Node)) bool {
	names := slices.Sorted(maps.Keys(known))
	pairs, ok := l.pairs(n)
	if !ok {
		l.mistake(n, "", "found %s; accepted is a mapping with the keys %s", found(n), strings.Join(names, ", "))
		return false
	}
	seen := map[string]int{}
	for _, p := range pairs {
		key := p.key.Value
		read := known[key]
		first, again := seen[key]
		switch {
		case p.key.Kind != yaml.ScalarNode || read == nil:
			near := ""
			if like := wording.Nearest(key, names, 1); len(like) > 0 {
				near = fmt.Sprintf(" (did you mean %s?)", like[0])
			}
			l.mistake(p.key, "", "unknown key %s%s; accepted here: %s", wording.Quote(key), near, strings.Join(names, ", "))
		case again && p.merged:
		case again:
			l.mistake(p.key, key, "found a second time, first on line %d; accepted is once", first)
		default:
			seen[key] = p.key.Line
			read(p.val)
		}
	}
	return true
}

type pair struct {
	key, val *yaml.Node
	merged   bool // from a merge key; the mapping's own fields win
}

// pairs returns the fields of a mapping, with merge keys resolved.
func (l *loader) pairs(n *yaml.Node) ([]pair, bool) {
	if l.nodes++; l.nodes > maxNodes {
		return nil, false
	}
	n = target(n)
	if n.Kind != yaml.MappingNode {
		return nil, false
	}
	var own, merged []pair
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, val := n.Content[i], target(n.Content[i+1])
		if key.ShortTag() != "!!merge" {
			own = append(own, pair{key: key, val: val})
			continue
		}
		from := []*yaml.Node{val}
		if val.Kind == yaml.SequenceNode {
			from = val.Content
		}
		for _, m := range from {
			if m = target(m); m.Kind != yaml.MappingNode || m == n {
				return nil, false
			}
			for j := 0; j+1 < len(m.Content); j += 2 {
				merged = append(merged, pair{key: m.Content[j], val: target(m.Content[j+1]), merged: true})
			}
		}
	}
	return append(own, merged...), true
}

// each calls f for each item of the list n.
func (l *loader) each(n *yaml.Node, field string, f func(int, *yaml.Node)) {
	if isNull(n) {
		return
	}
	if n.Kind != yaml.SequenceNode {
		l.mistake(n, field, "found %s; accepted is a list", found(n))
		return
	}
	for i, item := range n.Content {
		if l.nodes++; l.nodes > maxNodes {
			l.mistake(item, field, "found more than %d values, aliases included; accepted are at most that many", maxNodes)
			return
		}
		f(i, target(item))
	}
}

func (l *loader) text(n *yaml.Node, field string) string {
	if n.Kind == yaml.ScalarNode {
		switch n.ShortTag() {
		case "!!null":
			return ""
		case "!!str", "!!int", "!!float", "!!bool", "!!timestamp":
			return n.Value
		}
	}
	l.mistake(n, field, "found %s; accepted is text", found(n))
	return ""
}

func (l *loader) duration(n *yaml.Node, field string) time.Duration {
	if isNull(n) {
		return 0
	}
	before := len(l.mistakes)
	text := l.text(n, field)
	d, err := model.ParseDuration(text)
	if err != nil && len(l.mistakes) == before {
		l.mistake(n, field, "found %s; accepted is a duration such as 30s, 5m or 1h30m", wording.Quote(text))
	}
	return time.Duration(d)
}

func (l *loader) whole(n *yaml.Node, field string) int {
	i, err := strconv.Atoi(n.Value)
	if n.Kind != yaml.ScalarNode || err != nil || i < 0 {
		l.mistake(n, field, "found %s; accepted is a whole number from 0 on, 0 being no limit", found(n))
		return 0
	}
	return i
}

func (l *loader) labels(n *yaml.Node, field string) map[string]string {
	if isNull(n) {
		return nil
	}
	pairs, ok := l.pairs(n)
	if !ok {
		l.mistake(n, field, "found %s; accepted is a mapping of names to texts", found(n))
		return nil
	}
	all := map[string]string{}
	for _, p := range pairs {
		name := p.key.Value
		_, again := all[name]
		switch {
		case again && p.merged:
		case again:
			l.mistake(p.key, field+"."+name, "found a second time; accepted is once")
		case p.key.Kind != yaml.ScalarNode || !model.LegacyValidation.IsValidLabelName(name) || name == model.MetricNameLabel:
			l.mistake(p.key, field, "found the name %s; accepted are letters, digits and _, not beginning with a digit", wording.Quote(name))
		default:
			all[name] = l.text(p.val, field+"."+name)
		}
	}
	return all
}

// target resolves an alias.
func target(n *yaml.Node) *yaml.Node {
	if n.Kind == yaml.AliasNode {
		return n.Alias
	}
	return n
}

func isNull(n *yaml.Node) bool { return n.Kind == yaml.ScalarNode && n.ShortTag() == "!!null" }

// valueOf returns the value of a key in a mapping, else the mapping.
func valueOf(n *yaml.Node, key string) *yaml.Node {
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == key {
			return n.Content[i+1]
		}
	}
	return n
}

// found describes a node.
func found(n *yaml.Node) string {
	switch {
	case n.Kind == yaml.MappingNode:
		return "a mapping"
	case n.Kind == yaml.SequenceNode:
		return "a list"
	case isNull(n):
		return "no value"
	}
	return wording.Quote(n.Value)
}

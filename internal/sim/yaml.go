package sim

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// node is a YAML node with its file and path, so that every error can name
// file, line and key.
type node struct {
	*yaml.Node
	file, path string
}

func (n node) errorf(format string, args ...any) error {
	where := n.file + ":" + strconv.Itoa(n.Line)
	if n.path != "" {
		where += ": " + n.path
	}
	return fmt.Errorf(where+": "+format, args...)
}

func parseYAML(file string, data []byte) (node, error) {
	var doc yaml.Node
	if err := yaml.Unmarshal(data, &doc); err != nil {
		return node{}, fmt.Errorf("%s: %w", file, err)
	}
	if len(doc.Content) != 1 {
		return node{}, fmt.Errorf("%s:1: the file is empty", file)
	}
	return node{doc.Content[0], file, ""}, nil
}

func describe(n *yaml.Node) string {
	switch n.Kind {
	case yaml.MappingNode:
		return "a mapping"
	case yaml.SequenceNode:
		return "a list"
	case yaml.ScalarNode:
		return strconv.Quote(n.Value)
	}
	return "an alias"
}

// each calls f for every key of a mapping, and reports duplicates.
func (n node) each(f func(key string, at, value node) error) error {
	if n.Kind != yaml.MappingNode {
		return n.errorf("want a mapping, found %s", describe(n.Node))
	}
	seen := map[string]int{}
	var all []error
	for i := 0; i+1 < len(n.Content); i += 2 {
		key := n.Content[i].Value
		path := strings.TrimPrefix(n.path+"."+key, ".")
		at := node{n.Content[i], n.file, path}
		if first, ok := seen[key]; ok {
			all = append(all, at.errorf("the key is here and on line %d", first))
			continue
		}
		seen[key] = n.Content[i].Line
		all = append(all, f(key, at, node{n.Content[i+1], n.file, path}))
	}
	return errors.Join(all...)
}

// fields decodes a mapping with known keys only.
func (n node) fields(known map[string]func(node) error) error {
	return n.each(func(key string, at, value node) error {
		f, ok := known[key]
		if !ok {
			return at.errorf("unknown key; want one of %s", strings.Join(slices.Sorted(maps.Keys(known)), ", "))
		}
		return f(value)
	})
}

func (n node) items(f func(int, node) error) error {
	if n.Kind != yaml.SequenceNode {
		return n.errorf("want a list, found %s", describe(n.Node))
	}
	var all []error
	for i, c := range n.Content {
		all = append(all, f(i, node{c, n.file, fmt.Sprintf("%s[%d]", n.path, i)}))
	}
	return errors.Join(all...)
}

func toText(to *string) func(node) error {
	return func(n node) error {
		if n.Kind != yaml.ScalarNode {
			return n.errorf("want text, found %s", describe(n.Node))
		}
		*to = n.Value
		return nil
	}
}

func toInt(to *int, least, most int) func(node) error {
	return func(n node) error {
		v, err := strconv.Atoi(n.Value)
		if n.Kind != yaml.ScalarNode || err != nil || v < least || v > most {
			return n.errorf("want a whole number from %d to %d, found %s", least, most, describe(n.Node))
		}
		*to = v
		return nil
	}
}

func toBool(to *bool) func(node) error {
	return func(n node) error {
		if n.Kind != yaml.ScalarNode || n.Value != "true" && n.Value != "false" {
			return n.errorf("want true or false, found %s", describe(n.Node))
		}
		*to = n.Value == "true"
		return nil
	}
}

func toTexts(to *[]string) func(node) error {
	return func(n node) error {
		return n.items(func(_ int, c node) error {
			var s string
			err := toText(&s)(c)
			*to = append(*to, s)
			return err
		})
	}
}

// toPlaced decodes a list of texts with their lines.
func toPlaced(to *[]line) func(node) error {
	return func(n node) error {
		return n.items(func(_ int, c node) error {
			var s string
			err := toText(&s)(c)
			*to = append(*to, line{fmt.Sprintf("%s:%d: %s", c.file, c.Line, c.path), s})
			return err
		})
	}
}

// toValues decodes keys of the model, each with a number, waveform or text.
func toValues(to *[]line) func(node) error {
	return func(n node) error {
		return n.each(func(key string, at, value node) error {
			var s string
			if err := toText(&s)(value); err != nil {
				return err
			}
			out, err := checkValue(key, s)
			if err != nil {
				return at.errorf("%w", err)
			}
			*to = append(*to, line{key, out})
			return nil
		})
	}
}

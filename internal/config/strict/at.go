package strict

import (
	"fmt"
	"slices"

	"go.yaml.in/yaml/v3"
)

// At returns err as a mistake that a Checker found in a part of its section:
// the value at the steps given, each a key (string) or a position in a list
// (int). The mistake then has the path and the line of that part.
func At(err error, steps ...any) error { return &atError{err, steps} }

type atError struct {
	error
	steps []any
}

// Unwrap returns what is wrong, without where.
func (e *atError) Unwrap() error { return e.error }

// step returns the node below n and its path, and n itself where there is
// none: the value came from somewhere else than the file.
func step(n *yaml.Node, path string, to any) (*yaml.Node, string) {
	n = target(n)
	switch to := to.(type) {
	case int:
		path = fmt.Sprintf("%s[%d]", path, to)
		if n.Kind == yaml.SequenceNode && to >= 0 && to < len(n.Content) {
			return n.Content[to], path
		}
	case string:
		path = join(path, to)
		if n.Kind != yaml.MappingNode {
			break
		}
		for pair := range slices.Chunk(n.Content, 2) {
			if pair[0].Value == to {
				return pair[1], path
			}
		}
	default:
		panic(fmt.Sprintf("strict: step of type %T", to))
	}
	return n, path
}

package main

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
)

var reference = regexp.MustCompile(`\$\{([a-z_]*)\}`)

// expand replaces each ${name} in text by its value, in which further names
// may stand, and notes in used which names it met.
func (v values) expand(text string, used map[string]bool) (string, error) {
	const maxDepth = 4
	for range maxDepth {
		var unknown []string
		text = reference.ReplaceAllStringFunc(text, func(ref string) string {
			name := ref[2 : len(ref)-1]
			value, ok := v[name]
			if !ok {
				unknown = append(unknown, ref)
				return ref
			}
			used[name] = true
			return value
		})
		if len(unknown) > 0 {
			return "", fmt.Errorf("no value for %s", strings.Join(unknown, ", "))
		}
		if !reference.MatchString(text) {
			return text, nil
		}
	}
	return "", fmt.Errorf("values of %q name each other", reference.FindString(text))
}

// unused returns the names that no template mentions.
func (v values) unused(used map[string]bool) []string {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(v)), func(name string) bool { return used[name] })
}

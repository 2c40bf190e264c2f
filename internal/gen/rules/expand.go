package main

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"github.com/prometheus/common/model"
)

var reference = regexp.MustCompile(`\$\{([a-z_]*)\}`)

// expand replaces each ${name} in text by its value, in which further names
// may stand, and notes in used which names it met.
func (v values) expand(text string, used map[string]bool) (string, error) {
	const maxDepth = 4
	for range maxDepth {
		var unknown []string
		var bad error
		text = reference.ReplaceAllStringFunc(text, func(ref string) string {
			name := ref[2 : len(ref)-1]
			value, ok := v[name]
			if !ok {
				unknown = append(unknown, ref)
				return ref
			}
			used[name] = true
			if i := strings.IndexFunc(value, control); i >= 0 && bad == nil {
				bad = fmt.Errorf("the value of %s holds %q; accepted are printable characters and line feeds", name, []rune(value[i:])[0])
			}
			return value
		})
		if bad != nil {
			return "", bad
		}
		if len(unknown) > 0 {
			return "", fmt.Errorf("no value for %s", strings.Join(unknown, ", "))
		}
		if !reference.MatchString(text) {
			return text, nil
		}
	}
	return "", fmt.Errorf("values of %q name each other", reference.FindString(text))
}

// control finds what YAML's encoder writes and its decoder refuses: a line of
// nothing but a tab.
func control(r rune) bool { return unicode.IsControl(r) && r != '\n' }

// onceAndAHalf names, in the rules of a group, one and a half of its intervals:
// looking so far back finds what the evaluation before recorded, and nothing
// older.
const onceAndAHalf = "once_and_a_half"

// of returns the values with what there is in a group with that interval.
func (v values) of(interval string) (values, error) {
	if interval == "" {
		return v, nil
	}
	d, err := model.ParseDuration(interval)
	if err != nil {
		return nil, fmt.Errorf("interval: %w", err)
	}
	own := maps.Clone(v)
	own[onceAndAHalf] = (d + d/2).String()
	return own, nil
}

// unused returns the names that no template mentions.
func (v values) unused(used map[string]bool) []string {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(v)), func(name string) bool { return used[name] })
}

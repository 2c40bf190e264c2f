package config

import (
	"errors"
	"fmt"
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"

	"github.com/accel-exporter/accel-exporter/collector"
	"github.com/accel-exporter/accel-exporter/internal/config/strict/wording"
)

// Families selects metric families by a name or by a regular expression
// (RE2) that must match the whole name.
type Families struct{ re *regexp.Regexp }

// ownFamilies are the exporter's own families that are not in the table and
// cannot be dropped.
var ownFamilies = []string{
	"accel_config_last_reload_successful",
	"accel_config_last_reload_success_timestamp_seconds",
}

// kept reports whether a family cannot be dropped: the families that distinguish
// "no fault" from "not observed".
func kept(name string) bool {
	return name == collector.DeviceUp.Name ||
		strings.HasPrefix(name, "accel_source_") || strings.HasPrefix(name, "accel_config_")
}

// UnmarshalText accepts a pattern that matches at least one family of the
// metric table and no family that is always served.
func (f *Families) UnmarshalText(b []byte) error {
	const longest = 1000
	text := string(b)
	if len(text) > longest {
		return fmt.Errorf("found %d characters; accepted is a pattern of at most %d", len(text), longest)
	}
	// Compiled on its own first: x)|(y is no expression, though it would be
	// one between the brackets.
	var bad *syntax.Error
	if _, err := regexp.Compile(text); errors.As(err, &bad) {
		return fmt.Errorf("found %s, which is no regular expression: %s: %s", wording.Quote(text), bad.Code, wording.Quote(bad.Expr))
	}
	re, err := regexp.Compile("^(?:" + text + ")$")
	if err != nil {
		return fmt.Errorf("found %s, which is no regular expression: %w", wording.Quote(text), err)
	}
	names := append([]string(nil), ownFamilies...)
	for _, m := range collector.Table() {
		names = append(names, m.Name)
	}
	matched := false
	for _, name := range names {
		if !re.MatchString(name) {
			continue
		}
		if kept(name) {
			return fmt.Errorf("found %s, which matches %s; accel_device_up, accel_source_* and accel_config_* are always served", wording.Quote(text), name)
		}
		matched = true
	}
	if !matched {
		return noFamily(text, names)
	}
	f.re = re
	return nil
}

func noFamily(text string, names []string) error {
	s := fmt.Sprintf("found %s, which matches no metric family", wording.Quote(text))
	near := wording.Nearest(text, names, 3)
	for _, name := range names {
		if len(near) < 3 && text != "" && strings.Contains(name, text) && !kept(name) && !slices.Contains(near, name) {
			near = append(near, name)
		}
	}
	if len(near) > 0 {
		s += "; similar names: " + strings.Join(near, ", ")
	} else {
		s += "; accepted are the names in docs/metrics.md and regular expressions that match one of them in full"
	}
	return errors.New(s)
}

// Match reports whether the family of that name is selected.
func (f Families) Match(name string) bool { return f.re != nil && f.re.MatchString(name) }

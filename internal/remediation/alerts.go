package remediation

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/accel-exporter/accel-exporter/internal/config/strict"
	"github.com/accel-exporter/accel-exporter/internal/config/strict/wording"
)

// checkAlerts rejects rules that can never apply: for an alert that does not exist, and
// after a rule that matches each of their alerts.
func (p *Policy) checkAlerts() error {
	known := append(slices.Clone(p.Alerts), p.shipped...)
	for i, r := range p.Rules {
		for _, name := range r.Match["alertname"].alternatives() {
			if !slices.ContainsFunc(known, name.MatchString) {
				found := name.inner()
				err := fmt.Errorf("found %q, which is no alert of this project; list your own in alerts", found)
				if like := wording.Nearest(found, known, 1); len(like) > 0 {
					err = fmt.Errorf("found %q, which is no alert of this project; did you mean %s? List your own in alerts", found, like[0])
				}
				return strict.At(err, "rules", i, "match", "alertname")
			}
		}
		for j, earlier := range p.Rules[:i] {
			if earlier.covers(&r) {
				return strict.At(fmt.Errorf("found a rule that never applies, because rules[%d] matches each of its alerts", j), "rules", i)
			}
		}
	}
	return nil
}

// covers reports whether each alert that o matches is matched by r, as far as the patterns
// show: each label of r has the same pattern in o, or matches each of its alternatives.
func (r *Rule) covers(o *Rule) bool {
	for label, pattern := range r.Match {
		other, ok := o.Match[label]
		if !ok || pattern.inner() != other.inner() && !pattern.matchesAll(other) {
			return false
		}
	}
	return true
}

// matchesAll reports whether p matches each alternative of o, which all are plain text.
func (p Pattern) matchesAll(o Pattern) bool {
	return !slices.ContainsFunc(o.alternatives(), func(a Pattern) bool {
		return regexp.QuoteMeta(a.inner()) != a.inner() || !p.MatchString(a.inner())
	})
}

// inner returns the pattern as it was written.
func (p Pattern) inner() string {
	return strings.TrimSuffix(strings.TrimPrefix(p.String(), "^(?:"), ")$")
}

// alternatives returns the parts of a|b|c, or the pattern itself if it has groups.
func (p Pattern) alternatives() (list []Pattern) {
	switch {
	case p.Regexp == nil:
		return nil
	case strings.ContainsAny(p.inner(), `()[]\`):
		return []Pattern{p}
	}
	for part := range strings.SplitSeq(p.inner(), "|") {
		var a Pattern
		if a.UnmarshalText([]byte(part)) == nil {
			list = append(list, a)
		}
	}
	return list
}

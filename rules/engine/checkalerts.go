package engine

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/common/model"
)

// checkAlerts compares the alerts that fire with those expected at a time.
func (t *unitTest) checkAlerts(e *Engine, at time.Duration) []error {
	var errs []error
	firing := map[string][]string{}
	for _, a := range e.Alerts() {
		if a.State == Firing {
			name := a.Labels[model.AlertNameLabel]
			firing[name] = append(firing[name], describe(a.Labels, a.Annotations))
		}
	}
	for _, test := range t.Alerts {
		if time.Duration(test.EvalTime) != at {
			continue
		}
		if test.Alertname == "" {
			errs = append(errs, fmt.Errorf("alert_rule_test at %s has no alertname", test.EvalTime))
			continue
		}
		var want []string
		for _, x := range test.Expected {
			labels := maps.Clone(x.Labels)
			if labels == nil {
				labels = map[string]string{}
			}
			labels[model.AlertNameLabel] = test.Alertname
			want = append(want, describe(labels, x.Annotations))
		}
		got := firing[test.Alertname]
		slices.Sort(want)
		slices.Sort(got)
		if !slices.Equal(want, got) {
			errs = append(errs, fmt.Errorf("alert %s at %s:\n%s", test.Alertname, test.EvalTime, difference(want, got)))
		}
	}
	return errs
}

// describe writes labels and annotations so that equal ones are equal texts.
func describe(labels, annotations map[string]string) string {
	write := func(m map[string]string) string {
		var parts []string
		for _, name := range slices.Sorted(maps.Keys(m)) {
			parts = append(parts, fmt.Sprintf("%s=%q", name, m[name]))
		}
		return strings.Join(parts, ", ")
	}
	return fmt.Sprintf("{%s} annotations {%s}", write(labels), write(annotations))
}

// difference says what of the expected is missing and what is there besides.
func difference(want, got []string) string {
	var b strings.Builder
	for _, w := range want {
		if !slices.Contains(got, w) {
			fmt.Fprintf(&b, "    expected %s\n", w)
		}
	}
	for _, g := range got {
		if !slices.Contains(want, g) {
			fmt.Fprintf(&b, "    found    %s\n", g)
		}
	}
	if b.Len() == 0 {
		fmt.Fprintf(&b, "    expected %d alerts, found %d, some of them the same\n", len(want), len(got))
	}
	return strings.TrimSuffix(b.String(), "\n")
}

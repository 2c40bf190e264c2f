package health

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/accel-exporter/accel-exporter/collector"
	"github.com/accel-exporter/accel-exporter/internal/config/strict/wording"
)

// Condition is a test of readings that makes a device degraded or failed. In a
// file that overrides the catalogue, a condition without a family changes the
// severity, action, duration or text of a known condition; a condition with a
// family replaces it.
type Condition struct {
	// Reason is the reason code.
	Reason string `yaml:"reason"`
	// Family is the metric whose readings are tested.
	Family string `yaml:"family"`
	// Where selects readings by the values of their labels, Not excludes some.
	Where map[string][]string `yaml:"where"`
	Not   map[string][]string `yaml:"not"`
	// Test is true for a reading that is equal to, above or below Value; grows is
	// true for Lasts after the sum of the readings has grown.
	Test  string  `yaml:"test" accept:"is|above|below|grows"`
	Value float64 `yaml:"value" accept:"-1e15..1e15"`
	// Than is a family whose readings replace Value.
	Than      string              `yaml:"than"`
	ThanWhere map[string][]string `yaml:"than_where"`
	// On are the labels that pair the two families; empty means all common
	// labels. A reading with several partners must match with each.
	On []string `yaml:"on"`
	// For is how long the test must have been true.
	For   time.Duration `yaml:"for" accept:"1s..168h"`
	Lasts time.Duration `yaml:"lasts" accept:"1s..168h"`
	// Unless all: true only if the test is, or was, false for another reading. A
	// board whose links are all unused has lost none. Unless any: true only if the
	// test is true for every reading.
	Unless string `yaml:"unless" accept:"all|any"`
	// Peers: true only on a node with another device of the class and vendor.
	Peers bool `yaml:"peers"`
	// Kind is collector.ReasonLimit, collector.ReasonThrottling or empty.
	Kind string `yaml:"kind" accept:"limit|throttling"`
	// Show are labels whose values the text of the reason includes.
	Show     []string `yaml:"show"`
	Text     string   `yaml:"text"`
	Severity Severity `yaml:"severity"`
	Action   Action   `yaml:"action"`
	From     []string `yaml:"from"`
}

// Check rejects a condition that is neither a change nor complete.
func (c *Condition) Check() error {
	if !token.MatchString(c.Reason) {
		return fmt.Errorf("found reason %s; accepted is lower snake case", wording.Quote(c.Reason))
	}
	for _, taken := range reserved {
		if strings.HasPrefix(c.Reason, taken) {
			return fmt.Errorf("found reason %s; accepted is one that does not begin with %s", wording.Quote(c.Reason), taken)
		}
	}
	if c.Family != "" {
		return c.checkWhole()
	}
	if c.Test != "" || c.Value != 0 || c.Than != "" || c.Where != nil || c.Not != nil || c.ThanWhere != nil || c.On != nil || c.Unless != "" || c.Peers || c.Show != nil {
		return errors.New("found a test without a family; accepted is a family with its whole test, or neither")
	}
	if _, known := builtin().condition(c.Reason); !known {
		return fmt.Errorf("found no family for %s, which is not in the catalogue; accepted is a family with its test", c.Reason)
	}
	return checkWords("", c.Text)
}

// reserved are the prefixes of reasons that are not conditions.
var reserved = []string{"xid_", "sxid_", "event_", "recovery_action_", "nobody_"}

func (c *Condition) checkWhole() error {
	switch {
	case c.Test == "":
		return errors.New("found no test; accepted is one of is, above, below, grows")
	case c.Severity == unset || c.Action == unsetAction:
		return errors.New("found a family without severity or action; accepted are both")
	case (c.Test == "grows") != (c.Lasts > 0):
		return errors.New("found lasts without the test grows, or the reverse; accepted are both or neither")
	case c.Test == "grows" && (c.Value != 0 || c.Than != "" || c.For > 0 || c.Unless != ""):
		return errors.New("found more than lasts for the test grows; accepted are where, not and lasts")
	case c.Than != "" && c.Value != 0:
		return errors.New("found value and than; accepted is one of them")
	case c.Than == "" && (c.ThanWhere != nil || c.On != nil):
		return errors.New("found than_where or on without than; accepted is neither")
	}
	if _, err := compile(c); err != nil {
		return err
	}
	return checkWords("", c.Text)
}

// matcher selects readings by one label.
type matcher struct {
	at     int // index of the label
	values []string
	not    bool
}

// test is a Condition compiled against the metric table.
type test struct {
	*Condition
	metric, than         *collector.Metric
	where, thanWhere     []matcher
	common               [][2]int // positions of the labels that metric and than share
	show                 []int
	index                int // among the catalogue's conditions
	isAbove, isIs, grows bool
}

// compile compiles c. It rejects families and labels that are not in the table.
func compile(c *Condition) (*test, error) {
	t := &test{Condition: c, isAbove: c.Test == "above", isIs: c.Test == "is", grows: c.Test == "grows"}
	var err error
	if t.metric, err = family(c.Family); err != nil {
		return nil, err
	}
	if t.where, err = matchers(t.metric, c.Where, c.Not); err != nil {
		return nil, err
	}
	for _, l := range c.Show {
		at := slices.Index(t.metric.Labels, l)
		if at < 0 {
			return nil, fmt.Errorf("found label %s, which %s does not have; accepted are %s", wording.Quote(l), c.Family, strings.Join(t.metric.Labels, ", "))
		}
		t.show = append(t.show, at)
	}
	if c.Than == "" {
		return t, nil
	}
	if t.than, err = family(c.Than); err != nil {
		return nil, err
	}
	for i, l := range t.metric.Labels {
		at := slices.Index(t.than.Labels, l)
		if at >= 0 && (c.On == nil || slices.Contains(c.On, l)) {
			t.common = append(t.common, [2]int{i, at})
		}
	}
	if len(t.common) < len(c.On) {
		return nil, fmt.Errorf("found on %s; accepted are labels of both %s and %s", strings.Join(c.On, ", "), c.Family, c.Than)
	}
	t.thanWhere, err = matchers(t.than, c.ThanWhere, nil)
	return t, err
}

// family returns the row of a family of devices.
func family(name string) (*collector.Metric, error) {
	for _, m := range collector.Table() {
		if m.Name != name {
			continue
		}
		if m.Scope != collector.PerDevice || m.Kind == collector.Histogram || m.Kind == collector.Info {
			return nil, fmt.Errorf("found family %s; accepted is a gauge or counter of devices", name)
		}
		return m, nil
	}
	return nil, fmt.Errorf("found family %s; accepted is one of docs/metrics.md", wording.Quote(name))
}

func matchers(m *collector.Metric, where, not map[string][]string) ([]matcher, error) {
	var out []matcher
	for _, side := range []map[string][]string{where, not} {
		for label, values := range side {
			at := slices.Index(m.Labels, label)
			if at < 0 {
				return nil, fmt.Errorf("found label %s, which %s does not have; accepted are %s", wording.Quote(label), m.Name, strings.Join(m.Labels, ", "))
			}
			out = append(out, matcher{at: at, values: values})
		}
	}
	for i := len(where); i < len(out); i++ {
		out[i].not = true
	}
	return out, nil
}

func selects(ms []matcher, labels []string) bool {
	for i := range ms {
		m := &ms[i]
		if m.at >= len(labels) || slices.Contains(m.values, labels[m.at]) == m.not {
			return false
		}
	}
	return true
}

// matches reports whether v matches the test with the given limit.
func (t *test) matches(v, limit float64) bool {
	switch {
	case t.isIs:
		return v == limit
	case t.isAbove:
		return v > limit
	}
	return v < limit
}

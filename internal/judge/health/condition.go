package health

import (
	"slices"
	"strings"
	"time"

	"github.com/accel-exporter/accel-exporter/collector"
)

// Condition is a test of readings that makes a device degraded or failed.
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
	fpga                 bool // of FPGAs alone
}

// compile compiles c against the metric table. It panics on a family or a label that
// is not in the table: conditions are embedded.
func compile(c *Condition) *test {
	t := &test{Condition: c, metric: family(c.Family), isAbove: c.Test == "above", isIs: c.Test == "is", grows: c.Test == "grows", fpga: strings.HasPrefix(c.Reason, "fpga_")}
	t.where = append(matchers(t.metric, c.Where, false), matchers(t.metric, c.Not, true)...)
	for _, l := range c.Show {
		t.show = append(t.show, position(t.metric, l))
	}
	if c.Than == "" {
		return t
	}
	t.than = family(c.Than)
	for i, l := range t.metric.Labels {
		at := slices.Index(t.than.Labels, l)
		if at >= 0 && (c.On == nil || slices.Contains(c.On, l)) {
			t.common = append(t.common, [2]int{i, at})
		}
	}
	t.thanWhere = matchers(t.than, c.ThanWhere, false)
	return t
}

// family returns the row of a family of devices.
func family(name string) *collector.Metric {
	all := collector.Table()
	return all[slices.IndexFunc(all, func(m *collector.Metric) bool { return m.Name == name && m.Scope == collector.PerDevice })]
}

// position returns the position of a label.
func position(m *collector.Metric, label string) int {
	at := slices.Index(m.Labels, label)
	if at < 0 {
		panic("health: " + m.Name + " has no label " + label)
	}
	return at
}

func matchers(m *collector.Metric, by map[string][]string, not bool) (out []matcher) {
	for label, values := range by {
		out = append(out, matcher{at: position(m, label), values: values, not: not})
	}
	return out
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

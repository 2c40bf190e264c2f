package health_test

import (
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/common/model"

	"github.com/accel-exporter/accel-exporter/collector"
	"github.com/accel-exporter/accel-exporter/internal/golden"
	"github.com/accel-exporter/accel-exporter/internal/judge/health"
)

const (
	page    = "../../../docs/health.md"
	chapter = "## Catalogue\n\n"
)

// tables returns the chapters of the page that are generated from the catalogue.
func tables(c *health.Catalogue) string {
	var b strings.Builder
	entries := c.Entries()
	for _, l := range []struct {
		title, intro, key string
		contains          func(e *health.Entry) bool
	}{
		{"Xids", "Numbers that are not here are reserved, or newer than the catalogue.", "Xid", func(e *health.Entry) bool { return kind(e) == collector.EventXid && e.Sub == "" }},
		{"NVLink 5", "Sub-codes of Xids 144 to 150, by the `Sub` of the event: the unit, and its error or reason.", "Xid, sub-code", func(e *health.Entry) bool { return kind(e) == collector.EventXid && e.Sub != "" }},
		{"SXids", "Of NVSwitches, by the PCI address of the switch.", "SXid", func(e *health.Entry) bool { return kind(e) == collector.EventSXid }},
		{"Other events", "", "event", func(e *health.Entry) bool { return e.Event != "" }},
	} {
		fmt.Fprintf(&b, "### %s\n\n", l.title)
		if l.intro != "" {
			b.WriteString(l.intro + "\n\n")
		}
		fmt.Fprintf(&b, "| %s | name | what happened | part | whose fault | state | action | ends | from |\n|---|---|---|---|---|---|---|---|---|\n", l.key)
		for i := range entries {
			if e := &entries[i]; l.contains(e) {
				fmt.Fprintf(&b, "| %s | %s | %s | %s | %s | %s | %s | %s | %s |\n", key(e), e.Name, e.Text, e.Class, strings.ReplaceAll(e.Fault, "_", " "), state(e), e.Action, ends(e), strings.Join(e.From, ", "))
			}
		}
		b.WriteString("\n")
	}
	b.WriteString("### Conditions\n\n| reason | condition | state | action | from |\n|---|---|---|---|---|\n")
	for _, cond := range c.Conditions() {
		fmt.Fprintf(&b, "| %s | %s: %s | %s | %s | %s |\n", cond.Reason, cond.Text, test(&cond), cond.Severity, cond.Action, strings.Join(cond.From, ", "))
	}
	b.WriteString("\n### Sources\n\n")
	for _, k := range slices.Sorted(maps.Keys(c.Sources)) {
		fmt.Fprintf(&b, "- %s: %s\n", k, c.Sources[k])
	}
	return b.String()
}

// kind distinguishes Xids from SXids, which have five digits.
func kind(e *health.Entry) collector.EventKind {
	switch {
	case e.Event != "":
		return collector.EventKind(e.Event)
	case e.Code >= 10_000:
		return collector.EventSXid
	}
	return collector.EventXid
}

func key(e *health.Entry) string {
	switch {
	case e.Sub != "" && e.Event == "":
		return fmt.Sprintf("%d `%s`", e.Code, e.Sub)
	case e.Sub != "":
		return fmt.Sprintf("%s `%s`", e.Event, e.Sub)
	case e.Event != "":
		return e.Event
	}
	return fmt.Sprint(e.Code)
}

// state is the severity of an entry, and when it applies.
func state(e *health.Entry) string {
	if e.Grace == 0 {
		return e.Severity.String()
	}
	return "degraded, after " + model.Duration(e.Grace).String() + " " + e.Severity.String()
}

// ends describes when the effect of an entry ends.
func ends(e *health.Entry) string {
	if e.As != 0 {
		return fmt.Sprintf("as Xid %d", e.As)
	}
	if e.Severity == health.None {
		return ""
	}
	s := model.Duration(e.Ends.After).String()
	switch {
	case e.Ends.Reset:
		s = "reset"
	case e.Ends.Load:
		s = "load"
	case e.Ends.Answer:
		s = "answer"
	}
	if len(e.While) > 0 {
		s += ", or no " + strings.Join(e.While, ", ")
	}
	if e.Rules == "driver" && e.Severity == health.Failed {
		s += "; the driver overrules"
	}
	return s
}

// test is a condition in the manner of PromQL.
func test(c *health.Condition) string {
	var sel []string
	for _, label := range slices.Sorted(maps.Keys(c.Where)) {
		sel = append(sel, selector(label, c.Where[label], "=", "=~"))
	}
	for _, label := range slices.Sorted(maps.Keys(c.Not)) {
		sel = append(sel, selector(label, c.Not[label], "!=", "!~"))
	}
	s := c.Family
	if len(sel) > 0 {
		s += "{" + strings.Join(sel, ",") + "}"
	}
	op := map[string]string{"is": " == ", "above": " > ", "below": " < ", "grows": " grew within "}[c.Test]
	switch {
	case c.Test == "grows":
		s += op + model.Duration(c.Lasts).String()
	case c.Than != "":
		s += op + c.Than
		for label, values := range c.ThanWhere {
			s += "{" + selector(label, values, "=", "=~") + "}"
		}
	default:
		s += fmt.Sprintf("%s%g", op, c.Value)
	}
	if c.For > 0 {
		s += " for " + model.Duration(c.For).String()
	}
	s = "`" + strings.ReplaceAll(s, "|", "\\|") + "`"
	s += map[string]string{"all": ", and not of all", "any": ", of all"}[c.Unless]
	if c.Peers {
		s += ", on a node with another such device"
	}
	return s
}

func selector(label string, values []string, one, many string) string {
	if len(values) == 1 {
		return fmt.Sprintf("%s%s%q", label, one, values[0])
	}
	return fmt.Sprintf("%s%s%q", label, many, strings.Join(values, "|"))
}

func readPage(t *testing.T) string {
	t.Helper()
	data, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// TestPage: the chapters that are generated from the catalogue are current.
func TestPage(t *testing.T) {
	head, _, found := strings.Cut(readPage(t), chapter)
	if !found {
		t.Fatalf("%s has no chapter %s", page, chapter)
	}
	want := head + chapter + tables(health.Builtin())
	golden.Compare(t, page, want)
}

// TestPageExample: the example of an override is valid and has the described effect.
func TestPageExample(t *testing.T) {
	m := regexp.MustCompile("(?s)```yaml\n(.*?)```").FindStringSubmatch(readPage(t))
	if m == nil {
		t.Fatal("no example")
	}
	c, err := health.Parse("example", []byte(m[1]))
	if err != nil {
		t.Fatal(err)
	}
	if got := judged(c, news(xid(31), xid(777)), set(collector.ThrottleActive, 1, "sw_thermal")); got != "degraded inspect xid_31 slow_clock" {
		t.Error(got)
	}
}

// TestPageActions: the page lists every action in ascending order.
func TestPageActions(t *testing.T) {
	s := snapshot(start, nil, gpu(start))
	health.New(health.Builtin(), health.Options{}).Judge(s)
	_, rest, _ := strings.Cut(readPage(t), "## Actions")
	for _, r := range s.Devices[0].Readings {
		if r.Metric != collector.DeviceAction {
			continue
		}
		var found bool
		if _, rest, found = strings.Cut(rest, "\n| `"+r.Labels[0]+"` |"); !found {
			t.Errorf("action %s is missing or not in order", r.Labels[0])
		}
	}
}

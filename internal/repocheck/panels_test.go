package repocheck

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var (
	alertState   = regexp.MustCompile(`^ALERTS\{[^}]*\}$`)
	fixedJob     = regexp.MustCompile(`\bjob(=|=~)"[^$"]`)
	summedMean   = regexp.MustCompile(`\bsum( by \([^)]*\))? ?\(avg_over_time\(`)
	severalSteps = regexp.MustCompile(`\b(increase|rate)\(`)
	statusColour = regexp.MustCompile(`^(super-light-|light-|semi-dark-|dark-)?(red|orange|green|yellow)$|^palette-|^continuous-|^thresholds$`)
	hiddenValue  = regexp.MustCompile(`"hideValue": ?true`)
	rowField     = regexp.MustCompile(`__data\.fields\.(\w+)`)
)

// traps returns what Grafana draws differently from what the panel means. Each is a
// defect that was seen in Grafana.
func (p grafanaPanel) traps() []string {
	var out []string
	trap := func(is bool, text string, args ...any) {
		if is {
			out = append(out, fmt.Sprintf(text, args...))
		}
	}
	d := p.FieldConfig.Defaults
	has := func(id string) bool {
		return slices.ContainsFunc(p.Transformations, func(t grafanaStep) bool { return t.ID == id })
	}
	// On a screen of 1366 pixels a column of 24 has room for eight characters.
	trap(len(p.Title) > 8*p.GridPos.W-8, "the title is cut at a width of %d", p.GridPos.W)
	for _, q := range p.Targets {
		trap(fixedJob.MatchString(q.Expr), "a fixed job: %s", q.Expr)
		trap(summedMean.MatchString(q.Expr), "a sum of means over different times: %s", q.Expr)
		trap(q.Range && q.Interval != "$scrape", "its step may be less than the scrape interval")
		trap(p.Type == "table" && q.Range && !(has("timeSeriesTable") && strings.HasPrefix(q.Expr, "max by (scope, host, device) (")), "lines of a table whose series may lack a label get the labels of others: %s", q.Expr)
		trap(d.Custom.DrawStyle == "bars" && severalSteps.MatchString(q.Expr), "one event is in several bars: %s", q.Expr)
	}
	switch p.Type {
	case "state-timeline":
		trap(d.Color.Mode == "thresholds", "coloured by thresholds, which drops the words and colours of its states")
		trap(!has("filterFieldsByName"), "without data it shows an error and not its text")
	case "stat", "bargauge":
		trap(!neutralWithoutData(d.Mappings), "no data has the colour of a value")
		trap(p.Type == "bargauge" && p.Options.Sizing != "manual", "its bars fill the panel")
	case "timeseries":
		trap(statusColour.MatchString(d.Color.Mode) || statusColour.MatchString(d.Color.FixedColor), "series may have the colour of a state")
		trap((d.Unit == "percentunit" || d.Unit == "none") && d.Max == nil && d.Custom.AxisSoftMax == nil, "a line at 0 has an axis to 100, or 10,000 %%")
	case "table":
		matrix := has("groupingToMatrix")
		trap(d.Custom.Filterable, "icons of filters cut the headers")
		trap(!matrix && len(p.Options.SortBy) == 0, "the order of its rows is random")
		trap(!matrix && !has("groupBy"), "without data it shows its header and not its text")
	}
	for _, t := range p.Transformations {
		trap(t.ID == "timeSeriesTable" && t.Filter.ID != "byRefId", "an answer of one row becomes a line")
	}
	for _, l := range d.Links {
		trap(losesCluster(l.URL), "a link without the cluster: %s", l.URL)
	}
	linked := map[string]bool{}
	for _, o := range p.FieldConfig.Overrides {
		for _, c := range o.Properties {
			var links []struct{ URL string }
			if c.ID == "links" && json.Unmarshal(c.Value, &links) == nil {
				for _, l := range links {
					trap(losesCluster(l.URL), "a link without the cluster: %s", l.URL)
					for _, m := range rowField.FindAllStringSubmatch(l.URL, -1) {
						linked[m[1]] = true
					}
				}
			}
		}
	}
	for _, q := range p.Targets {
		trap(linked["Scope"] && !strings.Contains(q.Expr, `"scope"`), "the query has no scope for its links: %s", q.Expr)
	}
	for _, o := range p.FieldConfig.Overrides {
		var coloured, neutral bool
		for _, c := range o.Properties {
			var colour grafanaColour
			var mappings []grafanaMapping
			switch c.ID {
			case "color":
				_ = json.Unmarshal(c.Value, &colour)
				trap(o.Matcher.ID != "byName" && statusColour.MatchString(colour.FixedColor), "series %s have the colour of a state", o.Matcher.Options)
			case "custom.cellOptions":
				trap(strings.Contains(string(c.Value), `"sparkline"`) && !hiddenValue.Match(c.Value), "the value of %s is missing where it is 0", o.Matcher.Options)
			case "thresholds":
				coloured = true
			case "mappings":
				_ = json.Unmarshal(c.Value, &mappings)
				neutral = neutralWithoutData(mappings)
			case "noValue":
				trap(linked[o.Matcher.Options] && string(c.Value) != `""`, "an empty %s is %s in a link", o.Matcher.Options, c.Value)
			}
		}
		trap(coloured && !neutral, "an empty %s has the colour of a value", o.Matcher.Options)
	}
	return out
}

func neutralWithoutData(mappings []grafanaMapping) bool {
	return slices.ContainsFunc(mappings, func(m grafanaMapping) bool { return m.Type == "special" && m.Options.Match == "null+nan" })
}

// losesCluster: the cluster of a row is in the row; that of a dashboard is its
// choice.
func losesCluster(url string) bool {
	if !strings.HasPrefix(url, "/d/") {
		return false
	}
	if strings.Contains(url, "__data.fields") {
		return !strings.Contains(url, "var-cluster=${__data.fields.")
	}
	return !strings.Contains(url, "${cluster:queryparam}")
}

// TestDashboardTraps: no panel and no annotation is one that Grafana is known to draw
// in a misleading way.
func TestDashboardTraps(t *testing.T) {
	for name, b := range loadBoards(t) {
		for _, a := range b.Annotations.List {
			if alertState.MatchString(a.Expr) {
				t.Errorf("%s: annotation %s is a state, which covers the charts, and not a start", name, a.Name)
			}
			if fixedJob.MatchString(a.Expr) {
				t.Errorf("%s: annotation %s: a fixed job", name, a.Name)
			}
		}
		for _, p := range b.panels() {
			for _, trap := range p.traps() {
				t.Errorf("%s: %s: %s", name, p.Title, trap)
			}
		}
	}
}

// clickPath is the links by which a person follows a fault and returns, and the variables
// that each must keep. Of a runbook there are none.
var clickPath = []struct{ from, to, keeps string }{
	{"accel-fleet", "accel-node", "cluster node"},
	{"accel-fleet", "accel-device", "cluster node device"},
	{"accel-fleet", "accel-workload", "cluster namespace"},
	{"accel-fleet", "runbooks", ""},
	{"accel-node", "accel-device", "cluster node device"},
	{"accel-node", "accel-workload", "cluster namespace pod"},
	{"accel-node", "runbooks", ""},
	{"accel-node", "accel-fleet", "back"},
	{"accel-device", "accel-workload", "cluster namespace pod"},
	{"accel-device", "runbooks", ""},
	{"accel-device", "accel-node", "back"},
	{"accel-workload", "accel-device", "cluster node device"},
	{"accel-workload", "runbooks", ""},
	{"accel-workload", "accel-fleet", "back"},
	{"accel-fpga", "accel-device", "cluster node device"},
	{"accel-exporter", "accel-node", "cluster node"},
}

// TestDashboardPath: each step of the path is a link of a panel, or back, of the
// dashboard; TestDashboardLinks checks that the target has the variables.
func TestDashboardPath(t *testing.T) {
	boards := loadBoards(t)
	for _, step := range clickPath {
		found := false
		for _, m := range regexp.MustCompile(`"includeVars": (\w+),[^}]*?"url": "([^"]*)"|"url": "([^"]*)"`).FindAllStringSubmatch(boards[step.from].text, -1) {
			back, url := m[1] == "true", m[2]+m[3]
			switch {
			case step.keeps == "":
				found = found || strings.HasSuffix(url, "docs/runbooks/${__value.raw}.md")
			case step.keeps == "back":
				found = found || back && url == "/d/"+step.to
			case strings.HasPrefix(url, "/d/"+step.to+"?"):
				kept := true
				for _, v := range strings.Fields(step.keeps) {
					kept = kept && (strings.Contains(url, "var-"+v+"=") || strings.Contains(url, "{"+v+":queryparam}"))
				}
				found = found || kept
			}
		}
		if !found {
			t.Errorf("%s has no link to %s that keeps %q", step.from, step.to, step.keeps)
		}
	}
}

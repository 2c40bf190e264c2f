package differential

import (
	"fmt"
	"math/rand/v2"
	"strings"
)

// grammar makes expressions, rules and groups.
type grammar struct {
	r *rand.Rand
	// records and alerts are the names of the rules made so far, which later
	// ones read.
	records, alerts []string
	// made are the rules by name and expression: the engine refuses a rule that
	// is there twice.
	made map[string]bool
}

// vector is an expression that yields an instant vector.
func (g *grammar) vector(depth int) string {
	r := g.r
	if depth == 0 {
		return g.selector()
	}
	sub := func() string { return g.vector(depth - 1) }
	switch r.IntN(20) {
	case 0, 1, 2:
		return fmt.Sprintf("%s(%s)", oneOf(r, "rate", "increase", "delta", "changes", "resets", "irate", "idelta", "max_over_time", "min_over_time", "avg_over_time",
			"sum_over_time", "count_over_time", "last_over_time", "present_over_time", "stddev_over_time", "deriv"), g.span(depth))
	case 3:
		return oneOf(r, fmt.Sprintf("quantile_over_time(0.9, %s)", g.span(depth)), fmt.Sprintf("predict_linear(%s, 60)", g.span(depth)))
	case 4, 5:
		return fmt.Sprintf("%s%s (%s)", oneOf(r, "sum", "min", "max", "avg", "count", "group", "stddev"), g.by(), sub())
	case 6:
		return oneOf(r, fmt.Sprintf("quantile%s (0.5, %s)", g.by(), sub()), fmt.Sprintf(`count_values%s ("v", %s)`, g.by(), sub()))
	case 7, 8, 9:
		return fmt.Sprintf("(%s) %s %s", sub(), g.compare(), g.number())
	case 10:
		return fmt.Sprintf("%s %s (%s)", g.number(), oneOf(r, "-", "*", "+", "/", ">", "<= bool"), sub())
	case 11:
		return fmt.Sprintf("(%s) %s%s (%s)", sub(), oneOf(r, "+", "-", "*", "/", ">", "== bool", "%"), g.on(), sub())
	case 12:
		return fmt.Sprintf("(%s) * on (device) group_left (x) max by (device, x) (%s)", sub(), sub())
	case 13, 14:
		if chance(r, 20) { // one side yields nothing, the other may fail
			return fmt.Sprintf("nowhere %s (%s * on (device) %s)", oneOf(r, "and on (device)", "unless", "+ on ()", "or"), name(r), name(r))
		}
		return fmt.Sprintf("(%s) %s%s (%s)", sub(), oneOf(r, "and", "or", "unless"), g.on(), sub())
	case 15:
		return oneOf(r, fmt.Sprintf("absent(%s)", g.selector()), fmt.Sprintf("absent_over_time(%s[%s])", g.plain(), g.window()), fmt.Sprintf("absent(%s)", sub()))
	case 16:
		return oneOf(r, fmt.Sprintf("time() - (%s)", sub()), fmt.Sprintf("vector(scalar(%s))", sub()), fmt.Sprintf("timestamp(%s)", g.selector()), "vector(time() % 60)",
			fmt.Sprintf("(%s) + scalar(%s)", sub(), sub()), fmt.Sprintf("minute(%s) * 0 + %s", sub(), g.number()))
	case 17:
		return oneOf(r, fmt.Sprintf(`label_replace(%s, "y", "$1", "device", "d(.*)")`, sub()), fmt.Sprintf(`label_replace(%s, "device", "", "", "")`, sub()),
			fmt.Sprintf(`label_join(%s, "y", "-", "device", "x")`, sub()))
	case 18:
		return fmt.Sprintf("histogram_quantile(0.9, sum by (le, device) (%s(latency_seconds_bucket%s[%s])))", oneOf(r, "rate", "increase"), matcher(r), g.window())
	default:
		return fmt.Sprintf("%s(%s)", oneOf(r, "abs", "ceil", "floor", "round", "sgn", "-", "sort", "sort_desc"), sub())
	}
}

// plain is a selector without offset.
func (g *grammar) plain() string {
	r := g.r
	switch {
	case len(g.records) > 0 && chance(r, 30):
		return oneOf(r, g.records...) + matcher(r)
	case len(g.alerts) > 0 && chance(r, 20):
		if chance(r, 30) {
			return fmt.Sprintf("ALERTS_FOR_STATE{alertname=%q}", oneOf(r, g.alerts...))
		}
		return fmt.Sprintf("ALERTS{alertname=%q,alertstate=%q}", oneOf(r, g.alerts...), oneOf(r, "firing", "pending"))
	case chance(r, 10):
		return "nowhere" + matcher(r)
	case chance(r, 5):
		return fmt.Sprintf(`{__name__=~"%s"}`, oneOf(r, "temp|util", "errors.*", "a.*|s.+e"))
	case chance(r, 8):
		return oneOf(r, "latency_seconds_count", "latency_seconds_sum", `latency_seconds_bucket{le="0.5"}`, `latency_seconds_bucket{le="1.0"}`, `latency_seconds_bucket{le="+Inf"}`,
			"size_bytes", `size_bytes{quantile="1.0"}`, "size_bytes_sum", "size_bytes_count")
	}
	return name(r) + matcher(r)
}

func (g *grammar) selector() string {
	s := g.plain()
	if chance(g.r, 12) {
		s += " offset " + oneOf(g.r, "15s", "30s", "1m", "4m", "10m", "7s", "-30s")
	}
	if chance(g.r, 4) {
		s += oneOf(g.r, " @ end()", " @ start()")
	}
	return s
}

// span is a range of selector or subquery.
func (g *grammar) span(depth int) string {
	if chance(g.r, 20) {
		return fmt.Sprintf("(%s)[%s:%s]%s", g.vector(depth-1), g.window(), oneOf(g.r, "", "10s", "15s", "30s", "1m"), oneOf(g.r, "", "", " offset 1m"))
	}
	return fmt.Sprintf("%s[%s]%s", g.plain(), g.window(), oneOf(g.r, "", "", "", "", "", " offset 1m", " offset 1m", " offset 20s", " @ end()"))
}

func (g *grammar) window() string {
	return oneOf(g.r, "20s", "30s", "1m", "1m", "2m", "2m", "5m", "10m", "17s", "1500ms")
}

func (g *grammar) number() string { return oneOf(g.r, "0", "0", "1", "2", "50", "90", "0.1", "-1") }

func (g *grammar) compare() string { return oneOf(g.r, ">", ">=", "<", "==", "!=", "> bool") }

func (g *grammar) by() string {
	return oneOf(g.r, "", " by (device)", " by (device, x)", " without (x, job)", " by (instance)", " by (device, nothing)")
}

func (g *grammar) on() string {
	return oneOf(g.r, "", " on (device)", " on (device)", " on ()", " ignoring (x)", " on (device, instance)")
}

func newGrammar(r *rand.Rand) *grammar { return &grammar{r: r, made: map[string]bool{}} }

// file makes a rule file of a few groups that read each other.
func (g *grammar) file() string {
	var b strings.Builder
	b.WriteString("groups:\n")
	for i := range 1 + g.r.IntN(3) {
		fmt.Fprintf(&b, "- name: g%d\n", i)
		if chance(g.r, 30) {
			fmt.Fprintf(&b, "  interval: %s\n", oneOf(g.r, "15s", "30s", "1m", "5s", "40s"))
		}
		if chance(g.r, 10) {
			fmt.Fprintf(&b, "  limit: %d\n", g.r.IntN(4))
		}
		if chance(g.r, 20) {
			b.WriteString("  labels: {team: core, severity: none}\n")
		}
		b.WriteString("  rules:\n")
		for range 1 + g.r.IntN(5) {
			if chance(g.r, 40) {
				g.record(&b)
			} else {
				g.alert(&b)
			}
		}
	}
	return b.String()
}

// expr is an expression that no rule of that name has yet.
func (g *grammar) expr(name string) string {
	for {
		expr := g.vector(oneOf(g.r, 0, 1, 1, 2, 2, 3))
		if key := name + " " + expr; !g.made[key] {
			g.made[key] = true
			return expr
		}
	}
}

func (g *grammar) record(b *strings.Builder) {
	// A name twice is two rules that write to it, or a rule that writes to
	// what it reads, or to what the page has.
	name := fmt.Sprintf("r%d", len(g.records))
	switch {
	case len(g.records) > 0 && chance(g.r, 10):
		name = oneOf(g.r, g.records...)
	case !g.made["temp"] && chance(g.r, 3):
		name = "temp"
		g.made[name] = true
		// A series of the page is stored if a rule reads it.
		b.WriteString("  - record: r_temp\n    expr: count(temp)\n")
	}
	g.records = append(g.records, name) // it may read what it wrote before
	fmt.Fprintf(b, "  - record: %s\n    expr: %q\n", name, g.expr(name))
	if chance(g.r, 30) {
		fmt.Fprintf(b, "    labels: {%s}\n", oneOf(g.r, "device: d0", "made: by_rule", `device: ""`, `instance: elsewhere`))
	}
}

func (g *grammar) alert(b *strings.Builder) {
	r := g.r
	name := fmt.Sprintf("A%d", len(g.alerts))
	if len(g.alerts) > 0 && chance(r, 10) {
		name = oneOf(r, g.alerts...)
	}
	g.alerts = append(g.alerts, name)
	fmt.Fprintf(b, "  - alert: %s\n    expr: %q\n", name, g.expr(name))
	if chance(r, 60) {
		fmt.Fprintf(b, "    for: %s\n", oneOf(r, "0s", "1s", "15s", "30s", "45s", "1m", "100s", "3m"))
	}
	if chance(r, 40) {
		fmt.Fprintf(b, "    keep_firing_for: %s\n", oneOf(r, "0s", "15s", "30s", "1m", "100s", "5m"))
	}
	if chance(r, 40) {
		fmt.Fprintf(b, "    labels: {severity: warning, %s}\n", oneOf(r,
			`level: '{{ if gt $value 50.0 }}high{{ else }}low{{ end }}'`, `device: '{{ $labels.device }}-x'`, `x: ""`,
			`empty: '{{ $labels.nothing }}'`, `alertname: other`, `where: '{{ $externalLabels.cluster }}'`, `instance: one`))
	}
	if chance(r, 50) {
		fmt.Fprintf(b, "    annotations: {summary: %s, plain: text}\n", oneOf(r,
			`'{{ $labels.device }} is {{ $value | humanize }}'`, `'{{ with query "min(temp)" }}{{ . | first | value }}{{ end }}'`,
			`'{{ range query "max by (device) (util)" | sortByLabel "device" }}{{ .Labels.device }}={{ .Value }} {{ end }}'`, `'{{ $externalURL }} {{ .Labels }}'`,
			`'{{ query "errors_total offset 1m" | len }}'`, `'{{ printf "%d" $value }} {{ .Nothing.more }}'`, `'{{ humanizeTimestamp $value }} {{ humanizeDuration $value }}'`,
			`'{{ (query "nowhere") | first | value }}'`, `''`))
	}
}

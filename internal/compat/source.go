package compat

import (
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/accel-exporter/accel-exporter/collector"
)

// source computes the value of a field from the readings that its terms select
// on the device. There is no value if a term selects no reading.
type source struct {
	terms []term
	// any accepts that some of the terms select no reading.
	any bool
	// combine computes the value from the weights and values of the readings. It
	// returns false for no value.
	combine func(weights, values []float64) (float64, bool)
	// query is the equivalent PromQL, or a text with PromQL in backquotes.
	query string
}

// term selects the readings of a family by labels.
type term struct {
	metric *collector.Metric
	labels []string // name, value pairs
	weight float64
	// weigh is the label whose value is the weight; empty means weight.
	weigh string
}

// matches reports whether t selects r.
func (t *term) matches(r *collector.Reading) bool {
	if r.Metric != t.metric || len(r.Labels) != len(t.metric.Labels) {
		return false
	}
	for i := 0; i < len(t.labels); i += 2 {
		at := slices.Index(t.metric.Labels, t.labels[i])
		if at < 0 || r.Labels[at] != t.labels[i+1] {
			return false
		}
	}
	return true
}

// weightOf returns the weight of r, and false if it is not a number.
func (t *term) weightOf(r *collector.Reading) (float64, bool) {
	if t.weigh == "" {
		return t.weight, true
	}
	w, err := strconv.ParseFloat(r.Labels[slices.Index(t.metric.Labels, t.weigh)], 64)
	return w, err == nil
}

// selector returns t as a PromQL selector.
func (t *term) selector() string {
	var b strings.Builder
	b.WriteString(t.metric.Name)
	for i := 0; i < len(t.labels); i += 2 {
		b.WriteString([]string{"{", ","}[min(i, 1)])
		b.WriteString(t.labels[i] + "=" + strconv.Quote(t.labels[i+1]))
	}
	if len(t.labels) > 0 {
		b.WriteByte('}')
	}
	return b.String()
}

// sum returns the weighted sum of the readings.
func sum(weights, values []float64) (float64, bool) {
	var v float64
	for i := range values {
		v += weights[i] * values[i]
	}
	return v, true
}

// code returns the weight of the reading whose value is 1.
func code(weights, values []float64) (float64, bool) {
	at := slices.Index(values, 1)
	if at < 0 {
		return 0, false
	}
	return weights[at], true
}

// latest returns the weight of the largest reading.
func latest(weights, values []float64) (float64, bool) {
	at := 0
	for i := range values {
		if values[i] > values[at] {
			at = i
		}
	}
	return weights[at], true
}

// none returns 0 if all readings are 0, and no value otherwise.
func none(_, values []float64) (float64, bool) {
	return 0, !slices.ContainsFunc(values, func(v float64) bool { return v != 0 })
}

// share returns the first reading divided by the sum of all.
func share(_, values []float64) (float64, bool) {
	var all float64
	for _, v := range values {
		all += v
	}
	return values[0] / all, all > 0
}

// times returns the source of a family's readings with these labels, times a
// factor. Several readings are summed.
func times(factor float64, m *collector.Metric, labels ...string) source {
	t := term{metric: m, labels: labels, weight: factor}
	q := t.selector()
	if len(labels)/2 < len(m.Labels) {
		q = "sum by (device) (" + q + ")"
	}
	return source{terms: []term{t}, combine: sum, query: q + scale(factor)}
}

// scale returns the multiplication by factor in PromQL.
func scale(factor float64) string {
	switch {
	case factor == 1:
		return ""
	case factor == 1./mebi:
		return " / 1024^2"
	case factor < 1:
		return " / " + short(math.Round(1/factor))
	}
	return " * " + short(factor)
}

// short formats a number as 1e6 instead of 1e+06.
func short(v float64) string {
	return strings.Replace(strconv.FormatFloat(v, 'g', -1, 64), "e+0", "e", 1)
}

// total returns the sum of sources that have one term each.
func total(parts ...source) source {
	s := source{combine: sum}
	for i, p := range parts {
		s.terms = append(s.terms, p.terms...)
		if i > 0 {
			s.query += " + ignoring(" + strings.Join(p.terms[0].metric.Labels, ",") + ") "
		}
		s.query += p.query
	}
	s.query = strings.ReplaceAll(s.query, " + ignoring() ", " + ")
	return s
}

// state returns the source of NVML's code for the current state. m is a family
// with one series per state, label names the state, codes maps names to codes.
func state(m *collector.Metric, label string, codes map[string]float64) source {
	s := source{any: true, combine: code, query: "number of the label `" + label + "` of `" + m.Name + " == 1`"}
	for name, c := range codes {
		s.terms = append(s.terms, term{metric: m, labels: []string{label, name}, weight: c})
	}
	slices.SortFunc(s.terms, func(a, b term) int { return strings.Compare(a.labels[1], b.labels[1]) })
	return s
}

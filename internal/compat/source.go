package compat

import (
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/accel-exporter/accel-exporter/collector"
)

// source is one way to come by the value of a field: from the readings that
// its terms select on the device. It yields nothing where a term selects none.
type source struct {
	terms []term
	// any: some of the terms are enough.
	any bool
	// combine makes the value of the field of the weights and values of the
	// readings.
	combine func(weights, values []float64) (float64, bool)
	// query says the same in PromQL, or in words with PromQL in backquotes.
	query string
}

// term selects the readings of a family that have certain labels.
type term struct {
	metric *collector.Metric
	labels []string // name, value, name, value
	weight float64
	// weigh names a label whose value is the weight.
	weigh string
}

// matches reports whether r is selected.
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

func (t *term) weightOf(r *collector.Reading) (float64, bool) {
	if t.weigh == "" {
		return t.weight, true
	}
	w, err := strconv.ParseFloat(r.Labels[slices.Index(t.metric.Labels, t.weigh)], 64)
	return w, err == nil
}

// selector is t in PromQL.
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

// sum adds what the terms select, each times its weight.
func sum(weights, values []float64) (float64, bool) {
	var v float64
	for i := range values {
		v += weights[i] * values[i]
	}
	return v, true
}

// code is the weight of the reading that is 1, of a family in which one is.
func code(weights, values []float64) (float64, bool) {
	at := slices.Index(values, 1)
	if at < 0 {
		return 0, false
	}
	return weights[at], true
}

// latest is the weight of the largest reading.
func latest(weights, values []float64) (float64, bool) {
	at := 0
	for i := range values {
		if values[i] > values[at] {
			at = i
		}
	}
	return weights[at], true
}

// none is 0 while all that was counted is.
func none(_, values []float64) (float64, bool) {
	return 0, !slices.ContainsFunc(values, func(v float64) bool { return v != 0 })
}

// share is the first reading as a part of all.
func share(_, values []float64) (float64, bool) {
	var all float64
	for _, v := range values {
		all += v
	}
	return values[0] / all, all > 0
}

// times is what one family has under labels, times a factor. Where the labels
// select several readings it is their sum.
func times(factor float64, m *collector.Metric, labels ...string) source {
	t := term{metric: m, labels: labels, weight: factor}
	q := t.selector()
	if len(labels)/2 < len(m.Labels) {
		q = "sum by (device) (" + q + ")"
	}
	return source{terms: []term{t}, combine: sum, query: q + scale(factor)}
}

// scale is a factor in PromQL.
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

// short writes 1e6, not 1e+06.
func short(v float64) string {
	return strings.Replace(strconv.FormatFloat(v, 'g', -1, 64), "e+0", "e", 1)
}

// total is the sum of several sources of one term.
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

// state is the number that NVML gives to the state in force, by its name in
// the label of m.
func state(m *collector.Metric, label string, codes map[string]float64) source {
	s := source{any: true, combine: code, query: "number of the label `" + label + "` of `" + m.Name + " == 1`"}
	for name, c := range codes {
		s.terms = append(s.terms, term{metric: m, labels: []string{label, name}, weight: c})
	}
	slices.SortFunc(s.terms, func(a, b term) int { return strings.Compare(a.labels[1], b.labels[1]) })
	return s
}

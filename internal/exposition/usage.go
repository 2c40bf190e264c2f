package exposition

import (
	"slices"
	"strings"

	dto "github.com/prometheus/client_model/go"
)

// Usage is the number of series of one family, now.
type Usage struct {
	Family string `json:"family"`
	// Served is with the settings in force, Standard and Full without
	// metrics.drop and metrics.max_series at either --metrics.detail.
	Served   int `json:"served"`
	Standard int `json:"standard"`
	Full     int `json:"full"`
}

// Usage returns the number of series of each family, sorted by name. It builds the page
// twice more.
func (e *Exporter) Usage() []Usage {
	e.mu.Lock()
	view := e.settings.View
	e.mu.Unlock()
	named := map[string]*Usage{}
	count := func(families []*dto.MetricFamily, column func(*Usage) *int) {
		for _, f := range families {
			u := named[f.GetName()]
			if u == nil {
				u = &Usage{Family: f.GetName()}
				named[u.Family] = u
			}
			*column(u) = seriesOf(f)
		}
	}
	s := e.snapshot()
	count(newPage(s, &Settings{Standard: true, View: view}).families, func(u *Usage) *int { return &u.Standard })
	count(newPage(s, &Settings{View: view}).families, func(u *Usage) *int { return &u.Full })
	served, _ := e.Gather() // an error is logged
	count(served, func(u *Usage) *int { return &u.Served })
	all := make([]Usage, 0, len(named))
	for _, u := range named {
		if u.Full == 0 { // of the exporter itself
			u.Standard, u.Full = u.Served, u.Served
		}
		all = append(all, *u)
	}
	slices.SortFunc(all, func(x, y Usage) int { return strings.Compare(x.Family, y.Family) })
	return all
}

// seriesOf is the number of series that a family has in the text format.
func seriesOf(f *dto.MetricFamily) int {
	n := 0
	for _, m := range f.Metric {
		switch f.GetType() {
		case dto.MetricType_HISTOGRAM:
			n += 3 + len(m.GetHistogram().GetBucket()) // sum, count and +Inf
		case dto.MetricType_SUMMARY:
			n += 2 + len(m.GetSummary().GetQuantile())
		default:
			n++
		}
	}
	return n
}

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

// Usage returns the number of series of each family, sorted by name. It costs
// three layouts of the page.
func (e *Exporter) Usage() []Usage {
	e.rebuild.Lock()
	view := e.settings.View
	e.rebuild.Unlock()
	f := newFrame()
	defer f.release()
	e.snapshot(f)
	named := map[string]*Usage{}
	at := func(name string) *Usage {
		if named[name] == nil {
			named[name] = &Usage{Family: name}
		}
		return named[name]
	}
	beside, _ := e.beside(f)
	for _, family := range beside {
		u := at(family.GetName())
		n := seriesOf(family)
		u.Served, u.Standard, u.Full = n, n, n
	}
	f.count(func(name string, n int) { at(name).Served += n })
	s := f.of
	for _, level := range []struct {
		standard bool
		of       func(*Usage) *int
	}{
		{true, func(u *Usage) *int { return &u.Standard }},
		{false, func(u *Usage) *int { return &u.Full }},
	} {
		f.layout = newLayout(s, &Settings{Standard: level.standard, View: view})
		f.layout.fill(s, f)
		e.fillOwn(f)
		f.count(func(name string, n int) { *level.of(at(name)) += n })
	}
	all := make([]Usage, 0, len(named))
	for _, u := range named {
		all = append(all, *u)
	}
	slices.SortFunc(all, func(x, y Usage) int { return strings.Compare(x.Family, y.Family) })
	return all
}

// count calls add with the number of series of each family of the layout.
func (f *frame) count(add func(name string, n int)) {
	for _, fam := range f.layout.families {
		n := 0
		for _, v := range f.values[fam.begin:fam.end] {
			if !Absent(v) {
				n++
			}
		}
		add(fam.metric.Name, n)
	}
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

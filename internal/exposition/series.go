package exposition

import (
	"iter"

	dto "github.com/prometheus/client_model/go"
)

// Page is the content of the page for a reader in this process: the series and
// values that a scrape returns, without their text. The zero value is ready
// for Exporter.Read.
type Page struct {
	// Values are the values of the series of devices and node, in the order
	// of Series.
	Values []float64
	// Families are the rest of the page: the process's own families and the
	// histograms, sorted by name. They must not be changed.
	Families []*dto.MetricFamily

	layout *layout
}

// Read replaces the content of p by the latest page. It reports whether Series
// differs from the previous Read. The error names what could not be gathered;
// the rest of the page is valid.
func (e *Exporter) Read(p *Page) (changed bool, err error) {
	f := newFrame()
	defer f.release()
	e.snapshot(f)
	changed, p.layout = p.layout != f.layout, f.layout
	p.Values = append(p.Values[:0], f.values...)
	p.Families, err = e.beside(f)
	return changed, err
}

// Series yields the name and the labels, sorted by name, of each value of
// p.Values. The labels must not be changed.
func (p *Page) Series() iter.Seq2[string, []Label] {
	return func(yield func(string, []Label) bool) {
		if p.layout == nil {
			return
		}
		l := p.layout
		blocks := make([][]Label, l.blocks.len())
		for i := range blocks {
			for _, lab := range parseBlock(l.blocks.at(int32(i))) {
				blocks[i] = append(blocks[i], Label{lab.name, lab.value})
			}
		}
		for _, fam := range l.families {
			for at := fam.begin; at < fam.end; at++ {
				if !yield(fam.metric.Name, blocks[l.block[at]]) {
					return
				}
			}
		}
	}
}

package exposition

import "github.com/accel-exporter/accel-exporter/collector"

// Settings are what may change while an Exporter serves.
type Settings struct {
	// MaxSeries replaces Options.MaxSeries.
	MaxSeries int
	// Drop selects families that are not served, by choice and therefore
	// uncounted. Nil drops none.
	Drop func(family string) bool
	// View adds series to the page; Drop does not apply to them. Nil adds none.
	View View
}

// Apply replaces the settings; scrapes that begin later follow them.
func (e *Exporter) Apply(s Settings) {
	e.rebuild.Lock()
	defer e.rebuild.Unlock()
	e.settings = s
	e.layout.Store(nil)
}

// drops reports whether a family is left out by choice.
func (s *Settings) drops(m *collector.Metric) bool { return s.Drop != nil && s.Drop(m.Name) }

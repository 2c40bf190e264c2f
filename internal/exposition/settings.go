package exposition

import "github.com/accel-exporter/accel-exporter/collector"

// Settings can change while an Exporter serves.
type Settings struct {
	// MaxSeries replaces Options.MaxSeries.
	MaxSeries int
	// Drop selects families that are not served. They are not counted as
	// dropped. Nil selects none.
	Drop func(family string) bool
	// View adds series to the page; Drop does not apply to them. Nil adds none.
	View View
}

// Apply replaces the settings for scrapes that begin later.
func (e *Exporter) Apply(s Settings) {
	e.rebuild.Lock()
	defer e.rebuild.Unlock()
	e.settings = s
	e.layout.Store(nil)
}

// drops reports whether the settings leave out a family.
func (s *Settings) drops(m *collector.Metric) bool { return s.Drop != nil && s.Drop(m.Name) }

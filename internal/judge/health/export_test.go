package health

import "github.com/accel-exporter/accel-exporter/collector"

// Lookup returns the entry of an event, and whether the catalogue has one. An
// event whose Sub has no entry is judged by its code.
func (c *Catalogue) Lookup(e *collector.Event) (*Entry, bool) {
	found, known := c.lookup(e)
	return &found.Entry, known
}

// String returns the value in the format of the catalogue.
func (e Ends) String() string {
	switch {
	case e.Reset:
		return "reset"
	case e.Answer:
		return "answer"
	}
	return e.After.String()
}

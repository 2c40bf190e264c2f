package exposition

import (
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
)

// self gathers the process's own families.
type self struct {
	gatherer prometheus.Gatherer
	log      *slog.Logger
	failing  atomic.Bool
}

// gather returns what can be gathered, sorted by name, and an error that names
// what could not. Families that the page of l already has are left out: a
// client rejects a page on which a name occurs twice.
func (s *self) gather(l *layout) ([]*dto.MetricFamily, error) {
	if s.gatherer == nil {
		return nil, nil
	}
	families, gathered := s.gatherer.Gather()
	err := gathered
	if !slices.IsSortedFunc(families, byName) {
		families = slices.Clone(families)
		slices.SortStableFunc(families, byName)
	}
	last := ""
	excluded := func(f *dto.MetricFamily) bool {
		again := f.GetName() == last || l.has(f.GetName())
		last = f.GetName()
		if again {
			err = errors.Join(err, fmt.Errorf("family %s: registered, but already on the page", last))
		}
		return again || len(f.Metric) == 0
	}
	if slices.ContainsFunc(families, excluded) {
		last, err = "", gathered
		families = slices.DeleteFunc(slices.Clone(families), excluded)
	}
	s.note(err)
	return families, err
}

// beside returns the families that are not part of the layout: the process's
// own and the Snapshot's histograms.
func (e *Exporter) beside(f *frame) ([]*dto.MetricFamily, error) {
	own, err := e.self.gather(f.layout)
	if h := e.histograms.gather(f.of, f.layout); len(h) > 0 {
		own = appendMerged(make([]*dto.MetricFamily, 0, len(h)+len(own)), h, own)
	}
	return own, err
}

// note logs the first error and the first success after it.
func (s *self) note(err error) {
	switch was := s.failing.Swap(err != nil); {
	case err != nil && !was:
		s.log.Error("own metrics are incomplete", "err", err)
	case err == nil && was:
		s.log.Info("own metrics are complete again")
	}
}

func byName(x, y *dto.MetricFamily) int { return strings.Compare(x.GetName(), y.GetName()) }

// has reports whether the page of l has a family of that name.
func (l *layout) has(name string) bool {
	_, ok := slices.BinarySearchFunc(l.families, name, func(f family, name string) int {
		return strings.Compare(f.metric.Name, name)
	})
	return ok
}

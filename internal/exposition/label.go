package exposition

import (
	"cmp"
	"slices"
	"strings"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/model"

	"github.com/accel-exporter/accel-exporter/collector"
)

// Label is a label of a series.
type Label struct{ Name, Value string }

// labelsOf returns the labels of r, a reading of d or, if d is nil, of the node.
func labelsOf(d *collector.Device, r *collector.Reading) []Label {
	m := r.Metric
	labels := make([]Label, 0, len(m.Labels)+2)
	for i, name := range m.Labels {
		labels = append(labels, Label{name, r.Labels[i]})
	}
	if m.Scope == collector.PerDevice {
		labels = append(labels, Label{"device", d.ID})
		if d.Parent != "" {
			labels = append(labels, Label{"parent", d.Parent})
		}
	}
	return labels
}

// pairs sorts labels by name and returns them as client_model has them, and false where
// Prometheus does not accept the names. The caller gives the labels away.
func pairs(labels []Label) ([]*dto.LabelPair, bool) {
	slices.SortFunc(labels, func(x, y Label) int { return strings.Compare(x.Name, y.Name) })
	out := make([]*dto.LabelPair, len(labels))
	for i := range labels {
		l := &labels[i]
		if !validLabel(l.Name) || i > 0 && labels[i-1].Name == l.Name {
			return nil, false
		}
		// Firmware returns bytes that are not UTF-8; they must not cost the
		// series.
		l.Value = strings.ToValidUTF8(l.Value, "\uFFFD")
		out[i] = &dto.LabelPair{Name: &l.Name, Value: &l.Value}
	}
	return out, true
}

// compareLabels orders the series of a family as client_golang's registry does: by
// number of labels, then by label values.
func compareLabels(x, y []*dto.LabelPair) int {
	if len(x) != len(y) {
		return cmp.Compare(len(x), len(y))
	}
	for i := range x {
		if c := strings.Compare(x[i].GetValue(), y[i].GetValue()); c != 0 {
			return c
		}
	}
	for i := range x { // the names of derived series may differ
		if c := strings.Compare(x[i].GetName(), y[i].GetName()); c != 0 {
			return c
		}
	}
	return 0
}

// validName restricts names to the legacy charset, which no escaping scheme
// changes.
func validName(s string) bool { return model.LegacyValidation.IsValidMetricName(s) }

func validLabel(s string) bool {
	return model.LegacyValidation.IsValidLabelName(s) && !strings.HasPrefix(s, model.ReservedLabelPrefix)
}

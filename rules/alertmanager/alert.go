package alertmanager

import (
	"encoding/json"
	"maps"
	"time"

	"github.com/go-openapi/strfmt"
	"github.com/prometheus/alertmanager/api/v2/models"
	"github.com/prometheus/prometheus/model/labels"
)

// Alert is one notification of an alert. Its labels, after external labels and
// relabelling, identify it.
type Alert struct {
	Labels, Annotations map[string]string
	StartsAt            time.Time
	// EndsAt is in the past if the alert is resolved. Otherwise Alertmanager
	// resolves the alert then, unless a newer notification arrives; zero leaves
	// that to its resolve_timeout.
	EndsAt time.Time
	// GeneratorURL links to the source of the alert; it may be empty.
	GeneratorURL string
}

// item is a queued alert. It is immutable, because all endpoints share it.
type item struct {
	key      string // identity
	name     string // for logs
	alert    *models.PostableAlert
	resolved bool
	size     int // bytes, as JSON
}

// newItem returns the alert with the labels ls.
func newItem(a *Alert, ls labels.Labels, now time.Time) *item {
	it := &item{
		key:      string(ls.Bytes(nil)),
		name:     ls.Get(labels.AlertName),
		resolved: !a.EndsAt.IsZero() && !a.EndsAt.After(now),
		alert: &models.PostableAlert{
			Annotations: maps.Clone(a.Annotations),
			StartsAt:    strfmt.DateTime(a.StartsAt),
			EndsAt:      strfmt.DateTime(a.EndsAt),
			Alert:       models.Alert{Labels: ls.Map(), GeneratorURL: strfmt.URI(a.GeneratorURL)},
		},
	}
	// Texts and times always encode.
	data, _ := json.Marshal(it.alert)
	it.size = len(data)
	return it
}

// expired reports whether the end of a firing alert has passed without a newer
// notification.
func (it *item) expired(now time.Time) bool {
	end := time.Time(it.alert.EndsAt)
	return !it.resolved && !end.IsZero() && !end.After(now)
}

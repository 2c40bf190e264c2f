package alertmanager

import (
	"encoding/json"
	"maps"
	"time"

	"github.com/go-openapi/strfmt"
	"github.com/prometheus/alertmanager/api/v2/models"
	"github.com/prometheus/prometheus/model/labels"
)

// Alert is what is told to Alertmanager of one alert. Its labels, after
// external labels and relabelling, are its identity.
type Alert struct {
	Labels, Annotations map[string]string
	StartsAt            time.Time
	// EndsAt is in the past when the alert is resolved. Else it is when the
	// alert ends unless it is told again; where it is zero, Alertmanager's
	// resolve_timeout decides.
	EndsAt time.Time
	// GeneratorURL leads to what made the alert; it may be empty.
	GeneratorURL string
}

// item is an alert as it is queued. It is never altered, since all endpoints
// share it.
type item struct {
	key      string // identity
	name     string // for logs
	alert    *models.PostableAlert
	resolved bool
	size     int // bytes, as JSON
}

// newItem returns the alert as it is sent, under the labels ls.
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
	// No text and no time fails to be encoded.
	data, _ := json.Marshal(it.alert)
	it.size = len(data)
	return it
}

// expired reports whether a firing alert has not been vouched for again in
// time: whoever told of it has stopped to.
func (it *item) expired(now time.Time) bool {
	end := time.Time(it.alert.EndsAt)
	return !it.resolved && !end.IsZero() && !end.After(now)
}

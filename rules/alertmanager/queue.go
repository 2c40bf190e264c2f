package alertmanager

import (
	"bytes"
	"encoding/json"
	"slices"
	"time"

	"github.com/prometheus/prometheus/model/labels"

	"github.com/accel-exporter/accel-exporter/rules/engine"
)

// item is a queued alert. It is immutable, because all endpoints share it.
type item struct {
	key      string // identity
	name     string // for logs
	seq      uint64 // increases with each notification
	end      time.Time
	resolved bool
	json     []byte
	made     time.Time
}

// newItem returns the alert with the external labels that it does not have, in the form of
// Alertmanager's API. An alert whose end is in the past is resolved.
func newItem(a *engine.Alert, external map[string]string, seq uint64, now time.Time) *item {
	b := labels.NewBuilder(labels.FromMap(external))
	for name, value := range a.Labels {
		if value != "" { // an empty label is no label
			b.Set(name, value)
		}
	}
	ls := b.Labels()
	it := &item{key: string(ls.Bytes(nil)), name: ls.Get(labels.AlertName), seq: seq, end: a.EndsAt(), made: now}
	it.resolved = !it.end.After(now)
	it.json, _ = json.Marshal(struct { // texts and times always encode
		Labels       map[string]string `json:"labels"`
		Annotations  map[string]string `json:"annotations"`
		StartsAt     time.Time         `json:"startsAt"`
		EndsAt       time.Time         `json:"endsAt"`
		GeneratorURL string            `json:"generatorURL,omitempty"`
	}{ls.Map(), a.Annotations, a.FiredAt, it.end, a.GeneratorURL})
	return it
}

// body returns the request for items.
func body(items []*item) []byte {
	parts := make([][]byte, len(items))
	for i, it := range items {
		parts[i] = it.json
	}
	return slices.Concat([]byte("["), bytes.Join(parts, []byte(",")), []byte("]"))
}

// keepResolved is how long a resolved alert is kept: as long as the engine repeats it.
// Alertmanager ends the alert by itself when its end passes.
const keepResolved = 15 * time.Minute

// expired reports whether the end of a firing alert has passed without a newer
// notification, or a resolved alert is old.
func (it *item) expired(now time.Time) bool {
	valid := keepResolved
	if !it.resolved {
		valid = it.end.Sub(it.made) // by the monotonic clock, which is not set
	}
	return valid <= now.Sub(it.made)
}

// queue contains the latest state of each undelivered alert of an endpoint, by its
// identity.
type queue map[string]*item

// sorted returns the items, the oldest first.
func (q queue) sorted() []*item {
	items := make([]*item, 0, len(q))
	for _, it := range q {
		items = append(items, it)
	}
	slices.SortFunc(items, func(a, b *item) int { return int(int64(a.seq - b.seq)) })
	return items
}

// done removes items, except items with a newer state.
func (q queue) done(items []*item) {
	for _, it := range items {
		if q[it.key] == it {
			delete(q, it.key)
		}
	}
}

// batchSize is the maximum number of alerts in a request.
const batchSize = 64

// batch returns the oldest items, at most so many, and the number of expired items, which
// it removes.
func (q queue) batch(now time.Time, most int) (items []*item, expired int) {
	for _, it := range q.sorted() {
		if it.expired(now) {
			delete(q, it.key)
			expired++
			continue
		}
		if items = append(items, it); len(items) == most {
			break
		}
	}
	return items, expired
}

package alertmanager

import (
	"container/list"
	"encoding/json"
	"maps"
	"time"

	"github.com/go-openapi/strfmt"
	"github.com/prometheus/alertmanager/api/v2/models"
	"github.com/prometheus/prometheus/model/labels"
)

// queue contains the latest state of each undelivered alert of an endpoint, at
// most capacity of them.
type queue struct {
	capacity int
	byKey    map[string]*list.Element
	// firing and resolved are lists of *entry, oldest first.
	firing, resolved list.List
	next             uint64
}

type entry struct {
	item *item
	seq  uint64 // increases with each entry
}

func newQueue(capacity int) *queue {
	return &queue{capacity: capacity, byKey: map[string]*list.Element{}}
}

func (q *queue) len() int { return len(q.byKey) }

func (q *queue) full() bool { return q.len() >= q.capacity }

func (q *queue) list(it *item) *list.List {
	if it.resolved {
		return &q.resolved
	}
	return &q.firing
}

// put adds the newest state of an alert and replaces an older one. It returns
// the number of alerts dropped for it.
func (q *queue) put(it *item) int {
	if el, ok := q.byKey[it.key]; ok {
		e := el.Value.(*entry)
		if e.item.resolved == it.resolved {
			e.item = it // it keeps its place
			return 0
		}
		q.list(e.item).Remove(el)
	}
	q.next++
	q.byKey[it.key] = q.list(it).PushBack(&entry{item: it, seq: q.next})
	return q.shrink()
}

// shrink drops alerts beyond the capacity: the oldest resolved ones, which
// Alertmanager resolves by itself, then the oldest.
func (q *queue) shrink() int {
	n := 0
	for ; q.len() > q.capacity; n++ {
		el := q.resolved.Front()
		if el == nil {
			el = q.firing.Front()
		}
		q.remove(el)
	}
	return n
}

func (q *queue) remove(el *list.Element) {
	it := el.Value.(*entry).item
	delete(q.byKey, it.key)
	q.list(it).Remove(el)
}

// done removes items, except items with a newer state.
func (q *queue) done(items ...*item) {
	for _, it := range items {
		if el, ok := q.byKey[it.key]; ok && el.Value.(*entry).item == it {
			q.remove(el)
		}
	}
}

// bounds are the limits of a batch.
type bounds struct {
	count int // alerts
	size  int // bytes; a larger first alert is sent anyway
	// alone reports alerts that are sent in a separate batch.
	alone func(*item) bool
}

// batch returns the oldest items. It removes expired items on the way and
// returns their number.
func (q *queue) batch(b bounds, now time.Time) (items []*item, expired int) {
	firing, resolved := q.firing.Front(), q.resolved.Front()
	for len(items) < b.count && (firing != nil || resolved != nil) {
		next := &firing
		if firing == nil || resolved != nil && resolved.Value.(*entry).seq < firing.Value.(*entry).seq {
			next = &resolved
		}
		el := *next
		it := el.Value.(*entry).item
		*next = el.Next()
		if it.expired(now) {
			q.remove(el)
			expired++
			continue
		}
		b.size -= it.size + 1 // with a comma
		switch alone := b.alone(it); {
		case len(items) == 0 && alone:
			return []*item{it}, expired
		case len(items) > 0 && (alone || b.size < 0):
			return items, expired
		}
		items = append(items, it)
	}
	return items, expired
}

// clear removes all items and returns their number.
func (q *queue) clear() int {
	n := q.len()
	clear(q.byKey)
	q.firing.Init()
	q.resolved.Init()
	return n
}

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
	size     int       // bytes, as JSON
	made     time.Time // by the clock that the alert's times are of
}

// newItem returns the alert with the labels ls.
func newItem(a *Alert, ls labels.Labels, now time.Time) *item {
	it := &item{
		key:      string(ls.Bytes(nil)),
		name:     ls.Get(labels.AlertName),
		made:     now,
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

// at returns the alert with its times by a clock that is ahead of the node's.
func (it *item) at(ahead time.Duration) *models.PostableAlert {
	if ahead == 0 {
		return it.alert
	}
	moved := *it.alert
	for _, t := range []*strfmt.DateTime{&moved.StartsAt, &moved.EndsAt} {
		if was := time.Time(*t); !was.IsZero() {
			*t = strfmt.DateTime(was.Add(ahead))
		}
	}
	return &moved
}

// expired reports whether the end of a firing alert has passed without a newer
// notification.
func (it *item) expired(now time.Time) bool {
	end := time.Time(it.alert.EndsAt)
	return !it.resolved && !end.IsZero() && end.Sub(it.made) <= now.Sub(it.made)
}

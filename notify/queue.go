package notify

import (
	"container/list"
	"time"
)

// queue holds the latest state of each alert that an endpoint has not been
// told, at most capacity of them.
type queue struct {
	capacity int
	byKey    map[string]*list.Element
	// firing and resolved hold *entry, the one that waits longest first.
	firing, resolved list.List
	next             uint64
}

type entry struct {
	item *item
	seq  uint64 // rises from entry to entry
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

// put takes the newest state of an alert in place of an older one. It returns
// how many alerts had to be dropped for it.
func (q *queue) put(it *item) int {
	if el, ok := q.byKey[it.key]; ok {
		e := el.Value.(*entry)
		if e.item.resolved == it.resolved {
			e.item = it // and it keeps its turn
			return 0
		}
		q.list(e.item).Remove(el)
	}
	q.next++
	q.byKey[it.key] = q.list(it).PushBack(&entry{item: it, seq: q.next})
	return q.shrink()
}

// shrink drops what is beyond the capacity: the oldest that are resolved, which
// Alertmanager ends by itself, then the oldest.
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

// done takes items out, but for those of which there is a newer state.
func (q *queue) done(items ...*item) {
	for _, it := range items {
		if el, ok := q.byKey[it.key]; ok && el.Value.(*entry).item == it {
			q.remove(el)
		}
	}
}

// batch returns up to n of the items that wait longest, of at most size bytes
// together but for a first one that is larger. An item that alone says true of
// goes alone.
func (q *queue) batch(n, size int, alone func(*item) bool) []*item {
	var items []*item
	firing, resolved := q.firing.Front(), q.resolved.Front()
	for len(items) < n && (firing != nil || resolved != nil) {
		el := &firing
		if firing == nil || resolved != nil && resolved.Value.(*entry).seq < firing.Value.(*entry).seq {
			el = &resolved
		}
		it := (*el).Value.(*entry).item
		*el = (*el).Next()
		size -= it.size + 1
		switch {
		case len(items) == 0 && alone(it):
			return []*item{it}
		case len(items) > 0 && (size < 0 || alone(it)):
			return items
		}
		items = append(items, it)
	}
	return items
}

// expire takes out what is firing and has not been vouched for again in time,
// and returns how many that were.
func (q *queue) expire(now time.Time) int {
	n := 0
	for el := q.firing.Front(); el != nil; {
		next := el.Next()
		if el.Value.(*entry).item.expired(now) {
			q.remove(el)
			n++
		}
		el = next
	}
	return n
}

// clear takes out everything, and returns how many that were.
func (q *queue) clear() int {
	n := q.len()
	clear(q.byKey)
	q.firing.Init()
	q.resolved.Init()
	return n
}

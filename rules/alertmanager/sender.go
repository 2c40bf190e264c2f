package alertmanager

import (
	"context"
	"log/slog"
	"sync"
	"time"
)

// sender sends to one endpoint, one request at a time, so that no state of an
// alert overtakes a newer one.
type sender struct {
	label string
	log   *slog.Logger
	work  chan struct{} // the queue is not empty
	fresh chan struct{} // the client is new
	stop  func()        // stops run at once

	mu     sync.Mutex // guards the following fields
	client *client
	limits limits
	queue  *queue
	stats  stats
	// refused are alerts that were refused. Until they are accepted they are
	// sent alone, so that no batch is split for them again.
	refused map[string]struct{}
	closed  bool
	trouble trouble
	overrun int // alerts dropped since the queue became full; 0 while it is not
}

// limits are the limits of Settings on a queue and a batch.
type limits struct{ queue, batch, body int }

func newSender(label string, log *slog.Logger) *sender {
	return &sender{
		label: label, log: log.With("endpoint", label), work: make(chan struct{}, 1), fresh: make(chan struct{}, 1),
		queue: newQueue(0), stop: func() {}, refused: map[string]struct{}{}, stats: newStats(),
	}
}

// configure replaces the settings. The queue stays.
func (s *sender) configure(c *client, l limits) {
	s.mu.Lock()
	old := s.client
	s.client, s.limits, s.queue.capacity = c, l, l.queue
	s.overflow(s.queue.shrink())
	s.mu.Unlock()
	if old != nil {
		old.close()
		signal(s.fresh)
	}
}

func signal(ch chan struct{}) {
	select {
	case ch <- struct{}{}:
	default:
	}
}

// add queues items. It does not block.
func (s *sender) add(items []*item) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, it := range items {
		switch {
		case s.closed:
			s.stats.dropped[dropShutdown]++
		case it.size+2 > s.limits.body: // with the brackets of the list
			s.stats.dropped[dropTooLarge]++
			if s.once(it) {
				s.log.Error("Alert is larger than a request and is dropped", "alert", it.name, "bytes", it.size, "max_body_bytes", s.limits.body)
			}
		default:
			s.overflow(s.queue.put(it))
		}
	}
	signal(s.work)
}

// overflow counts n alerts that were dropped because the queue is full, and logs
// the first of them. taken logs the end.
func (s *sender) overflow(n int) {
	if n == 0 {
		return
	}
	if s.overrun == 0 {
		s.log.Warn("Queue of alerts is full, dropping the oldest", "capacity", s.queue.capacity)
	}
	s.overrun += n
	s.stats.dropped[dropQueueFull] += uint64(n)
}

// run sends until soft is done, and then the queue, until a request fails or
// hard is done.
func (s *sender) run(soft, hard context.Context) {
	for soft.Err() == nil {
		batch := s.batch()
		if len(batch) == 0 {
			select {
			case <-soft.Done():
			case <-s.work:
			}
			continue
		}
		a := s.deliver(hard, batch)
		if a.failed() && hard.Err() == nil {
			s.pause(soft, s.failed(&a))
		}
	}
	s.drain(hard)
}

// batch returns the next batch.
func (s *sender) batch() []*item {
	s.mu.Lock()
	defer s.mu.Unlock()
	items, expired := s.queue.batch(bounds{
		count: s.limits.batch,
		size:  s.limits.body - 2, // the brackets of the list
		alone: func(it *item) bool { _, refused := s.refused[it.key]; return refused },
	}, time.Now())
	s.stats.dropped[dropExpired] += uint64(expired)
	return items
}

// drain sends the queue until a request fails, and drops the rest.
func (s *sender) drain(ctx context.Context) {
	for batch := s.batch(); len(batch) > 0 && ctx.Err() == nil; batch = s.batch() {
		if a := s.deliver(ctx, batch); a.failed() {
			break
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	if n := s.queue.clear(); n > 0 {
		s.stats.dropped[dropShutdown] += uint64(n)
		s.log.Warn("Alerts were not sent before the exit", "alerts", n)
	}
	s.client.close()
}

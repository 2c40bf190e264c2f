package notify

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"
)

// Times between attempts that failed: from shortest on they double up to
// longest, and each varies by half. Where somebody has to act first, an attempt
// is made each slowly.
const (
	shortest = 500 * time.Millisecond
	longest  = 15 * time.Second
	slowly   = time.Minute
)

// Bounds of the alerts that are remembered as refused, and of those of them
// that are logged.
const (
	maxRefused = 1000
	maxLogged  = 20
)

// sender tells one endpoint, one request at a time, so that no state of an
// alert overtakes a newer one.
type sender struct {
	label string
	log   *slog.Logger
	work  chan struct{} // there is something in the queue
	fresh chan struct{} // the client is new
	stop  func()        // ends run at once

	mu     sync.Mutex // guards what follows
	client *client
	limits limits
	queue  *queue
	stats  stats
	// refused are the alerts that were refused alone. Until they are taken, they
	// are sent alone, lest each time a whole batch is split for them.
	refused map[string]struct{}
	closed  bool
	trouble trouble
	dropped int // since the queue became full; 0 while it is not
}

// limits are the Settings' of a queue and a batch.
type limits struct{ queue, batch, body int }

// trouble is a time during which nothing was taken.
type trouble struct {
	since  time.Time
	count  int             // attempts that failed
	logged map[reason]bool // reasons
}

func newSender(label string, log *slog.Logger) *sender {
	return &sender{
		label: label, log: log.With("endpoint", label), work: make(chan struct{}, 1), fresh: make(chan struct{}, 1),
		queue: newQueue(0), stop: func() {}, refused: map[string]struct{}{}, stats: newStats(),
	}
}

// configure takes new settings. What is queued stays so.
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

// add queues items. It does not wait for anything.
func (s *sender) add(items []*item) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, it := range items {
		switch {
		case s.closed:
			s.stats.dropped[dropShutdown]++
		case it.size+2 > s.limits.body: // and the brackets of the list
			s.stats.dropped[dropTooLarge]++
			s.once(it, "Alert is larger than a request may be and is dropped", "bytes", it.size, "max_body_bytes", s.limits.body)
		default:
			s.overflow(s.queue.put(it))
		}
	}
	signal(s.work)
}

// overflow notes that n alerts were dropped because the queue is full. It logs
// the first of them; taken logs that it is over.
func (s *sender) overflow(n int) {
	if n == 0 {
		return
	}
	if s.dropped == 0 {
		s.log.Warn("Queue of alerts is full, the oldest are dropped", "capacity", s.queue.capacity)
	}
	s.dropped += n
	s.stats.dropped[dropQueueFull] += uint64(n)
}

// once remembers that an alert was refused, and logs it the first time. The
// memory is cleared when it is full.
func (s *sender) once(it *item, message string, args ...any) {
	if _, known := s.refused[it.key]; known {
		return
	}
	if len(s.refused) >= maxRefused {
		clear(s.refused)
	}
	s.refused[it.key] = struct{}{}
	switch n := len(s.refused); {
	case n <= maxLogged:
		s.log.Error(message, append([]any{"alert", it.name}, args...)...)
	case n == maxLogged+1:
		s.log.Error("Further alerts that are refused are counted and no longer logged")
	}
}

// run sends until soft is done, and then what is queued, until that fails or
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
		if a := s.deliver(hard, batch); a.failed() && hard.Err() == nil {
			s.pause(soft, s.failed(&a))
		}
	}
	s.drain(hard)
}

// batch returns what is to be sent next.
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

// deliver sends a batch. One whose content is refused is split, down to the
// alert at fault. The answer is a failure where all that is left of the batch
// has to be sent again.
func (s *sender) deliver(ctx context.Context, batch []*item) answer {
	a := s.post(ctx, batch)
	switch {
	case !a.failed():
		s.taken(batch)
	case a.content && len(batch) == 1:
		s.refuse(batch[0], a.err)
		return answer{}
	case a.content:
		half := len(batch) / 2
		if first := s.deliver(ctx, batch[:half]); first.failed() {
			return first
		}
		return s.deliver(ctx, batch[half:])
	}
	return a
}

func (s *sender) post(ctx context.Context, batch []*item) answer {
	s.mu.Lock()
	c := s.client
	s.mu.Unlock()
	begin := time.Now()
	a := c.post(ctx, batch)
	s.mu.Lock()
	if ctx.Err() == nil { // else it failed by our own doing
		s.stats.count(&a, time.Since(begin))
	}
	current := s.client == c
	s.mu.Unlock()
	if !current {
		c.close() // which came too early for this connection
	}
	return a
}

func (s *sender) taken(batch []*item) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.queue.done(batch...)
	for _, it := range batch {
		delete(s.refused, it.key)
	}
	s.stats.sent += uint64(len(batch))
	s.stats.success = time.Now()
	if s.dropped > 0 && !s.queue.full() {
		s.log.Info("Queue of alerts is no longer full", "dropped", s.dropped)
		s.dropped = 0
	}
	s.over()
}

// refuse drops an alert that the endpoint does not take.
func (s *sender) refuse(it *item, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.queue.done(it)
	s.stats.dropped[dropRefused]++
	s.once(it, "Alert is refused and dropped", "err", err)
	s.over()
}

// over ends a time of trouble.
func (s *sender) over() {
	if s.trouble.count > 0 {
		s.log.Info("Alertmanager takes alerts again", "after", time.Since(s.trouble.since).Round(time.Second), "failures", s.trouble.count)
	}
	s.trouble = trouble{}
}

// failed notes that an attempt failed, and returns how long to wait for the
// next. Each reason is logged once until it is over.
func (s *sender) failed(a *answer) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := &s.trouble
	if t.count == 0 {
		*t = trouble{since: time.Now(), logged: map[reason]bool{}}
	}
	t.count++
	if !t.logged[a.reason] {
		t.logged[a.reason] = true
		s.log.Warn("Alertmanager does not take alerts, which are kept and sent again", "reason", string(a.reason), "err", a.err, "queued", s.queue.len())
	}
	wait := slowly
	if !a.slow {
		wait = min(shortest<<min(t.count-1, 10), longest)
	}
	wait = wait/2 + rand.N(wait/2+1)
	return max(wait, a.after)
}

// pause waits, unless there is a new client to try.
func (s *sender) pause(ctx context.Context, wait time.Duration) {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	case <-s.fresh:
	}
}

// drain sends what is queued, until that fails, and drops the rest.
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
		s.log.Warn("Alerts were not sent before the end", "alerts", n)
	}
	s.client.close()
}

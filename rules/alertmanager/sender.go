package alertmanager

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"
)

// Times between failed attempts: they double from shortest to longest, and each
// has a jitter of half.
const (
	shortest = 500 * time.Millisecond
	longest  = 15 * time.Second
)

// sender sends to one endpoint, one request at a time, so that no state of an
// alert overtakes a newer one.
type sender struct {
	label string
	log   *slog.Logger
	work  chan struct{} // the queue is not empty
	fresh chan struct{} // the client is new
	stop  func()        // stops run at once

	mu      sync.Mutex // guards the following fields
	client  *client
	queue   queue
	stats   stats
	closed  bool
	trouble trouble
	refused map[string]bool // names of alerts, for the log
	single  int             // alerts that each get a request: one of them was refused
}

// trouble is a period in which no alert was delivered.
type trouble struct {
	since  time.Time
	count  int             // attempts that failed
	logged map[reason]bool // reasons
}

func newSender(label string, log *slog.Logger) *sender {
	return &sender{
		label: label, log: log.With("endpoint", label), work: make(chan struct{}, 1), fresh: make(chan struct{}, 1),
		queue: queue{}, stop: func() {}, refused: map[string]bool{}, stats: stats{dropped: map[drop]uint64{}, failed: map[reason]uint64{}},
	}
}

// configure replaces the client. The queue stays.
func (s *sender) configure(c *client) {
	s.mu.Lock()
	old := s.client
	s.client = c
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
		if s.closed {
			s.stats.dropped[dropShutdown]++
		} else {
			s.queue[it.key] = it
		}
	}
	signal(s.work)
}

// run sends until soft is done, and then the queue, until a request fails or
// hard is done. It drops the rest.
func (s *sender) run(soft, hard context.Context) {
	defer s.end()
	for hard.Err() == nil {
		batch := s.batch()
		if len(batch) == 0 {
			if soft.Err() != nil {
				return
			}
			select {
			case <-soft.Done():
			case <-s.work:
			}
			continue
		}
		ending := soft.Err() != nil
		switch a := s.post(hard, batch); {
		case !a.failed():
			s.taken(batch)
		case a.content && len(batch) > 1:
			s.single = len(batch)
		case a.content:
			s.refuse(batch[0], a.err)
		case ending:
			return
		case hard.Err() == nil:
			s.pause(soft, s.failed(&a))
		}
	}
}

// batch returns the next batch.
func (s *sender) batch() []*item {
	s.mu.Lock()
	defer s.mu.Unlock()
	most := batchSize
	if s.single > 0 {
		s.single--
		most = 1
	}
	items, expired := s.queue.batch(time.Now(), most)
	s.stats.dropped[dropExpired] += uint64(expired)
	return items
}

// end drops the queue.
func (s *sender) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	if n := len(s.queue); n > 0 {
		clear(s.queue)
		s.stats.dropped[dropShutdown] += uint64(n)
		s.log.Warn("Alerts were not sent before the exit", "alerts", n)
	}
	s.client.close()
}

func (s *sender) post(ctx context.Context, batch []*item) answer {
	s.mu.Lock()
	c := s.client
	s.mu.Unlock()
	a := c.post(ctx, batch)
	s.mu.Lock()
	defer s.mu.Unlock()
	if a.failed() && ctx.Err() == nil { // else the request was cancelled here
		s.stats.failed[a.reason]++
	}
	if s.client != c {
		c.close() // the first close missed this connection
	}
	return a
}

func (s *sender) taken(batch []*item) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.queue.done(batch)
	s.stats.sent += uint64(len(batch))
	s.stats.success = time.Now()
	s.over()
}

// refuse drops an alert that the endpoint does not accept. The engine sends a firing alert
// again.
func (s *sender) refuse(it *item, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.queue.done([]*item{it})
	s.stats.dropped[dropRefused]++
	if !s.refused[it.name] {
		s.refused[it.name] = true
		s.log.Error("Alert is refused and dropped", "alert", it.name, "err", err)
	}
	s.over()
}

// over ends a period of trouble.
func (s *sender) over() {
	if s.trouble.count > 0 {
		s.log.Info("Alertmanager accepts alerts again", "after", time.Since(s.trouble.since).Round(time.Second), "failures", s.trouble.count)
	}
	s.trouble = trouble{}
}

// failed records a failed attempt and returns the wait for the next. Each
// reason is logged once per period.
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
		s.log.Warn("Alertmanager does not accept alerts, retrying", "reason", string(a.reason), "err", a.err, "queued", len(s.queue))
	}
	wait := min(shortest<<min(t.count-1, 10), longest)
	return wait/2 + rand.N(wait/2+1)
}

// pause waits, or until there is a new client.
func (s *sender) pause(ctx context.Context, wait time.Duration) {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	case <-s.fresh:
	}
}

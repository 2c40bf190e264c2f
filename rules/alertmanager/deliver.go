package alertmanager

import (
	"context"
	"math/rand/v2"
	"time"
)

// Limits of remembered and of logged refused alerts.
const (
	maxRefused = 1000
	maxLogged  = 20
)

// deliver sends a batch. A batch whose content is refused is split down to the
// invalid alert. The answer is a failure if the rest of the batch must be
// retried.
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
	if ctx.Err() == nil { // else the request was cancelled here
		s.stats.count(&a, time.Since(begin))
	}
	current := s.client == c
	s.mu.Unlock()
	if !current {
		c.close() // the first close missed this connection
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
	if s.overrun > 0 && !s.queue.full() {
		s.log.Info("Queue of alerts is no longer full", "dropped", s.overrun)
		s.overrun = 0
	}
	s.over()
}

// refuse drops an alert that the endpoint does not accept.
func (s *sender) refuse(it *item, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.queue.done(it)
	s.stats.dropped[dropRefused]++
	if s.once(it) {
		s.log.Error("Alert is refused and dropped", "alert", it.name, "err", err)
	}
	s.over()
}

// once remembers a refused alert and reports whether to log it: the first
// time, unless there are many. The memory is cleared when it is full.
func (s *sender) once(it *item) bool {
	if _, known := s.refused[it.key]; known {
		return false
	}
	if len(s.refused) >= maxRefused {
		clear(s.refused)
	}
	s.refused[it.key] = struct{}{}
	if len(s.refused) == maxLogged+1 {
		s.log.Error("Further refused alerts are counted and not logged")
	}
	return len(s.refused) <= maxLogged
}

// Times between failed attempts: they double from shortest to longest, and each
// has a jitter of half. While an operator has to act, attempts are slowly
// apart.
const (
	shortest = 500 * time.Millisecond
	longest  = 15 * time.Second
	slowly   = time.Minute
)

// trouble is a period in which no alert was delivered.
type trouble struct {
	since  time.Time
	count  int             // attempts that failed
	logged map[reason]bool // reasons
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
		s.log.Warn("Alertmanager does not accept alerts, retrying", "reason", string(a.reason), "err", a.err, "queued", s.queue.len())
	}
	wait := slowly
	if !a.slow {
		wait = min(shortest<<min(t.count-1, 10), longest)
	}
	wait = wait/2 + rand.N(wait/2+1)
	return max(wait, a.after)
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

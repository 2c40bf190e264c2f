package alertmanager

import (
	"context"
	"math/rand/v2"
	"time"
)

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

package kube

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// leases is an API server for one lease. It refuses an update whose
// resourceVersion is not the current one.
type leases struct {
	mu      sync.Mutex
	lease   *coordinationv1.Lease
	version int
}

func (s *leases) serve(r *http.Request) (int, any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	sent := new(coordinationv1.Lease)
	if r.Body != nil {
		json.NewDecoder(r.Body).Decode(sent)
	}
	refused := func(code int, reason metav1.StatusReason) (int, any) {
		return code, metav1.Status{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: "Failure", Reason: reason, Code: int32(code)}
	}
	switch {
	case r.Method == http.MethodPost && s.lease != nil:
		return refused(http.StatusConflict, metav1.StatusReasonAlreadyExists)
	case r.Method != http.MethodPost && s.lease == nil:
		return refused(http.StatusNotFound, metav1.StatusReasonNotFound)
	case r.Method == http.MethodPut && sent.ResourceVersion != s.lease.ResourceVersion:
		return refused(http.StatusConflict, metav1.StatusReasonConflict)
	case r.Method != http.MethodGet:
		s.version++
		sent.ResourceVersion = strconv.Itoa(s.version)
		s.lease = sent
	}
	return http.StatusOK, s.lease
}

func (s *leases) holder() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.lease == nil || s.lease.Spec.HolderIdentity == nil {
		return ""
	}
	return *s.lease.Spec.HolderIdentity
}

// transitions returns how often the lease changed its holder.
func (s *leases) transitions() int32 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return *s.lease.Spec.LeaseTransitions
}

// trip is the network between a process and the API server. trouble returns how
// long the request takes, and later the answer, and whether it is lost.
type trip struct {
	serve   func(*http.Request) (int, any)
	trouble func() (time.Duration, bool)
}

var errTrip = errors.New("no route to host")

func (p *trip) RoundTrip(r *http.Request) (*http.Response, error) {
	if err := p.way(r.Context()); err != nil {
		return nil, err
	}
	code, answer := p.serve(r)
	if err := p.way(r.Context()); err != nil {
		return nil, err
	}
	data, err := json.Marshal(answer)
	return &http.Response{StatusCode: code, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(bytes.NewReader(data)), Request: r}, err
}

func (p *trip) way(ctx context.Context) error {
	if p.trouble == nil {
		return nil
	}
	wait, fails := p.trouble()
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
		return ctx.Err()
	}
	if fails {
		return errTrip
	}
	return nil
}

// candidate is a process that waits for the lease.
type candidate struct {
	*Lease
	stop      context.CancelFunc
	ended     chan error
	acting    atomic.Bool
	stopped   atomic.Bool
	suspended atomic.Bool
}

func candidateFor(t *testing.T, s *leases, name string, trouble func() (time.Duration, bool)) *candidate {
	t.Helper()
	cfg := &rest.Config{Host: "http://api", Transport: &trip{s.serve, trouble}, ContentConfig: rest.ContentConfig{ContentType: "application/json"}}
	lease, err := NewLease(cfg, "ours", "lease", name)
	if err != nil {
		t.Fatal(err)
	}
	c := &candidate{Lease: lease, ended: make(chan error, 1)}
	lease.lock.Interface = &suspendable{lease.lock.Interface, &c.suspended}
	ctx, stop := context.WithCancel(t.Context())
	c.stop = func() { c.stopped.Store(true); stop() }
	go func() {
		c.ended <- c.Run(ctx, func(ctx context.Context) {
			c.acting.Store(true)
			<-ctx.Done()
			time.Sleep(3 * time.Second) // the last change
			if c.stopped.Load() && s.holder() == "" {
				t.Errorf("%s released the lease before its last change had ended", name)
			}
			c.acting.Store(false)
		})
	}()
	return c
}

func (c *candidate) leads() bool { _, err := c.Valid(); return err == nil }

// One process acts. When it ends, the next one acts without waiting for the lease to
// expire, and knows what the first has taken out.
func TestLeaseReleased(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := new(leases)
		a := candidateFor(t, s, "a", nil)
		synctest.Wait()
		b := candidateFor(t, s, "b", nil)
		time.Sleep(time.Minute)
		if !a.leads() || !a.acting.Load() || b.leads() || b.acting.Load() {
			t.Fatalf("a %v, b %v", a.leads(), b.leads())
		}
		taken := map[string]time.Time{"u": time.Unix(1, 0).UTC()}
		a.Taken.Store(&taken)
		a.stop()
		if err := <-a.ended; err != nil {
			t.Error(err)
		}
		if a.leads() {
			t.Error("valid although released")
		}
		time.Sleep(3 * retryPeriod) // with its jitter
		if !b.leads() || !b.acting.Load() || s.holder() != "b" {
			t.Errorf("b does not act: %q", s.holder())
		}
		if got := *b.Taken.Load(); !maps.Equal(got, taken) {
			t.Errorf("b has %v of what a has taken out", got)
		}
		b.stop()
		<-b.ended
	})
}

// Requests and answers are late or lost. No two processes lead at the same time,
// and one leads soon after the trouble is over.
func TestLeaseTrouble(t *testing.T) {
	for seed := range uint64(30) {
		synctest.Test(t, func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 1))
			var mu sync.Mutex
			s, bad := new(leases), true
			trouble := func() (time.Duration, bool) {
				mu.Lock()
				defer mu.Unlock()
				switch {
				case !bad:
					return 0, false
				case random.IntN(4) == 0:
					return time.Duration(random.IntN(8000)) * time.Millisecond, random.IntN(2) == 0
				}
				return time.Duration(random.IntN(100)) * time.Millisecond, random.IntN(4) == 0
			}
			all := map[string]*candidate{}
			leaders := func() (n int) {
				for _, c := range all {
					if c.leads() {
						n++
					}
				}
				return n
			}
			lives := 0
			for i := range 3000 {
				for _, name := range []string{"a", "b", "c"} {
					if all[name] == nil {
						lives++
						all[name] = candidateFor(t, s, fmt.Sprintf("%s%d", name, lives), trouble)
					}
					select {
					case <-all[name].ended: // restarted after a loss
						delete(all, name)
					default:
					}
				}
				time.Sleep(100 * time.Millisecond)
				if n := leaders(); n > 1 {
					t.Fatalf("seed %d, step %d: %d processes lead", seed, i, n)
				}
			}
			mu.Lock()
			bad = false
			mu.Unlock()
			time.Sleep(time.Minute)
			if n := leaders(); n != 1 {
				t.Errorf("seed %d: %d processes lead after the trouble", seed, n)
			}
			for _, c := range all {
				c.stop()
				<-c.ended
			}
		})
	}
}

// A leader is suspended in the middle of a renewal, and another process takes over.
// When it wakes, it neither acts nor takes the lease from its successor.
func TestLeaseSuspended(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := new(leases)
		a := candidateFor(t, s, "a", nil)
		synctest.Wait()
		b := candidateFor(t, s, "b", nil)
		time.Sleep(time.Minute)
		a.suspended.Store(true)
		for !b.leads() {
			time.Sleep(100 * time.Millisecond)
		}
		a.suspended.Store(false)
		if err := <-a.ended; !errors.Is(err, ErrLost) {
			t.Error(err)
		}
		if !b.leads() || s.holder() != "b" || s.transitions() != 1 {
			t.Errorf("%q has the lease after %d transitions", s.holder(), s.transitions())
		}
		b.stop()
		<-b.ended
	})
}

// suspendable is the lock of a process that can be suspended. Its requests fail
// when it wakes, because their deadlines have passed.
type suspendable struct {
	resourcelock.Interface
	suspended *atomic.Bool
}

func (s *suspendable) Update(ctx context.Context, r resourcelock.LeaderElectionRecord) error {
	if s.suspended.Load() {
		for s.suspended.Load() {
			time.Sleep(time.Second)
		}
		return context.DeadlineExceeded
	}
	return s.Interface.Update(ctx, r)
}

func (s *suspendable) Get(ctx context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	if err := ctx.Err(); err != nil {
		return nil, nil, err
	}
	return s.Interface.Get(ctx)
}

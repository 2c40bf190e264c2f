package kube

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
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
)

// leases is as much of an API server as a lease needs: one object, which is
// changed only where it is still as it was read.
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
	if s.lease == nil {
		return ""
	}
	return text(s.lease.Spec.HolderIdentity)
}

// trip is how a process reaches the API server: trouble says, before each
// request and after it, how long it takes and whether it fails.
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
	stop   context.CancelFunc
	ended  chan error
	acting atomic.Bool
	asked  atomic.Bool // to end
}

func candidateFor(t *testing.T, s *leases, name string, trouble func() (time.Duration, bool)) *candidate {
	t.Helper()
	client, err := NewClient(&rest.Config{Host: "http://api", Transport: &trip{s.serve, trouble}})
	if err != nil {
		t.Fatal(err)
	}
	c := &candidate{Lease: NewLease(client, "ours", "lease", name, slog.New(slog.DiscardHandler)), ended: make(chan error, 1)}
	ctx, stop := context.WithCancel(t.Context())
	c.stop = func() { c.asked.Store(true); stop() }
	go func() {
		c.ended <- c.Run(ctx, func(ctx context.Context) {
			c.acting.Store(true)
			<-ctx.Done()
			time.Sleep(3 * time.Second) // what is under way
			if c.asked.Load() && c.holds() && s.holder() != name {
				t.Errorf("%s gave the lease back before it had ended", name)
			}
			c.acting.Store(false)
		})
	}()
	return c
}

func (c *candidate) holds() bool { _, err := c.Held(); return err == nil }

// One acts; when it ends, the next need not wait for the term.
func TestLeaseGivenBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := new(leases)
		a := candidateFor(t, s, "a", nil)
		synctest.Wait()
		b := candidateFor(t, s, "b", nil)
		time.Sleep(time.Minute)
		if !a.holds() || !a.acting.Load() || b.holds() || b.acting.Load() {
			t.Fatalf("a %v, b %v", a.holds(), b.holds())
		}
		a.stop()
		if err := <-a.ended; err != nil {
			t.Error(err)
		}
		if a.holds() {
			t.Error("held although given back")
		}
		time.Sleep(leasePace + time.Second)
		if !b.holds() || !b.acting.Load() || s.holder() != "b" {
			t.Errorf("b does not act: %q", s.holder())
		}
		b.stop()
		<-b.ended
	})
}

// A holder that cannot renew stops before another may begin.
func TestLeaseLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := new(leases)
		var cut atomic.Bool
		a := candidateFor(t, s, "a", func() (time.Duration, bool) {
			if cut.Load() {
				return time.Hour, false
			}
			return 0, false
		})
		synctest.Wait()
		b := candidateFor(t, s, "b", nil)
		time.Sleep(time.Minute)
		cut.Store(true)
		for range 300 {
			time.Sleep(100 * time.Millisecond)
			if a.holds() && b.holds() {
				t.Fatal("both hold the lease")
			}
		}
		if !b.holds() {
			t.Error("nobody took over")
		}
		if err := <-a.ended; !errors.Is(err, ErrLost) {
			t.Errorf("%v", err)
		}
		b.stop()
		<-b.ended
	})
}

// Somebody else's change of the object, such as a label, costs nothing.
func TestLeaseTouched(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := new(leases)
		a := candidateFor(t, s, "a", nil)
		for range 50 {
			time.Sleep(700 * time.Millisecond)
			s.mu.Lock()
			s.version++
			touched := *s.lease
			touched.ResourceVersion = strconv.Itoa(s.version)
			s.lease = &touched
			s.mu.Unlock()
			if !a.holds() {
				t.Fatal("lost")
			}
		}
		a.stop()
		if err := <-a.ended; err != nil {
			t.Error(err)
		}
	})
}

// However requests are late or lost, with effect or without: no two processes
// hold the lease at a time, and somebody does once the trouble is over.
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
			lives := 0
			for i := range 3000 {
				for _, name := range []string{"a", "b", "c"} {
					if all[name] == nil {
						lives++
						all[name] = candidateFor(t, s, fmt.Sprintf("%s%d", name, lives), trouble)
					}
					select {
					case <-all[name].ended: // lost it; started again
						delete(all, name)
					default:
					}
				}
				time.Sleep(100 * time.Millisecond)
				holders := 0
				for _, c := range all {
					if c.holds() {
						holders++
					}
				}
				if holders > 1 {
					t.Fatalf("seed %d, step %d: %d hold the lease", seed, i, holders)
				}
			}
			mu.Lock()
			bad = false
			mu.Unlock()
			time.Sleep(time.Minute)
			holders := 0
			for _, c := range all {
				if c.holds() {
					holders++
				}
			}
			if holders != 1 {
				t.Errorf("seed %d: %d hold the lease once the trouble is over", seed, holders)
			}
			for _, c := range all {
				c.stop()
				<-c.ended
			}
		})
	}
}

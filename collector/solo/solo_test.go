package solo_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/accel-exporter/accel-exporter/collector/solo"
)

// No call is made while one is in flight, and its late answer is not lost.
func TestWorker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hang, calls, ended := make(chan struct{}), 0, false
		w := solo.New(func(time.Time) int { calls++; <-hang; return calls }, func() { ended = true })
		gone := make(chan struct{})
		close(gone)
		if _, ok := w.Await(gone); ok {
			t.Error("an answer without a call")
		}
		now := time.Now()
		if !w.Start(now) || w.Start(now) || !w.Busy || w.Asked != now {
			t.Error("a second call behind the first")
		}
		synctest.Wait()
		if _, ok := w.Await(gone); ok || calls != 1 {
			t.Errorf("answered before it returned; %d calls", calls)
		}
		close(hang)
		synctest.Wait()
		if v, ok := w.Await(gone); !ok || v != 1 || w.Busy {
			t.Errorf("the answer is %d, %v", v, ok)
		}
		if !w.Start(now) {
			t.Error("not free again")
		}
		synctest.Wait()
		if v, ok := w.Poll(); !ok || v != 2 {
			t.Errorf("the second answer is %d, %v", v, ok)
		}
		w.Stop()
		synctest.Wait()
		if !w.Stopped(gone) || !ended {
			t.Error("not ended")
		}
	})
}

// A stopped Worker ends when its call returns, whether or not the answer is
// taken.
func TestStopInACall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hang := make(chan struct{})
		w := solo.New(func(time.Time) int { <-hang; return 1 }, nil)
		w.Start(time.Now())
		w.Stop()
		gone := make(chan struct{})
		close(gone)
		if w.Stopped(gone) {
			t.Error("ended within a call")
		}
		close(hang)
		if !w.Stopped(nil) {
			t.Error("not ended")
		}
	})
}

// TestSlot: an earlier answer is used while the next call is slow, an overdue call
// makes its slot stuck, its late answer is out of date, and a slot that has answered
// is not stuck because another one has used up the round.
func TestSlot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var hang atomic.Pointer[chan struct{}] // nil: calls return
		block := func() { c := make(chan struct{}); hang.Store(&c) }
		release := func() { close(*hang.Swap(nil)); synctest.Wait() }
		last, calls := 0, 0
		take := func(v int) bool { last = v; return true }
		slow := &solo.Slot[int]{Worker: solo.New(func(time.Time) int {
			calls++
			if c := hang.Load(); c != nil {
				<-*c
			}
			return calls
		}, nil)}
		quick := &solo.Slot[int]{Worker: solo.New(func(time.Time) int { return 0 }, nil)}
		defer quick.Stop()
		round := func() {
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
			defer cancel()
			r, end := solo.Begin(ctx)
			defer end()
			slow.Ask(r, take)
			quick.Ask(r, func(int) bool { return true })
			slow.Gather(r, take)
			quick.Gather(r, func(int) bool { return true })
			time.Sleep(time.Second)
		}
		check := func(when string, valid, stuck bool, want int) {
			t.Helper()
			if slow.Valid != valid || slow.Stuck != stuck || last != want || !quick.Valid {
				t.Errorf("%s: valid %v, stuck %v, answer %d; the other is valid: %v", when, slow.Valid, slow.Stuck, last, quick.Valid)
			}
		}
		block()
		round()
		check("first call hangs", false, true, 0)
		release()
		round()
		check("answered", true, false, 2)
		block()
		round()
		check("slow", true, false, 2)
		round()
		check("overdue", false, true, 2)
		release()
		block()
		round()
		check("late answer", false, true, 3)
		release()
		slow.Stop()
	})
}

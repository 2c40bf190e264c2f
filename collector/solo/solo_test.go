package solo_test

import (
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

package podmap_test

import (
	"context"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/accel-exporter/accel-exporter/internal/sim/kubelet"
	"github.com/accel-exporter/accel-exporter/podmap"
)

func TestPodsStartAndEnd(t *testing.T) {
	bubble(t, podmap.Options{}, func(t *testing.T, r *rig) {
		if diff := cmp.Diff([]string{"starting"}, lines(r.w.Latest())); diff != "" {
			t.Error(diff)
		}
		r.srv.SetPods(proxy, train)
		r.srv.SetAllocatable(map[string][]string{gpu: {gpuB, gpuA}})
		r.run()
		r.want("first list", "unconfirmed", trainLine)
		<-r.w.Changed()
		r.settle()
		r.want("a minute later", "fresh", trainLine)
		first := r.w.Latest().Allocations[0]
		if !first.After.IsZero() || first.Since.Equal(r.w.Latest().Time) {
			t.Errorf("an allocation with an unobserved start: %+v", first)
		}
		complete := r.w.Latest().Confirmed

		r.lists(proxy, train, serve)
		r.want("with one more", "fresh", trainLine, serveLine)
		h := r.w.Latest().Of(gpuB)
		if len(h) != 1 || h[0].After.Before(complete) || !h[0].Since.Equal(r.w.Latest().Time) {
			t.Errorf("an allocation with an observed start: %+v", h)
		}
		r.lists(proxy, serve)
		r.want("with one less", "fresh", serveLine)
		r.lists()
		r.want("with none", "fresh")
		want := []podmap.Allocatable{{Resource: gpu, IDs: []string{gpuA, gpuB}}}
		if diff := cmp.Diff(want, r.w.Latest().Allocatable); diff != "" {
			t.Errorf("allocatable (-want +got):\n%s", diff)
		}
	})
}

// TestRestart: a kubelet that restarts lists no pods, then some, then all.
func TestRestart(t *testing.T) {
	bubble(t, podmap.Options{}, func(t *testing.T, r *rig) {
		r.start(node...)
		r.want("before", "fresh", trainLine, serveLine)
		since := r.w.Latest().Allocations[0].Since

		r.restart()
		r.want("while it lists no pods", "unconfirmed", trainLine+" kept", serveLine+" kept")
		r.lists(proxy, train)
		r.want("while it lists some", "unconfirmed", trainLine, serveLine+" kept")
		if s := r.w.Status(); s.Kept != 1 || !strings.Contains(s.Reason, "3 of 5 pods") {
			t.Errorf("kept %d, because %q", s.Kept, s.Reason)
		}
		r.lists(node...)
		r.want("with all pods", "fresh", trainLine, serveLine)
		if got := r.w.Latest().Allocations[0].Since; !got.Equal(since) {
			t.Errorf("since %v, was %v", got, since)
		}
		r.lists(proxy)
		r.want("afterwards", "fresh")
	})
}

// TestRestartWithoutSome: allocations of pods that ended during the restart are released
// when the list has not grown for Settle. They are kept while this exporter's own pod
// does not show that the kubelet reaches the API server.
func TestRestartWithoutSome(t *testing.T) {
	self := podmap.Pod{Namespace: "kube-system", Name: "plugin"}
	for _, c := range []struct {
		name  string
		self  podmap.Pod
		back  []kubelet.Pod
		after time.Duration
		want  []string
	}{
		{
			name: "most are listed, for less than Settle", self: self, back: node[:4], after: 50 * time.Second,
			want: []string{"unconfirmed", trainLine, serveLine + " kept"},
		},
		{name: "most are listed", self: self, back: node[:4], after: 70 * time.Second, want: []string{"fresh", trainLine}},
		{
			name: "most are listed, and this exporter is unknown", back: node[:4], after: 30 * time.Minute,
			want: []string{"unconfirmed", trainLine, serveLine + " kept"},
		},
		{name: "static pods only, for an hour", back: node[:1], after: 62 * time.Minute, want: []string{"fresh"}},
		{
			name: "all but this exporter", self: self, back: []kubelet.Pod{proxy, dns, train}, after: 30 * time.Minute,
			want: []string{"unconfirmed", trainLine, serveLine + " kept"},
		},
		{name: "only this exporter", self: self, back: []kubelet.Pod{plugin}, after: 70 * time.Second, want: []string{"fresh"}},
		{
			name: "none, for less than an hour", after: 58 * time.Minute,
			want: []string{"unconfirmed", trainLine + " kept", serveLine + " kept"},
		},
		{name: "none, for more than an hour", after: 62 * time.Minute, want: []string{"unconfirmed"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			bubble(t, podmap.Options{Self: c.self}, func(t *testing.T, r *rig) {
				r.start(node...)
				r.restart()
				r.lists(c.back...)
				time.Sleep(c.after)
				r.list()
				r.want(c.after.String(), c.want...)
			})
		})
	}
}

// TestReady: a kubelet that reports when it has its pods is believed, at once and in both
// directions, whatever the list looks like.
func TestReady(t *testing.T) {
	ready, known := true, true
	o := podmap.Options{Ready: func(context.Context) (bool, bool) { return ready, known }}
	bubble(t, o, func(_ *testing.T, r *rig) {
		r.srv.SetPods(node...)
		r.run()
		r.want("at first", "fresh", trainLine, serveLine)
		ready = false
		r.restart(node...)
		r.want("while it waits, though every pod is listed", "unconfirmed", trainLine, serveLine)
		r.lists(proxy)
		r.pass(2 * time.Minute)
		r.want("while it waits", "unconfirmed", trainLine+" kept", serveLine+" kept")
		ready = true
		r.lists(proxy, train)
		r.want("once it has its pods", "fresh", trainLine)
		known = false
		r.restart(node...)
		r.want("a kubelet without that API", "fresh", trainLine, serveLine)
	})
}

// TestRestartTwice: a pod that was first listed between two restarts is kept like the
// others.
func TestRestartTwice(t *testing.T) {
	bubble(t, podmap.Options{}, func(t *testing.T, r *rig) {
		r.start(proxy, train)
		r.restart(proxy, serve)
		r.want("after the first", "unconfirmed", trainLine+" kept", serveLine)
		r.restart(proxy, train)
		r.want("after the second", "unconfirmed", trainLine, serveLine+" kept")
		r.lists(proxy, train, serve)
		r.want("in the end", "fresh", trainLine, serveLine)
	})
}

func TestKeptIsContradicted(t *testing.T) {
	other := kubelet.Simple("ml", "other", gpu, gpuA)
	bubble(t, podmap.Options{}, func(t *testing.T, r *rig) {
		r.start(node...)
		r.restart(proxy, other)
		r.want("when another has the device", "unconfirmed", gpu+" "+gpuA+": ml/other main", serveLine+" kept")
	})
}

// TestOutage: while the kubelet does not answer, allocations become stale and expire.
func TestOutage(t *testing.T) {
	bubble(t, podmap.Options{}, func(t *testing.T, r *rig) {
		r.start(node...)
		r.srv.Stop()
		r.list()
		r.want("after the first failure", "stale", trainLine, serveLine)
		s := r.w.Status()
		if s.Reachable || s.Last != podmap.OutcomeUnavailable && s.Last != podmap.OutcomeRefused {
			t.Errorf("status: %+v", s)
		}
		r.pass(58 * time.Minute)
		r.want("before an hour", "stale", trainLine, serveLine)
		if s := r.w.Status(); s.Age < 58*time.Minute || s.Last != podmap.OutcomeRefused || !strings.Contains(s.LastError, "connection refused") {
			t.Errorf("status: %+v", s)
		}
		r.pass(3 * time.Minute)
		r.want("after an hour", "unreachable")
		r.restart(node...)
		r.settle()
		r.want("after the restart", "fresh", trainLine, serveLine)
	})
}

// TestSocketChanges: the socket is missing, appears, is removed and is replaced.
func TestSocketChanges(t *testing.T) {
	bubble(t, podmap.Options{}, func(t *testing.T, r *rig) {
		remove := func() {
			if err := os.Remove(r.path); err != nil {
				t.Fatal(err)
			}
		}
		r.srv.SetPods(node...)
		remove()
		r.run()
		<-r.w.Changed()
		r.pass(5 * time.Minute)
		r.want("outside Kubernetes", "absent")
		select {
		case <-r.w.Changed():
			t.Error("Changed without a change")
		default:
		}
		r.socket()
		r.list()
		r.settle()
		r.want("when it appears", "fresh", trainLine, serveLine)
		remove()
		r.list()
		r.want("when it is removed", "stale", trainLine, serveLine)
		r.socket()
		r.list()
		r.want("when it is back", "fresh", trainLine, serveLine)
		// An old kubelet can still answer on its old socket.
		was, err := os.Stat(r.path)
		if err != nil {
			t.Fatal(err)
		}
		r.socket()
		if err := os.Chtimes(r.path, was.ModTime(), was.ModTime()); err != nil { // as with a coarse clock
			t.Fatal(err)
		}
		r.list()
		r.want("when it is replaced", "fresh", trainLine, serveLine)
		now := time.Now() // a new file with the same inode number
		if err := os.Chtimes(r.path, now, now); err != nil {
			t.Fatal(err)
		}
		r.lists(proxy, train)
		r.want("when it is replaced again, by a kubelet that lists some pods", "unconfirmed", trainLine, serveLine+" kept")
		if s := r.w.Status(); s.Calls[podmap.OutcomeNoSocket] < 30 {
			t.Errorf("status: %+v", s)
		}
	})
}

// TestHang: while the kubelet hangs, one call is in flight and the last answer stays.
func TestHang(t *testing.T) {
	bubble(t, podmap.Options{}, func(t *testing.T, r *rig) {
		r.start(node...)
		r.srv.Hang()
		for range 20 {
			r.w.Refresh()
			time.Sleep(3 * time.Second)
		}
		synctest.Wait()
		r.want("while it hangs", "stale", trainLine, serveLine)
		if s := r.w.Status(); s.Last != podmap.OutcomeTimeout {
			t.Errorf("status: %+v", s)
		}
		r.srv.Resume()
		r.srv.SetPods(proxy, train)
		r.list()
		r.list()
		r.want("when the same kubelet answers again", "fresh", trainLine)
		if _, most := r.srv.Calls(); most != 1 {
			t.Errorf("%d concurrent calls", most)
		}
	})
}

func TestFailures(t *testing.T) {
	limited := kubelet.ErrRateLimited
	fail := func(err error) func(*rig) {
		return func(r *rig) { r.srv.Fail(slices.Repeat([]error{err}, 4)...) }
	}
	for _, c := range []struct {
		name string
		do   func(*rig)
		last podmap.Outcome
		want string
	}{
		{name: "rate limit, once", do: func(r *rig) { r.srv.Fail(limited) }, last: podmap.OutcomeOK, want: "fresh"},
		{name: "rate limit, for longer", do: fail(limited), last: podmap.OutcomeRateLimited, want: "stale"},
		{name: "too large", do: func(r *rig) { r.srv.Pad(65 << 20) }, last: podmap.OutcomeTooLarge, want: "stale"},
		{name: "no protobuf", do: func(r *rig) { r.srv.Garbage(true) }, last: podmap.OutcomeGarbage, want: "stale"},
		{name: "not implemented", do: fail(status.Error(codes.Unimplemented, "unknown service")), last: podmap.OutcomeUnimplemented, want: "stale"},
		{name: "denied", do: fail(status.Error(codes.PermissionDenied, "no")), last: podmap.OutcomeDenied, want: "stale"},
		{name: "another error", do: fail(status.Error(codes.Unknown, "no luck")), last: podmap.OutcomeError, want: "stale"},
	} {
		t.Run(c.name, func(t *testing.T) {
			bubble(t, podmap.Options{}, func(t *testing.T, r *rig) {
				r.start(node...)
				c.do(r)
				r.list()
				r.pass(600 * time.Millisecond) // the retry after the rate limit
				r.want("during the failure", c.want, trainLine, serveLine)
				if s := r.w.Status(); s.Last != c.last || s.Calls[c.last] == 0 || (s.LastError == "") != (c.last == podmap.OutcomeOK) {
					t.Errorf("status: %+v", s)
				}
				r.srv.Pad(0)
				r.srv.Garbage(false)
				r.pass(time.Minute)
				r.want("after the failure", "fresh", trainLine, serveLine)
			})
		})
	}
}

// TestPace: the kubelet is called every interval, at once on request, at most once a
// second, and with increasing pauses while it fails.
func TestPace(t *testing.T) {
	bubble(t, podmap.Options{}, func(t *testing.T, r *rig) {
		lists := func() (n int) {
			for _, c := range r.w.Status().Calls {
				n += int(c)
			}
			return n
		}
		r.run()
		steps := []struct {
			name string
			do   func()
			want int
		}{
			{"a minute", func() { time.Sleep(time.Minute) }, 6},
			{"refresh", func() { r.w.Refresh(); synctest.Wait() }, 1},
			{"refresh continuously", func() {
				for range 100 {
					r.w.Refresh()
					time.Sleep(50 * time.Millisecond)
				}
			}, 5},
			{"down for a minute", func() {
				time.Sleep(9 * time.Second)
				r.srv.Stop()
				time.Sleep(time.Minute)
			}, 9},
		}
		time.Sleep(5 * time.Second)
		for _, s := range steps {
			before := lists()
			s.do()
			synctest.Wait()
			if got := lists() - before; got < s.want-1 || got > s.want+1 {
				t.Errorf("%s: %d lists, want about %d", s.name, got, s.want)
			}
		}
	})
}

// TestOldKubelet plays a scenario with a kubelet before 1.34.
func TestOldKubelet(t *testing.T) {
	next := kubelet.Simple("ml", "next", gpu, gpuA)
	nextLine := gpu + " " + gpuA + ": ml/next main"
	old := "superseded: " + trainLine
	bubble(t, podmap.Options{}, func(t *testing.T, r *rig) {
		r.run()
		for _, step := range []struct {
			do   func()
			want []string
		}{
			{func() { r.srv.Old(true); r.srv.SetPods(proxy, train) }, []string{"fresh", trainLine}},
			{func() { r.srv.SetPods(proxy, serve) }, []string{"fresh", trainLine, serveLine}}, // train has ended and is still listed
			{func() { r.srv.SetPods(proxy, serve, next) }, []string{"fresh", nextLine, serveLine, old}},
			{r.srv.Hang, []string{"stale", nextLine, serveLine, old}},
			{func() {
				r.srv.Resume()
				r.srv.Old(false) // train is deleted
				r.srv.Fail(slices.Repeat([]error{kubelet.ErrRateLimited}, 3)...)
			}, []string{"fresh", nextLine, serveLine}},
		} {
			step.do()
			r.pass(9 * time.Minute)
			r.want(r.w.Latest().Time.String(), step.want...)
			time.Sleep(time.Minute)
		}
	})
}

// TestFirstList: whether the first list of the Watcher counts as complete.
func TestFirstList(t *testing.T) {
	self := podmap.Pod{Namespace: "kube-system", Name: "plugin"}
	for _, c := range []struct {
		name string
		up   time.Duration // uptime of the kubelet
		self podmap.Pod
		pods []kubelet.Pod
		want podmap.State
	}{
		{"of a running kubelet", time.Hour, podmap.Pod{}, node, podmap.StateFresh},
		{"of a kubelet that has just started", time.Second, podmap.Pod{}, node, podmap.StateUnconfirmed},
		{"of a kubelet with a start time in the future", -time.Hour, podmap.Pod{}, node, podmap.StateUnconfirmed},
		{"without pods", time.Hour, podmap.Pod{}, nil, podmap.StateUnconfirmed},
		{"with this exporter", time.Second, self, node, podmap.StateFresh},
		{"without this exporter", time.Hour, self, node[:2], podmap.StateUnconfirmed},
	} {
		t.Run(c.name, func(t *testing.T) {
			bubble(t, podmap.Options{Self: c.self}, func(t *testing.T, r *rig) {
				started := time.Now().Add(-c.up)
				if err := os.Chtimes(r.path, started, started); err != nil {
					t.Fatal(err)
				}
				r.srv.SetPods(c.pods...)
				r.run()
				s := r.w.Status()
				if s.State != c.want || (s.Reason == "") != (c.want == podmap.StateFresh) {
					t.Errorf("%s because of %q, want %s", s.State, s.Reason, c.want)
				}
			})
		})
	}
}

package podmap_test

import (
	"os"
	"testing"
	"testing/synctest"
	"time"

	"github.com/accel-exporter/accel-exporter/internal/sim/kubelet"
	"github.com/accel-exporter/accel-exporter/podmap"
)

// TestOldKubelet plays a scenario with a kubelet before 1.34.
func TestOldKubelet(t *testing.T) {
	next := kubelet.Simple("ml", "next", gpu, gpuA)
	nextLine := gpu + " " + gpuA + ": ml/next main"
	old := "superseded: " + trainLine
	bubble(t, podmap.Options{}, func(t *testing.T, r *rig) {
		r.run()
		done := make(chan error)
		go func() {
			done <- r.srv.Play(t.Context(), []kubelet.Step{
				{Do: "old"},
				{Do: "pods", Pods: []kubelet.Pod{proxy, train}},
				{After: 10 * time.Minute, Do: "pods", Pods: []kubelet.Pod{proxy, serve}}, // train ends
				{After: 10 * time.Minute, Do: "pods", Pods: []kubelet.Pod{proxy, serve, next}},
				{After: 10 * time.Minute, Do: "hang"},
				{After: 10 * time.Minute, Do: "resume"},
				{Do: "new"}, // train is deleted
				{Do: "limit", Times: 3},
			})
		}()
		for _, want := range [][]string{
			{"fresh", trainLine},
			{"fresh", trainLine, serveLine}, // train has ended and is still listed
			{"fresh", nextLine, serveLine, old},
			{"stale", nextLine, serveLine, old},
			{"fresh", nextLine, serveLine},
		} {
			time.Sleep(9 * time.Minute)
			synctest.Wait()
			r.want(r.w.Latest().Time.String(), want...)
			time.Sleep(time.Minute)
		}
		if err := <-done; err != nil {
			t.Error(err)
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

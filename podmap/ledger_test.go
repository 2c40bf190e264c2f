package podmap_test

import (
	"strings"
	"testing"
	"time"

	"github.com/accel-exporter/accel-exporter/internal/sim/kubelet"
	"github.com/accel-exporter/accel-exporter/podmap"
)

const dra = "gpu.nvidia.com"

// claimed returns a pod with two containers and a claim of one device.
func claimed(name, claim, device, share string) kubelet.Pod {
	return kubelet.Pod{
		Namespace: "ml", Name: name, Containers: []kubelet.Container{{Name: "main"}, {Name: "sidecar"}},
		Claims: []kubelet.Claim{{Namespace: "ml", Name: claim, Devices: []kubelet.ClaimDevice{{Driver: dra, Pool: "node1", Device: device, Share: share}}}},
	}
}

// TestTwoPodsOneDevice: which pod has a device that is listed for two pods.
func TestTwoPodsOneDevice(t *testing.T) {
	pod := func(name, id string) kubelet.Pod { return kubelet.Simple("ml", name, gpu, id) }
	for _, c := range []struct {
		name  string
		lists [][]kubelet.Pod // of a kubelet that has not restarted
		want  []string
	}{
		{
			name:  "before 1.34, a pod that has ended and its successor",
			lists: [][]kubelet.Pod{{pod("a", gpuA)}, {pod("a", gpuA), pod("b", gpuA)}},
			want:  []string{gpu + " " + gpuA + ": ml/b main", "superseded: " + gpu + " " + gpuA + ": ml/a main"},
		},
		{
			name:  "the successor has ended too",
			lists: [][]kubelet.Pod{{pod("a", gpuA)}, {pod("a", gpuA), pod("b", gpuA)}, {pod("a", gpuA)}},
			want:  []string{"superseded: " + gpu + " " + gpuA + ": ml/a main"},
		},
		{
			name:  "three in a row",
			lists: [][]kubelet.Pod{{pod("a", gpuA)}, {pod("a", gpuA), pod("b", gpuA)}, {pod("a", gpuA), pod("b", gpuA), pod("c", gpuA)}},
			want: []string{
				gpu + " " + gpuA + ": ml/c main",
				"superseded: " + gpu + " " + gpuA + ": ml/a main", "superseded: " + gpu + " " + gpuA + ": ml/b main",
			},
		},
		{
			name:  "both there from the start",
			lists: [][]kubelet.Pod{{pod("a", gpuA), pod("b", gpuA)}},
			want:  []string{gpu + " " + gpuA + ": ml/a main contested", gpu + " " + gpuA + ": ml/b main contested"},
		},
		{
			name:  "one of them gets the device again",
			lists: [][]kubelet.Pod{{pod("a", gpuA)}, {pod("a", gpuA), pod("b", gpuA)}, {pod("b", gpuA)}, {pod("b", gpuA), pod("a", gpuA)}},
			want:  []string{gpu + " " + gpuA + ": ml/a main", "superseded: " + gpu + " " + gpuA + ": ml/b main"},
		},
		{
			name:  "two replicas",
			lists: [][]kubelet.Pod{{pod("a", gpuA+"::0")}, {pod("a", gpuA+"::0"), pod("b", gpuA+"::1")}},
			want:  []string{gpu + " " + gpuA + "::0: ml/a main shared", gpu + " " + gpuA + "::1: ml/b main shared"},
		},
		{
			name:  "one replica",
			lists: [][]kubelet.Pod{{pod("a", gpuA+"::0"), pod("b", gpuA+"::0")}},
			want:  []string{gpu + " " + gpuA + "::0: ml/a main shared contested", gpu + " " + gpuA + "::0: ml/b main shared contested"},
		},
		{
			name:  "the whole and a replica of it",
			lists: [][]kubelet.Pod{{pod("a", gpuA), pod("b", gpuA+"::0")}},
			want:  []string{gpu + " " + gpuA + ": ml/a main contested", gpu + " " + gpuA + "::0: ml/b main shared contested"},
		},
		{
			name:  "one UUID under two resources",
			lists: [][]kubelet.Pod{{pod("a", gpuA), kubelet.Simple("ml", "b", "nvidia.com/gpu.shared", gpuA)}},
			want:  []string{gpu + " " + gpuA + ": ml/a main contested", "nvidia.com/gpu.shared " + gpuA + ": ml/b main contested"},
		},
		{
			name:  "one number under two resources",
			lists: [][]kubelet.Pod{{kubelet.Simple("ml", "a", "a.com/x", "1"), kubelet.Simple("ml", "b", "b.com/x", "1")}},
			want:  []string{"a.com/x 1: ml/a main", "b.com/x 1: ml/b main"},
		},
		{
			name:  "a claim of two pods",
			lists: [][]kubelet.Pod{{claimed("a", "c", "gpu-0", "")}, {claimed("a", "c", "gpu-0", ""), claimed("b", "c", "gpu-0", "")}},
			want:  []string{dra + " gpu-0: ml/a main,sidecar shared", dra + " gpu-0: ml/b main,sidecar shared"},
		},
		{
			name:  "two claims, one perhaps with administrative access",
			lists: [][]kubelet.Pod{{claimed("a", "c", "gpu-0", "")}, {claimed("a", "c", "gpu-0", ""), claimed("b", "d", "gpu-0", "")}},
			want:  []string{dra + " gpu-0: ml/a main,sidecar contested", dra + " gpu-0: ml/b main,sidecar contested"},
		},
		{
			name:  "two shares",
			lists: [][]kubelet.Pod{{claimed("a", "c", "gpu-0", "x"), claimed("b", "d", "gpu-0", "y")}},
			want:  []string{dra + " gpu-0: ml/a main,sidecar shared", dra + " gpu-0: ml/b main,sidecar shared"},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			bubble(t, podmap.Options{}, func(t *testing.T, r *rig) {
				r.run()
				for i, pods := range c.lists {
					r.lists(append(pods, proxy)...)
					if i == 0 {
						r.settle()
					}
				}
				r.want("in the end", append([]string{"fresh"}, c.want...)...)
			})
		})
	}
}

// TestSince: an allocation that was not listed during an outage keeps its start. An
// allocation that is listed again after a complete list without it has a new start.
func TestSince(t *testing.T) {
	bubble(t, podmap.Options{}, func(t *testing.T, r *rig) {
		r.start(proxy, train)
		since := func() time.Time { return r.w.Latest().Of(gpuA)[0].Since }
		first := since()
		r.srv.Stop()
		time.Sleep(5 * time.Minute)
		r.restart()
		r.lists(proxy, train)
		if got := since(); !got.Equal(first) {
			t.Errorf("after a restart: since %v, was %v", got, first)
		}
		r.lists(proxy)
		r.lists(proxy, train)
		h := r.w.Latest().Of(gpuA)[0]
		if !h.Since.Equal(r.w.Latest().Time) || h.After.IsZero() || h.Since.Sub(h.After) > 2*time.Second {
			t.Errorf("after a list without it: %+v", h)
		}
	})
}

// TestSinceAcrossRestart: After of an allocation that is first listed after a restart is
// the time of the last complete list, not of a later incomplete one.
func TestSinceAcrossRestart(t *testing.T) {
	bubble(t, podmap.Options{}, func(t *testing.T, r *rig) {
		r.start(proxy, dns)
		complete := r.w.Latest().Confirmed
		r.restart()
		r.lists(proxy, train)
		if h := r.w.Latest().Of(gpuA)[0]; !h.After.Equal(complete) {
			t.Errorf("After is %v, want %v", h.After, complete)
		}
	})
}

// TestSupersededIsNotKept: a superseded allocation of an old kubelet is not kept when
// the restarted kubelet does not list it.
func TestSupersededIsNotKept(t *testing.T) {
	next := kubelet.Simple("ml", "next", gpu, gpuA)
	bubble(t, podmap.Options{}, func(t *testing.T, r *rig) {
		r.start(proxy, train)
		r.lists(proxy, train, next)
		r.restart(proxy)
		r.want("after a restart", "unconfirmed", gpu+" "+gpuA+": ml/next main kept")
	})
}

// TestHoldersTogether: if two pods had one device, an allocation that is listed again
// does not release the other one. A later one does.
func TestHoldersTogether(t *testing.T) {
	a, b := claimed("a", "c", "gpu-0", ""), claimed("b", "d", "gpu-0", "")
	bubble(t, podmap.Options{}, func(t *testing.T, r *rig) {
		r.start(proxy, a, b)
		r.restart(proxy, b)
		r.want("after a restart", "unconfirmed", dra+" gpu-0: ml/a main,sidecar kept contested", dra+" gpu-0: ml/b main,sidecar contested")
		r.lists(proxy, b, claimed("c", "e", "gpu-0", ""))
		r.want("with a later one", "unconfirmed", dra+" gpu-0: ml/b main,sidecar contested", dra+" gpu-0: ml/c main,sidecar contested")
	})
}

// TestTwoClaims: a device that one pod has through two claims is reported once.
func TestTwoClaims(t *testing.T) {
	p := claimed("a", "z", "gpu-0", "")
	p.Claims = append(p.Claims, claimed("a", "y", "gpu-0", "").Claims...)
	bubble(t, podmap.Options{}, func(t *testing.T, r *rig) {
		r.srv.SetPods(p)
		r.run()
		r.want("reported once", "unconfirmed", dra+" gpu-0: ml/a main,sidecar")
		if h := r.w.Latest().Allocations[0]; h.Claim != "ml/y" || h.Pool != "node1" {
			t.Errorf("%+v", h)
		}
	})
}

// TestAdminAccess: a claim with administrative access is no holder of its
// device and no conflict for it. A pod that has the device by another claim too
// is its holder.
func TestAdminAccess(t *testing.T) {
	user, monitor := claimed("user", "u", "gpu-0", ""), claimed("monitor", "admin", "gpu-0", "")
	both := claimed("both", "admin-2", "gpu-1", "")
	both.Claims = append(both.Claims, claimed("both", "own", "gpu-1", "").Claims...)
	read := false
	bubble(t, podmap.Options{AdminAccess: func(claim, driver, pool, device string, since time.Time) bool {
		if driver != dra || pool != "node1" || since.IsZero() {
			t.Errorf("requested %q of %q, since %v", pool, driver, since)
		}
		return read && strings.HasPrefix(claim, "ml/admin")
	}}, func(t *testing.T, r *rig) {
		r.start(proxy, user, monitor, both)
		r.want("before the claim was read", "fresh", dra+" gpu-0: ml/monitor main,sidecar contested", dra+" gpu-0: ml/user main,sidecar contested", dra+" gpu-1: ml/both main,sidecar")
		read = true
		r.list()
		r.want("after", "fresh", dra+" gpu-0: ml/monitor main,sidecar admin", dra+" gpu-0: ml/user main,sidecar", dra+" gpu-1: ml/both main,sidecar")
		if h := r.w.Latest().Allocations[2]; h.Claim != "ml/own" {
			t.Errorf("%+v", h)
		}
		// Its absence from an incomplete list ends neither.
		r.restart(proxy, monitor)
		r.want("the user is not listed yet", "unconfirmed", dra+" gpu-0: ml/monitor main,sidecar admin", dra+" gpu-0: ml/user main,sidecar kept", dra+" gpu-1: ml/both main,sidecar kept")
	})
}

// TestMalformed: entries of a list without a name or an id are skipped.
func TestMalformed(t *testing.T) {
	bubble(t, podmap.Options{}, func(t *testing.T, r *rig) {
		r.srv.SetPods(train, kubelet.Simple("ml", "", gpu, gpuB), kubelet.Simple("ml", "no-id", gpu, ""))
		r.run()
		r.want("of what can be read", "unconfirmed", trainLine)
	})
}

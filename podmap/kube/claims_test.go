package kube_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/accel-exporter/accel-exporter/podmap/kube"
)

const claimsPath = "/apis/resource.k8s.io/v1/namespaces/ml/resourceclaims/"

func resourceClaim(name string, admin bool) object {
	result := object{"request": "r", "driver": nvidia, "pool": node, "device": "gpu-0"}
	if admin {
		result["adminAccess"] = true
	}
	return object{
		"kind": "ResourceClaim", "metadata": object{"namespace": "ml", "name": name, "annotations": object{"token": "hunter2"}},
		"status": object{"allocation": object{"devices": object{"results": []object{result}}}},
	}
}

// gets returns the claims that were requested since the last call.
func (a *api) gets() (list []string) {
	for _, line := range a.requests() {
		if name, ok := strings.CutPrefix(line, "get "); ok {
			list = append(list, name)
		}
	}
	slices.Sort(list)
	return list
}

// TestAdminAccess: each claim is read once for as long as a pod has it, and
// only claims that a pod of this node has.
func TestAdminAccess(t *testing.T) {
	bubble(t, func(t *testing.T, a *api) {
		a.set(func() {
			a.objects[claimsPath+"monitor"], a.objects[claimsPath+"train"] = resourceClaim("monitor", true), resourceClaim("train", false)
		})
		w := a.run(withSlices)
		is := func(claim, device string, since time.Time) bool {
			return w.AdminAccess("ml/"+claim, nvidia, node, device, since)
		}
		began := time.Now()
		if is("monitor", "gpu-0", began) || is("train", "gpu-0", began) || is("gone", "gpu-0", began) {
			t.Error("known before any request")
		}
		synctest.Wait()
		if diff := cmp.Diff([]string{"gone", "monitor", "train"}, a.gets()); diff != "" {
			t.Errorf("requests (-want +got):\n%s", diff)
		}
		select {
		case <-w.ClaimsRead():
		default:
			t.Error("not notified")
		}
		if !is("monitor", "gpu-0", began) || is("monitor", "gpu-1", began) || is("train", "gpu-0", began) || is("gone", "gpu-0", began) {
			t.Error("not as the claims state it")
		}
		time.Sleep(time.Hour)
		is("monitor", "gpu-0", began)
		synctest.Wait()
		if got := a.gets(); got != nil {
			t.Errorf("requested %q again", got)
		}

		// Another claim of the same name.
		a.set(func() { a.objects[claimsPath+"monitor"] = resourceClaim("monitor", false) })
		if is("monitor", "gpu-0", time.Now()) {
			t.Error("the previous claim of that name answers for this one")
		}
		synctest.Wait()
		if is("monitor", "gpu-0", began) {
			t.Error("not read again")
		}
		if s := w.Status().Claims; s.State != kube.StateFresh || s.Objects != 3 {
			t.Errorf("%+v", s)
		}
	})
}

// TestAdminAccessDenied: without the permission nothing is known, and the
// request is repeated.
func TestAdminAccessDenied(t *testing.T) {
	bubble(t, func(t *testing.T, a *api) {
		a.set(func() {
			a.objects[claimsPath+"monitor"] = resourceClaim("monitor", true)
			a.answer = func(w http.ResponseWriter, r *http.Request) bool {
				if r.URL.Path != claimsPath+"monitor" {
					return false
				}
				refuse(w, http.StatusForbidden, "Forbidden", "resourceclaims is forbidden")
				return true
			}
		})
		w := a.run(withSlices)
		ask := func() bool { return w.AdminAccess("ml/monitor", nvidia, node, "gpu-0", time.Time{}) }
		ask()
		synctest.Wait()
		s := w.Status()
		if ask() || s.Claims.State != kube.StateAbsent || s.Claims.Reason == "" || s.Slices.State != kube.StateFresh || s.Pods.State != kube.StateFresh {
			t.Errorf("%+v", s.Claims)
		}
		a.set(func() { a.answer = nil })
		time.Sleep(time.Minute)
		if s := w.Status().Claims; !ask() || s.State != kube.StateFresh || s.Reason != "" {
			t.Errorf("%+v", s)
		}
	})
}

// TestAdminAccessOff: without slices no claim is read.
func TestAdminAccessOff(t *testing.T) {
	bubble(t, func(t *testing.T, a *api) {
		w := a.run()
		w.AdminAccess("ml/monitor", nvidia, node, "gpu-0", time.Time{})
		synctest.Wait()
		if got := a.gets(); got != nil || w.Status().Claims != nil {
			t.Errorf("requested %q", got)
		}
	})
}

package kubelet_test

import (
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/accel-exporter/accel-exporter/podmap/kube"
)

// What an API server, its store and the exporter's own token go through, one
// after the other, with one Watcher.
func TestClusterRecovery(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	c.permit()
	want := c.fill("pod", 20)
	w := c.meta(t, kube.Options{Labels: []string{"team"}})
	same := func(when string, m *kube.Map) {
		t.Helper()
		if diff := cmp.Diff(want, m.Pods, ignored); diff != "" {
			t.Errorf("%s (-want +got):\n%s", when, diff)
		}
	}
	same("at first", w.await(t, "all is listed", in("fresh", "fresh")))

	c.down()
	same("without an API server", w.await(t, "that is noticed", in("stale", "stale")))
	c.up()
	same("with it again", w.await(t, "it is back", in("fresh", "fresh")))

	// The state that the Watcher knows of is compacted away, and the server's
	// cache begins after it.
	open := w.gate.close()
	w.await(t, "cut off", in("stale", "stale"))
	c.do(http.MethodDelete, mlPods+"/pod-003", object{"gracePeriodSeconds": 0})
	c.do(http.MethodPatch, mlPods+"/pod-004", object{"metadata": object{"labels": object{"team": "another"}}})
	c.down()
	c.compact()
	c.up()
	open()
	m := w.await(t, "with another state", func(m *kube.Map) bool {
		gone, _ := m.Pod("ml", "pod-003")
		return in("fresh", "fresh")(m) && !gone.Deleted.IsZero()
	})
	if p, _ := m.Pod("ml", "pod-004"); p.Labels["team"] != "another" || len(m.Pods) != len(want) {
		t.Errorf("%d pods, %+v", len(m.Pods), p)
	}
}

// A token that ends is reported, and recovered from as soon as there is another.
func TestClusterToken(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	c.permit()
	want := c.fill("pod", 3)
	// A token that is bound to an object ends with it.
	secrets := "/api/v1/namespaces/" + exporter + "/secrets"
	secret := c.do(http.MethodPost, secrets, object{"metadata": object{"name": "first"}})
	token := c.token(object{"kind": "Secret", "apiVersion": "v1", "name": "first", "uid": text(secret, "metadata", "uid")})
	c.writeToken(token)
	w := c.meta(t, kube.Options{Labels: []string{"team"}})
	w.await(t, "all is listed", in("fresh", "fresh"))

	c.do(http.MethodDelete, secrets+"/first", nil)
	await(t, "the token has ended", c.api, func() bool {
		code, _, err := c.ask(http.MethodGet, "/api/v1/pods?limit=1", token, nil)
		return err == nil && code == http.StatusUnauthorized
	})
	w.gate.cut()
	m := w.await(t, "the missing token is reported", func(m *kube.Map) bool {
		s := w.Status()
		return in("stale", "stale")(m) && strings.Contains(s.Pods.Reason, "401") && strings.Contains(s.Slices.Reason, "401")
	})
	if diff := cmp.Diff(want, m.Pods, ignored); diff != "" {
		t.Errorf("without a token (-want +got):\n%s", diff)
	}
	c.writeToken(c.token(nil))
	w.await(t, "with another token", in("fresh", "fresh"))
}

// An etcd that was restored from a backup: the API server's versions begin
// again before the versions that the Watcher has seen.
func TestClusterRestored(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	c.permit()
	want := c.fill("pod", 3)
	c.down()
	c.end(&c.etcd)
	must(t, os.CopyFS(c.path("backup"), os.DirFS(c.path("etcd"))))
	c.up()
	c.fill("later", 40)
	w := c.meta(t, kube.Options{Labels: []string{"team"}})
	w.await(t, "all is listed", func(m *kube.Map) bool { return in("fresh", "fresh")(m) && len(m.Pods) == 43 })

	c.down()
	c.end(&c.etcd)
	must(t, os.RemoveAll(c.path("etcd")))
	must(t, os.Rename(c.path("backup"), c.path("etcd")))
	c.up()
	m := w.await(t, "the pods of the backup", func(m *kube.Map) bool {
		return in("fresh", "fresh")(m) && !slices.ContainsFunc(m.Pods, func(p kube.Pod) bool { return p.Deleted.IsZero() && strings.HasPrefix(p.Name, "later") })
	})
	var there []kube.Pod
	for _, p := range m.Pods {
		if p.Deleted.IsZero() {
			there = append(there, p)
		}
	}
	if diff := cmp.Diff(want, there, ignored); diff != "" {
		t.Errorf("pods (-want +got):\n%s", diff)
	}
}

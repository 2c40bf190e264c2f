package kube

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/accel-exporter/accel-exporter/internal/remediation"
)

var at = metav1.NewTime(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC))

// A patch has the version that the plan depends on, and a taint that the node had
// keeps its other fields. The answer 409 is a conflict.
func TestPatch(t *testing.T) {
	var sent string
	code := http.StatusOK
	c := clusterOf(t, func(r *http.Request) (*http.Response, error) {
		body, err := io.ReadAll(r.Body)
		sent = string(body)
		if code == http.StatusConflict {
			return answer(r, code, `{"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "Conflict", "code": 409}`)
		}
		resp, _ := answer(r, code, `{"kind": "Node", "apiVersion": "v1"}`)
		return resp, err
	})
	node := new(corev1.Node)
	node.Name, node.Spec.Taints = "n1", []corev1.Taint{{Key: "node.kubernetes.io/unreachable", Effect: "NoExecute", TimeAdded: &at}}
	if err := c.nodes.GetStore().Add(node); err != nil {
		t.Fatal(err)
	}
	p := &remediation.Patch{Version: "5", Taints: &[]remediation.Taint{
		{Key: "node.kubernetes.io/unreachable", Effect: "NoExecute"}, {Key: "accel.health", Value: "failed", Effect: "NoSchedule"},
	}}
	n1 := &remediation.Node{Name: "n1"}
	if err := c.Patch(t.Context(), n1, p); err != nil {
		t.Fatal(err)
	}
	const want = `{"metadata":{"resourceVersion":"5"},"spec":{"taints":[{"key":"node.kubernetes.io/unreachable","effect":"NoExecute","timeAdded":"2026-03-01T12:00:00Z"},{"key":"accel.health","value":"failed","effect":"NoSchedule"}]}}`
	if sent != want {
		t.Errorf("sent %s", sent)
	}
	code = http.StatusConflict
	if err := c.Patch(t.Context(), n1, p); !errors.Is(err, remediation.ErrConflict) {
		t.Error(err)
	}
}

// An eviction that a disruption budget refuses is sent once, even if the API
// server proposes a retry.
func TestEvictionRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		posts := 0
		c := clusterOf(t, func(r *http.Request) (*http.Response, error) {
			if r.Method == http.MethodGet {
				return answer(r, http.StatusOK, `{"kind": "Pod", "apiVersion": "v1", "metadata": {"name": "p", "uid": "u"}, "spec": {"nodeName": "n1"}}`)
			}
			if posts++; !strings.HasSuffix(r.URL.Path, "/namespaces/ml/pods/p/eviction") {
				t.Error(r.URL.Path)
			}
			resp, err := answer(r, http.StatusTooManyRequests, `{"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "TooManyRequests", "code": 429, "details": {"causes": [{"reason": "DisruptionBudget"}]}}`)
			resp.Header.Set("Retry-After", "10")
			return resp, err
		})
		how, err := c.Evict(t.Context(), "n1", &remediation.Pod{Namespace: "ml", Name: "p", Before: at.Time})
		if how != remediation.EvictBudget || err != nil || posts != 1 {
			t.Errorf("%q, %v, %d requests", how, err, posts)
		}
	})
}

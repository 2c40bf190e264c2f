package kube

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
)

// roundTripper is an API server that is a function.
type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func answer(r *http.Request, code int, body string) (*http.Response, error) {
	return &http.Response{
		StatusCode: code, Request: r, Body: io.NopCloser(bytes.NewBufferString(body)),
		Header: http.Header{"Content-Type": {"application/json"}},
	}, nil
}

const nodesJSON = `{"kind": "NodeList", "apiVersion": "v1", "metadata": {"resourceVersion": "7"}, "items": [{
	"metadata": {"name": "n1", "uid": "u", "resourceVersion": "5", "labels": {"pool": "a"},
		"annotations": {"accel.health/hold": "", "other": "x"}, "managedFields": [{"manager": "kubelet"}]},
	"spec": {"taints": [{"key": "k", "effect": "NoSchedule"}], "unschedulable": true},
	"status": {"images": [{"names": ["a"]}], "conditions": [{"type": "Ready", "status": "True"}, {"type": "AcceleratorsHealthy", "status": "False", "reason": "Lost"}]}}]}`

func clusterOf(t *testing.T, serve roundTripper) *Cluster {
	t.Helper()
	client, err := NewClient(&rest.Config{Host: "http://api", Transport: serve})
	if err != nil {
		t.Fatal(err)
	}
	return New(client, "ours", nil, func() {})
}

// A list or a watch that is never answered is given up.
func TestNodesHang(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := clusterOf(t, func(r *http.Request) (*http.Response, error) {
			<-r.Context().Done()
			return nil, r.Context().Err()
		})
		began := time.Now()
		if _, err := c.list(t.Context(), metav1.ListOptions{}); !errors.Is(err, context.DeadlineExceeded) || time.Since(began) != listTimeout {
			t.Errorf("a list: %v after %v", err, time.Since(began))
		}
		began = time.Now()
		if _, err := c.follow(t.Context(), metav1.ListOptions{}); !errors.Is(err, context.DeadlineExceeded) || time.Since(began) != watchTime+watchGrace {
			t.Errorf("a watch: %v after %v", err, time.Since(began))
		}
	})
}

// Of a node what is used is kept, and no more.
func TestSlim(t *testing.T) {
	c := clusterOf(t, func(r *http.Request) (*http.Response, error) { return answer(r, http.StatusOK, nodesJSON) })
	list, err := c.list(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	kept, err := slim(&list.(*nodeList).Items[0])
	if err != nil {
		t.Fatal(err)
	}
	n := kept.(*node).plain()
	if n.Name != "n1" || n.UID != "u" || n.Version != "5" || n.Labels["pool"] != "a" || len(n.Annotations) != 1 || len(n.Taints) != 1 ||
		!n.Unschedulable || n.Condition.Status != "False" || n.Condition.Reason != "Lost" {
		t.Errorf("%+v", n)
	}
	if k := kept.(*node); len(k.ManagedFields) != 0 || len(k.Status.Conditions) != 1 {
		t.Errorf("%+v", k)
	}
}

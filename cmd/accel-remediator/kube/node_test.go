package kube

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
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
	valid := func() (time.Time, error) { return time.Now().Add(time.Minute), nil }
	c, err := New(client, "ours", Exporters{"accel-exporter", "app=x"}, valid, func() {})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// hang is the body of an answer that never ends.
type hang struct{ ctx context.Context }

func (h hang) Read([]byte) (int, error) { <-h.ctx.Done(); return 0, h.ctx.Err() }
func (hang) Close() error               { return nil }

// A list or a watch without an answer is given up, and so is a watch whose
// connection is dead.
func TestNodesHang(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lists, watches := 0, 0
		c := clusterOf(t, func(r *http.Request) (*http.Response, error) {
			if q := r.URL.Query(); q.Get("sendInitialEvents") != "" { // an older API server
				return answer(r, http.StatusUnprocessableEntity, `{"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "Invalid", "code": 422}`)
			} else if q.Get("watch") == "" {
				if lists++; lists > 1 {
					return answer(r, http.StatusOK, nodesJSON)
				}
			} else if watches++; watches == 3 {
				return answer(r, http.StatusOK, `{"type": "DELETED", "object": {"kind": "Node", "apiVersion": "v1", "metadata": {"name": "n1", "resourceVersion": "8"}}}`)
			} else if watches == 2 {
				resp, err := answer(r, http.StatusOK, "")
				resp.Body = hang{r.Context()}
				return resp, err
			}
			<-r.Context().Done()
			return nil, r.Context().Err()
		})
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() { defer close(ended); c.Run(ctx) }()
		began := time.Now()
		if !c.Synced(ctx) || c.node("n1") == nil {
			t.Error("n1 is not listed")
		}
		for c.node("n1") != nil && time.Since(began) < time.Hour {
			time.Sleep(time.Second)
		}
		if took := time.Since(began); took > watchTime+2*longestRequest+time.Minute {
			t.Errorf("the node is gone after %v", took)
		}
		cancel()
		<-ended
	})
}

// The informer retains the parts of a node that a plan depends on.
func TestSlim(t *testing.T) {
	list := new(corev1.NodeList)
	if err := json.Unmarshal([]byte(nodesJSON), list); err != nil {
		t.Fatal(err)
	}
	slimmed, err := slim(&list.Items[0])
	if err != nil {
		t.Fatal(err)
	}
	kept := slimmed.(*corev1.Node)
	n := plain(kept)
	if n.Name != "n1" || n.UID != "u" || n.Version != "5" || n.Labels["pool"] != "a" || len(n.Annotations) != 1 || len(n.Taints) != 1 ||
		!n.Unschedulable || n.NotReady || n.Condition.Status != "False" || n.Condition.Reason != "Lost" {
		t.Errorf("%+v", n)
	}
	if len(kept.ManagedFields) != 0 || len(kept.Status.Conditions) != 2 || len(kept.Status.Images) != 0 {
		t.Errorf("%+v", kept)
	}
}

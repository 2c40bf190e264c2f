package kube

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"testing"
	"time"
)

const fuzzedPod = `{"kind":"Pod","metadata":{"name":"a","namespace":"b","uid":"c","labels":{"team":"x","password":"y","app.kubernetes.io/n":"\u00e9\ud83d\ude00"},"annotations":{"other":"x","traceparent":"00-1-2-01"},` +
	`"ownerReferences":[{"kind":"ReplicaSet","name":"w-1","controller":true}],"deletionTimestamp":"2026-01-01T00:00:00Z"},"spec":{"nodeName":"node","containers":[{"env":[1.5e3,null,true]}]},"status":{"phase":"Running"}}`

const fuzzedSlice = `{"kind":"ResourceSlice","metadata":{"name":"s"},"spec":{"driver":"d","nodeName":"node","pool":{"name":"p","generation":1,"resourceSliceCount":2},` +
	`"devices":[{"name":"gpu-0","attributes":{"uuid":{"string":"GPU-1"},"minor":{"int":0}}},{"name":"gpu-1","basic":{"attributes":{"pciAddr":{"string":"0000:c1:00.0"}}}}]}}`

// FuzzWatch: for any sequence of events, only allowed labels are kept, and every
// kept object can be found.
func FuzzWatch(f *testing.F) {
	f.Add([]byte(`{"type":"ADDED","object":` + fuzzedPod + "}\n" + `{"object":` + fuzzedPod + `,"type":"DELETED"}`))
	f.Add([]byte(`{"type":"ADDED","object":` + fuzzedSlice + `}{"type":"MODIFIED","object":` + fuzzedSlice + `}`))
	f.Add([]byte(`{"type":"ERROR","object":{"kind":"Status","status":"Failure","code":410}}`))
	f.Add([]byte(`{"type":"BOOKMARK","object":{"kind":"Pod","metadata":{"resourceVersion":"9","creationTimestamp":null}}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		w, err := New(Options{
			Server: "https://localhost", Node: "node", Pods: true, Slices: true,
			Labels: []string{"team", "app.kubernetes.io/*"}, Contexts: []string{"traceparent"},
		})
		if err != nil {
			t.Fatal(err)
		}
		a := newAnswer(bytes.NewReader(data))
		var listed []document
		for {
			var e event
			if a.next(&e) != nil {
				break
			}
			w.podFeed.event(context.Background(), &e)
			w.sliceFeed.event(context.Background(), &e)
			listed = append(listed, e.Object.document)
		}
		checkMap(t, w.Latest())
		w.pods.replace(listed, time.Now())
		w.slices.replace(listed, time.Now())
		w.dirty = true
		checkMap(t, w.Latest())
	})
}

func newAnswer(r io.Reader) *answer {
	a := &answer{ctx: context.Background(), read: io.LimitedReader{R: r}, most: 1 << 20}
	a.json = json.NewDecoder(&a.read)
	return a
}

// endless is a JSON text without an end.
type endless struct{}

func (endless) Read(p []byte) (int, error) {
	return copy(p, bytes.Repeat([]byte("a"), len(p))), nil
}

func TestTooLarge(t *testing.T) {
	a := newAnswer(io.MultiReader(bytes.NewReader([]byte(`{"type":"BOOKMARK"}["`)), endless{}))
	var e event
	if err := a.next(&e); err != nil || e.Type != "BOOKMARK" {
		t.Errorf("%+v, %v", e, err)
	}
	if err := a.next(&e); err != errLarge {
		t.Error(err)
	}
}

func checkMap(t *testing.T, m *Map) {
	t.Helper()
	for _, pod := range m.Pods {
		if _, ok := m.Pod(pod.Namespace, pod.Name); !ok {
			t.Fatalf("not found: %+v", pod)
		}
		if _, ok := pod.Labels["password"]; ok || len(pod.Labels) > maxLabels || len(pod.Context) > maxContext {
			t.Fatalf("%+v", pod)
		}
	}
	for _, d := range m.Devices {
		if got, ok := m.Device(d.Driver, d.Pool, d.Name); !ok || got != d {
			t.Fatalf("%+v, got %+v", d, got)
		}
	}
}

// FuzzReadPod: any bytes are a pod or an error, and a pod's environment is not kept.
func FuzzReadPod(f *testing.F) {
	f.Add([]byte("\n\x0e\n\x01a\x1a\x01b*\x01cB\x02\b\x01\x12\x04\x12\x02\n\x00"))
	f.Add([]byte("\n\x10Z\x06\n\x01k\x12\x01vj\x06\n\x01J0\x01\x1a"))
	f.Fuzz(func(_ *testing.T, data []byte) {
		if d, err := readPod(data, "node"); err == nil {
			(&podStore{opts: &Options{Node: "node"}, pods: map[string]Pod{}}).put(&d)
		}
	})
}

package kubelet_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"path"
	"strings"
	"sync"
)

// apiserver is as much of an API server as a kubelet needs to run pods and to
// prepare claims: it has objects, and a log of pods that came and went.
type apiserver struct {
	n *node

	stop func() // nil while it is down

	mu      sync.Mutex
	objects map[string]map[string]any // by path
	events  []map[string]any          // of pods; their version is the index
	changed chan struct{}             // closed at the next event
}

// apiPort is in the network of the node.
const apiPort = 6443

const pods = "/api/v1/namespaces/ml/pods/"

// kinds are the collections that a kubelet watches.
var kinds = map[string][2]string{
	"/api/v1/pods":                           {"v1", "Pod"},
	"/api/v1/nodes":                          {"v1", "Node"},
	"/api/v1/services":                       {"v1", "Service"},
	"/apis/storage.k8s.io/v1/csidrivers":     {"storage.k8s.io/v1", "CSIDriver"},
	"/apis/node.k8s.io/v1/runtimeclasses":    {"node.k8s.io/v1", "RuntimeClass"},
	"/apis/resource.k8s.io/v1/deviceclasses": {"resource.k8s.io/v1", "DeviceClass"},
}

// newAPI gives a node that was not started an API server, which is down.
func newAPI(n *node) *apiserver {
	n.t.Helper()
	a := &apiserver{n: n, objects: map[string]map[string]any{}, changed: make(chan struct{})}
	n.kubeconfig(map[string]any{"server": fmt.Sprintf("http://127.0.0.1:%d", apiPort)}, map[string]any{})
	room := map[string]any{"cpu": "64", "memory": "64Gi", "pods": "250", gpu: "16"}
	a.objects["/api/v1/nodes/"+nodeName] = map[string]any{
		"apiVersion": "v1", "kind": "Node",
		"metadata": map[string]any{"name": nodeName, "uid": "node", "resourceVersion": "1"},
		"status": map[string]any{
			"capacity": room, "allocatable": room,
			"conditions": []any{map[string]any{"type": "Ready", "status": "True", "reason": "KubeletReady"}},
		},
	}
	n.t.Cleanup(a.down)
	return a
}

// up starts to listen where the kubelet looks for it.
func (a *apiserver) up() {
	a.n.t.Helper()
	var err error
	a.stop, err = a.n.net.serve(apiPort, a)
	must(a.n.t, err)
}

// down breaks every connection.
func (a *apiserver) down() {
	if a.stop != nil {
		a.stop()
		a.stop = nil
	}
}

// create makes pods, bound to the node, with the claims that they use.
func (a *apiserver) create(list ...pod) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, p := range list {
		m := p.bound()
		meta := m["metadata"].(map[string]any)
		meta["uid"], meta["resourceVersion"] = uid(p.name), fmt.Sprint(len(a.events)+2)
		a.objects[pods+p.name] = m
		a.events = append(a.events, map[string]any{"type": "ADDED", "object": m})
	}
	close(a.changed)
	a.changed = make(chan struct{})
}

// put makes an object that is not watched.
func (a *apiserver) put(path string, object map[string]any) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.objects[path] = object
}

// uid is that of the pod, or the claim, of that name.
func uid(name string) string { return "uid-of-" + name }

func (a *apiserver) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	kind, collection := kinds[r.URL.Path]
	body, _ := io.ReadAll(io.LimitReader(r.Body, 1<<22))
	w.Header().Set("Content-Type", "application/json")
	switch {
	case r.Method == http.MethodPost:
		w.WriteHeader(http.StatusCreated)
		w.Write(body)
	case r.Method == http.MethodDelete:
		json.NewEncoder(w).Encode(map[string]any{"apiVersion": "v1", "kind": "Status", "status": "Success"})
	case collection && r.URL.Query().Get("watch") != "":
		a.watch(w, r, kind)
	case collection:
		a.mu.Lock()
		defer a.mu.Unlock()
		json.NewEncoder(w).Encode(map[string]any{
			"apiVersion": kind[0], "kind": kind[1] + "List",
			"metadata": map[string]any{"resourceVersion": fmt.Sprint(len(a.events) + 1)}, "items": a.all(r.URL.Path),
		})
	default:
		a.mu.Lock()
		defer a.mu.Unlock()
		if object := a.objects[strings.TrimSuffix(r.URL.Path, "/status")]; object != nil {
			json.NewEncoder(w).Encode(object)
			return
		}
		w.WriteHeader(http.StatusNotFound)
		json.NewEncoder(w).Encode(map[string]any{"apiVersion": "v1", "kind": "Status", "status": "Failure", "reason": "NotFound", "code": 404})
	}
}

// all returns the objects of a collection.
func (a *apiserver) all(collection string) []any {
	list := []any{}
	for at, object := range a.objects {
		if path.Base(collection) == path.Base(path.Dir(at)) {
			list = append(list, object)
		}
	}
	return list
}

// watch sends the existing objects if requested, and the pods to come.
func (a *apiserver) watch(w http.ResponseWriter, r *http.Request, kind [2]string) {
	enc := json.NewEncoder(w)
	a.mu.Lock()
	next := len(a.events)
	if r.URL.Query().Get("sendInitialEvents") == "true" {
		for _, object := range a.all(r.URL.Path) {
			enc.Encode(map[string]any{"type": "ADDED", "object": object})
		}
		enc.Encode(map[string]any{"type": "BOOKMARK", "object": map[string]any{
			"apiVersion": kind[0], "kind": kind[1],
			"metadata": map[string]any{
				"resourceVersion": fmt.Sprint(next + 1), "annotations": map[string]any{"k8s.io/initial-events-end": "true"},
			},
		}})
	} else {
		fmt.Sscan(r.URL.Query().Get("resourceVersion"), &next)
		next = max(0, next-1)
	}
	a.mu.Unlock()
	for {
		a.mu.Lock()
		var news []map[string]any
		if kind[1] == "Pod" && next < len(a.events) {
			news = a.events[next:]
			next = len(a.events)
		}
		changed := a.changed
		a.mu.Unlock()
		for _, event := range news {
			enc.Encode(event)
		}
		w.(http.Flusher).Flush()
		select {
		case <-changed:
		case <-r.Context().Done():
			return
		}
	}
}

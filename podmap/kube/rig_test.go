package kube_test

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/accel-exporter/accel-exporter/internal/sim/golden"
	"github.com/accel-exporter/accel-exporter/podmap/kube"
)

const (
	node  = "node-1"
	token = "eyJhbGciOiJub25lIn0.secret"
)

// object is an API object as JSON.
type object = map[string]any

// api is an API server.
type api struct {
	t       *testing.T
	server  *httptest.Server
	pipes   *golden.Pipes
	dir     string
	mu      sync.Mutex
	version int
	objects map[string]object // by path and name
	watches map[chan string]string
	// seen are the requests: the verb, the last part of the path, and the
	// parameters that select a version.
	seen   []string
	tokens map[string]bool
	// answer returns true if it has written the response itself.
	answer func(w http.ResponseWriter, r *http.Request) bool
	// down refuses connections, stuck accepts them and never answers, frozen
	// stops all traffic on open connections.
	down, stuck, frozen bool
}

// bubble runs a test with an API server in a synctest bubble.
func bubble(t *testing.T, test func(*testing.T, *api)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { test(t, serve(t)) })
}

// subtest is bubble in a subtest.
func subtest(t *testing.T, name string, test func(*testing.T, *api)) {
	t.Helper()
	t.Run(name, func(t *testing.T) { bubble(t, test) })
}

func serve(t *testing.T) *api {
	a := &api{
		t: t, pipes: golden.NewPipes(), dir: t.TempDir(), version: 100, tokens: map[string]bool{},
		objects: map[string]object{}, watches: map[chan string]string{},
	}
	a.server = httptest.NewUnstartedServer(a)
	a.server.Listener.Close()
	a.server.Listener = a.pipes
	a.server.EnableHTTP2 = true
	a.server.Config.ErrorLog = log.New(io.Discard, "", 0)
	a.server.StartTLS()
	t.Cleanup(func() {
		a.endWatches()
		a.server.Close()
	})
	a.write("ca.crt", string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: a.server.Certificate().Raw})))
	a.write("token", token+"\n")
	return a
}

func (a *api) write(name, content string) string {
	a.t.Helper()
	file := filepath.Join(a.dir, name)
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		a.t.Fatal(err)
	}
	return file
}

func (a *api) options() kube.Options {
	return kube.Options{
		Server: "https://example.com:6443", TokenFile: filepath.Join(a.dir, "token"), CAFile: filepath.Join(a.dir, "ca.crt"),
		Node: node, Pods: true, Labels: []string{"team", "app.kubernetes.io/*"}, Dial: a.dial,
	}
}

func (a *api) dial(ctx context.Context, network, address string) (net.Conn, error) {
	a.mu.Lock()
	down, stuck := a.down, a.stuck
	a.mu.Unlock()
	if down {
		return nil, fmt.Errorf("%s: connection refused", address)
	}
	if stuck {
		mine, theirs := net.Pipe()
		go io.Copy(io.Discard, theirs)
		context.AfterFunc(a.t.Context(), func() { mine.Close() })
		return mine, nil
	}
	conn, err := a.pipes.Dial(ctx, network, address)
	return &wire{Conn: conn, api: a}, err
}

// wire is a connection that api.frozen stops.
type wire struct {
	net.Conn
	api *api
}

func (w *wire) frozen() bool {
	w.api.mu.Lock()
	defer w.api.mu.Unlock()
	return w.api.frozen
}

func (w *wire) Read(p []byte) (int, error) {
	for {
		if n, err := w.Conn.Read(p); err != nil || !w.frozen() {
			return n, err
		}
	}
}

func (w *wire) Write(p []byte) (int, error) {
	if w.frozen() {
		return len(p), nil
	}
	return w.Conn.Write(p)
}

// withSlices is a change of the options for run.
func withSlices(o *kube.Options) { o.Slices = true }

// run starts a Watcher that ends with the test.
func (a *api) run(change ...func(*kube.Options)) *kube.Watcher {
	a.t.Helper()
	opts := a.options()
	for _, c := range change {
		c(&opts)
	}
	w, err := kube.New(opts)
	if err != nil {
		a.t.Fatal(err)
	}
	var running sync.WaitGroup
	running.Go(func() { w.Run(a.t.Context()) })
	a.t.Cleanup(func() {
		running.Wait()
		a.checkSecrets(w)
	})
	synctest.Wait()
	return w
}

// checkSecrets checks that the data and the Status of a Watcher contain neither the
// token nor the environment of a pod.
func (a *api) checkSecrets(w *kube.Watcher) {
	text, err := json.Marshal([]any{w.Latest(), w.Status()})
	if err != nil {
		a.t.Error(err)
	}
	for _, secret := range []string{token, "hunter2"} {
		if strings.Contains(string(text), secret) {
			a.t.Errorf("%q is in %s", secret, text)
		}
	}
}

func (a *api) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	verb := "list"
	if q.Get("watch") != "" {
		verb = "watch"
	}
	if strings.Contains(r.URL.Path, "/resourceclaims/") {
		verb = "get"
	}
	a.mu.Lock()
	line := verb + " " + filepath.Base(r.URL.Path)
	for _, key := range []string{"resourceVersion", "resourceVersionMatch"} {
		if q.Has(key) {
			line += " " + key + "=" + q.Get(key)
		}
	}
	a.seen = append(a.seen, line)
	a.tokens[r.Header.Get("Authorization")] = true
	answer := a.answer
	a.mu.Unlock()
	if q.Get("fieldSelector") != "spec.nodeName="+node && verb != "get" {
		a.t.Errorf("selector %q", q.Get("fieldSelector"))
	}
	switch {
	case answer != nil && answer(w, r):
	case verb == "watch":
		a.watch(w, r)
	case verb == "get":
		a.get(w, r)
	default:
		a.list(w, r)
	}
}

func kindOf(path string) string {
	if strings.HasSuffix(path, "/resourceslices") {
		return "ResourceSlice"
	}
	return "Pod"
}

func (a *api) list(w http.ResponseWriter, r *http.Request) {
	a.mu.Lock()
	var items []object
	for _, key := range slices.Sorted(maps.Keys(a.objects)) {
		if strings.HasPrefix(key, r.URL.Path+" ") {
			items = append(items, a.objects[key])
		}
	}
	version := strconv.Itoa(a.version)
	requested, _ := strconv.Atoi(r.URL.Query().Get("resourceVersion"))
	future := requested > a.version
	a.mu.Unlock()
	if future {
		refuse(w, http.StatusGatewayTimeout, "Timeout", "Too large resource version: "+strconv.Itoa(requested)+", current: "+version)
		return
	}
	send(w, http.StatusOK, object{"kind": kindOf(r.URL.Path) + "List", "apiVersion": "v1", "metadata": object{"resourceVersion": version}, "items": items})
}

func (a *api) get(w http.ResponseWriter, r *http.Request) {
	a.mu.Lock()
	o := a.objects[r.URL.Path]
	a.mu.Unlock()
	if o == nil {
		refuse(w, http.StatusNotFound, "NotFound", "resourceclaims not found")
		return
	}
	send(w, http.StatusOK, o)
}

func send(w http.ResponseWriter, code int, o object) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	json.NewEncoder(w).Encode(o)
}

// refuse answers with an API Status.
func refuse(w http.ResponseWriter, code int, reason, message string) {
	send(w, code, object{"kind": "Status", "status": "Failure", "code": code, "reason": reason, "message": message})
}

func (a *api) watch(w http.ResponseWriter, r *http.Request) {
	events := make(chan string, 100)
	a.mu.Lock()
	a.watches[events] = r.URL.Path
	a.mu.Unlock()
	seconds, err := strconv.Atoi(r.URL.Query().Get("timeoutSeconds"))
	if err != nil || seconds < 1 || r.URL.Query().Get("allowWatchBookmarks") == "" {
		a.t.Errorf("watch without end or bookmarks: %s", r.URL)
	}
	ends := time.NewTimer(time.Duration(seconds) * time.Second)
	defer ends.Stop()
	defer func() {
		a.mu.Lock()
		delete(a.watches, events)
		a.mu.Unlock()
	}()
	w.WriteHeader(http.StatusOK)
	w.(http.Flusher).Flush()
	for {
		select {
		case <-ends.C:
			return
		case <-r.Context().Done():
			return
		case event, ok := <-events:
			if !ok {
				return
			}
			io.WriteString(w, event+"\n")
			w.(http.Flusher).Flush()
		}
	}
}

const (
	podsPath   = "/api/v1/pods"
	slicesPath = "/apis/resource.k8s.io/v1/resourceslices"
)

// send sends an event to the watches of path, and waits until it is processed. The
// object gets a new version.
func (a *api) send(event, path string, o object) {
	a.t.Helper()
	a.mu.Lock()
	a.version++
	meta := o["metadata"].(object)
	meta["resourceVersion"] = strconv.Itoa(a.version)
	name, _ := meta["name"].(string)
	key := path + " " + fmt.Sprint(meta["namespace"], "/", name, "/", meta["uid"])
	switch event {
	case "ADDED", "MODIFIED":
		a.objects[key] = o
	case "DELETED":
		delete(a.objects, key)
	}
	a.mu.Unlock()
	text, err := json.Marshal(object{"type": event, "object": o})
	if err != nil {
		a.t.Fatal(err)
	}
	a.sendText(path, string(text))
}

func (a *api) sendText(path, text string) {
	a.mu.Lock()
	for events, of := range a.watches {
		if of == path {
			events <- text
		}
	}
	a.mu.Unlock()
	synctest.Wait()
}

func (a *api) endWatches() {
	a.mu.Lock()
	for events := range a.watches {
		close(events)
		delete(a.watches, events)
	}
	a.mu.Unlock()
	synctest.Wait()
}

// set changes how the server behaves.
func (a *api) set(change func()) {
	a.mu.Lock()
	change()
	a.mu.Unlock()
}

// requests returns the requests since the last call.
func (a *api) requests() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	seen := a.seen
	a.seen = nil
	return seen
}

// received returns the values of the header Authorization in all requests.
func (a *api) received() map[string]bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return maps.Clone(a.tokens)
}

// pod returns a Pod of this node, with some fields that are not read.
func pod(namespace, name, uid string, change ...func(meta, spec, status object)) object {
	meta := object{
		"namespace": namespace, "name": name, "uid": uid, "creationTimestamp": "2000-01-01T00:00:00Z",
		"annotations":   object{"secret": `quoted "text", {and} [more]`},
		"managedFields": []object{{"fieldsV1": object{"f:spec": object{"k:{\"uid\":\"x\"}": object{}}}}},
	}
	spec := object{"nodeName": node, "containers": []object{{"name": "c", "env": []object{{"name": "PASSWORD", "value": "hunter2"}}}}}
	status := object{"phase": "Running", "podIP": "10.0.0.1"}
	for _, c := range change {
		c(meta, spec, status)
	}
	return object{"kind": "Pod", "apiVersion": "v1", "metadata": meta, "spec": spec, "status": status}
}

// requested checks the requests since the last call.
func (a *api) requested(want ...string) {
	a.t.Helper()
	if diff := cmp.Diff(want, a.requests()); diff != "" {
		a.t.Errorf("requests (-want +got):\n%s", diff)
	}
}

// state checks the state of the pods and the reason for it.
func (a *api) state(w *kube.Watcher, want kube.State, reason string) {
	a.t.Helper()
	if s := w.Status().Pods; s.State != want || s.Reason != reason || w.Latest().State != want {
		a.t.Errorf("%+v, want %s %q", s, want, reason)
	}
}

// pods checks the names of all pods.
func (a *api) pods(w *kube.Watcher, want ...string) {
	a.t.Helper()
	var list []string
	for _, p := range w.Latest().Pods {
		name := p.Namespace + "/" + p.Name
		if !p.Deleted.IsZero() {
			name += " deleted"
		}
		list = append(list, name)
	}
	if diff := cmp.Diff(want, list); diff != "" {
		a.t.Errorf("pods (-want +got):\n%s", diff)
	}
}

// otherCA is a certificate authority that has signed no certificate.
const otherCA = `-----BEGIN CERTIFICATE-----
MIIBeDCCAR2gAwIBAgIUKn45hxcsjtUeCK86DEfd5iIQtVowCgYIKoZIzj0EAwIw
EDEOMAwGA1UEAwwFb3RoZXIwIBcNMjYxMTIyMDUzNTE4WhgPMjEwOTAxMTEwNTM1
MThaMBAxDjAMBgNVBAMMBW90aGVyMFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAE
qBZvUQM7NY5ymyJr3mvPs23+A1eul9qcRtxztYrpleWOrAdl3DnAQI1ZvZzdURf5
jxqoZ3DmLuiVV7Sgee53KqNTMFEwHQYDVR0OBBYEFOZ7NNPUeQNvJhtVQuMwd5BD
4+U7MB8GA1UdIwQYMBaAFOZ7NNPUeQNvJhtVQuMwd5BD4+U7MA8GA1UdEwEB/wQF
MAMBAf8wCgYIKoZIzj0EAwIDSQAwRgIhANfkgS6plAk2fhmeRO833Akz46M1G1ug
BMoU7Rc5ZM4nAiEA1Y5ZSMPs4HCg0t+CcOgdB+PdvZ7ExdJbTp79FH1VEGU=
-----END CERTIFICATE-----
`

package kubelet_test

import (
	"context"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/accel-exporter/accel-exporter/podmap/kube"
)

const (
	// exporter is the namespace, the service account and the role in
	// docs/kubernetes-api.md.
	exporter     = "accel-exporter"
	exporterUser = "system:serviceaccount:" + exporter + ":" + exporter

	roles   = "/apis/rbac.authorization.k8s.io/v1/clusterroles"
	slices1 = "/apis/resource.k8s.io/v1/resourceslices"
	mlPods  = "/api/v1/namespaces/ml/pods"
)

// permit creates the permissions of docs/kubernetes-api.md, with a
// namespace for pods, and writes a token for it.
func (c *cluster) permit() {
	c.t.Helper()
	page, err := os.ReadFile("../../docs/kubernetes-api.md")
	must(c.t, err)
	_, manifests, _ := strings.Cut(string(page), "```yaml\n")
	manifests, _, found := strings.Cut(manifests, "```")
	if !found {
		c.t.Fatal("docs/kubernetes-api.md has no manifests")
	}
	for _, name := range []string{"ml", exporter} {
		c.do(http.MethodPost, "/api/v1/namespaces", object{"metadata": object{"name": name}})
		// A controller would make this one.
		c.do(http.MethodPost, "/api/v1/namespaces/"+name+"/serviceaccounts", object{"metadata": object{"name": "default"}})
	}
	c.create(manifests, "")
	c.writeToken(c.token(nil))
}

// token returns one of the exporter's, bound to an object or to none.
func (c *cluster) token(bound object) string {
	c.t.Helper()
	return c.serviceToken(exporter, exporter, bound)
}

// writeToken replaces the token as a kubelet does.
func (c *cluster) writeToken(token string) {
	c.t.Helper()
	must(c.t, os.WriteFile(c.path("token.new"), []byte(token), 0o600))
	must(c.t, os.Rename(c.path("token.new"), c.path("token")))
}

// gate is what a Watcher reaches the API server through.
type gate struct {
	net *network

	mu    sync.Mutex
	shut  chan struct{} // closed when the gate is opened; nil while it is open
	conns []net.Conn
}

// dial waits while the gate is shut: attempts that fail would add up.
func (g *gate) dial(ctx context.Context, network, address string) (net.Conn, error) {
	g.mu.Lock()
	shut := g.shut
	g.mu.Unlock()
	if shut != nil {
		select {
		case <-shut:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	conn, err := g.net.dial(ctx, network, address)
	if err == nil {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.conns = append(g.conns, conn)
	}
	return conn, err
}

// cut breaks every connection.
func (g *gate) cut() {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, conn := range g.conns {
		conn.Close()
	}
	g.conns = nil
}

// close lets nothing through until open is called.
func (g *gate) close() (open func()) {
	g.mu.Lock()
	shut := make(chan struct{})
	g.shut = shut
	g.mu.Unlock()
	g.cut()
	return func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.shut = nil
		close(shut)
	}
}

// meta is a Watcher of the API server.
type meta struct {
	*kube.Watcher
	c    *cluster
	gate *gate
}

// meta starts a Watcher as the exporter, until the test ends.
func (c *cluster) meta(t *testing.T, opts kube.Options) *meta {
	t.Helper()
	g := &gate{net: c.net}
	opts.Server, opts.Node, opts.Dial = apiAddress, nodeName, g.dial
	opts.Pods, opts.Slices, opts.Timeout = true, true, guard
	opts.TokenFile, opts.CAFile = c.path("token"), c.path("cert")
	w, err := kube.New(opts)
	must(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { w.Run(ctx) })
	t.Cleanup(func() { cancel(); running.Wait() })
	return &meta{Watcher: w, c: c, gate: g}
}

// await waits for a Map.
func (w *meta) await(t *testing.T, what string, is func(*kube.Map) bool) (m *kube.Map) {
	t.Helper()
	defer func() {
		if t.Failed() {
			s := w.Status()
			t.Logf("%s: %d pods, devices %+v\npods: %+v\nslices: %+v", what, len(m.Pods), m.Devices, s.Pods, s.Slices)
		}
	}()
	await(t, what, w.c.api, func() bool {
		m = w.Latest()
		return is(m)
	})
	return m
}

// in returns a condition on the two states.
func in(pods, slices kube.State) func(*kube.Map) bool {
	return func(m *kube.Map) bool { return m.State == pods && m.SliceState == slices }
}

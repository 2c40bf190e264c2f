package kubelet_test

import (
	"bytes"
	"crypto/tls"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"syscall"
)

// proxy stands between a remediator and the API server and may meddle with
// requests.
type proxy struct {
	r       *remedy
	forward *httputil.ReverseProxy

	mu     sync.Mutex
	victim *process
	// meet is called for each request, by many at a time; where it is nil, all is
	// passed on.
	meet func(w http.ResponseWriter, req *request)
}

// request is a request on its way.
type request struct {
	*http.Request
	body []byte
	p    *proxy
}

// newProxy returns a proxy that listens on a port, and writes a kubeconfig that
// leads there.
func newProxy(r *remedy, port int, kubeconfig string) *proxy {
	r.t.Helper()
	target, err := url.Parse(apiAddress)
	must(r.t, err)
	p := &proxy{r: r, forward: httputil.NewSingleHostReverseProxy(target)}
	p.forward.Transport, p.forward.FlushInterval = r.admin.Transport, -1
	p.forward.ErrorLog = log.New(io.Discard, "", 0)
	cert, err := tls.LoadX509KeyPair(r.path("cert"), r.path("key"))
	must(r.t, err)
	stop, err := r.net.serve(port, p, cert)
	must(r.t, err)
	r.t.Cleanup(stop)
	r.userConfigAt(fmt.Sprintf("https://127.0.0.1:%d", port), kubeconfig, r.token)
	return p
}

func (p *proxy) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	p.mu.Lock()
	meet := p.meet
	p.mu.Unlock()
	if meet == nil {
		p.forward.ServeHTTP(w, req)
		return
	}
	body, _ := io.ReadAll(req.Body)
	meet(w, &request{req, body, p})
}

// pass passes a request on.
func (r *request) pass(w http.ResponseWriter) {
	r.Body = io.NopCloser(bytes.NewReader(r.body))
	r.p.forward.ServeHTTP(w, r.Request)
}

// deliver passes a request on, also where who sent it has gone meanwhile, and
// keeps the answer.
func (r *request) deliver() *httptest.ResponseRecorder {
	answer := httptest.NewRecorder()
	alone := *r
	alone.Request = r.Clone(r.p.r.t.Context())
	alone.pass(answer)
	return answer
}

// changes reports whether the request changes something other than a lease.
func (r *request) changes() bool {
	return r.Method != http.MethodGet && !r.lease()
}

func (r *request) lease() bool { return strings.Contains(r.URL.Path, "/leases") }

// does names what a request changes.
func (r *request) does() string {
	does := r.Method + " " + r.URL.Path
	if bytes.Contains(r.body, []byte(`\"called\"`)) {
		does += ", that a hook was called"
	}
	return does
}

func (p *proxy) set(meet func(http.ResponseWriter, *request)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.meet = meet
}

// watch sets the process that is signalled.
func (p *proxy) watch(victim *process) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.victim = victim
}

// strike sends the process a signal.
func (p *proxy) strike(sig syscall.Signal) *process {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.victim.signal(sig)
	return p.victim
}

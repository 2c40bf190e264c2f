package main

import (
	"fmt"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"

	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/prometheus/common/version"
	"github.com/prometheus/exporter-toolkit/web"

	"github.com/accel-exporter/accel-exporter/internal/exposition/status"
)

// reservedPath reports whether a path is reserved for other pages.
func reservedPath(path string) bool {
	return path == "/" || path == status.DevicePath || strings.HasPrefix(path, "/-/") || strings.HasPrefix(path, "/debug/")
}

func (p *program) handler() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET "+p.flags.telemetryPath, promhttp.InstrumentMetricHandler(p.registry, p.exporter))
	mux.HandleFunc("GET /-/healthy", func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintln(w, "accel-exporter is alive. accel_source_up on the metrics page shows what it can read.")
	})
	mux.HandleFunc("GET /-/ready", p.ready)
	mux.HandleFunc("GET /debug/state", p.debugState)
	mux.HandleFunc("GET /debug/allocations", p.debugAllocations)
	mux.HandleFunc("GET /debug/rules", p.debugRules)
	mux.HandleFunc("GET /debug/series", p.debugSeries)
	mux.HandleFunc("POST /-/reload", p.postReload)
	mux.HandleFunc("POST /-/release", p.postRelease)
	mux.HandleFunc("POST /-/attach", p.postAttach)
	mux.HandleFunc("GET /debug/status", p.page.ServeView)
	if p.flags.statusPage {
		p.page.Register(mux)
	} else {
		mux.Handle("GET /{$}", p.landingPage())
	}
	return sameOrigin(mux)
}

// sameOrigin refuses requests that change something and that a page of another
// origin made a browser send: by its origin, or by a name that DNS resolves to this
// machine meanwhile. Addresses and this machine's own names cannot be rebound.
func sameOrigin(next http.Handler) http.Handler {
	return http.NewCrossOriginProtection().Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		browser := r.Header.Get("Origin") != "" || r.Header.Get("Sec-Fetch-Site") != ""
		if r.Method != http.MethodGet && r.Method != http.MethodHead && browser && !isOwnHost(r.Host) {
			http.Error(w, "the host of this request is not an address or a name of this machine", http.StatusForbidden)
			return
		}
		next.ServeHTTP(w, r)
	}))
}

func isOwnHost(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	own, _ := os.Hostname()
	return host == "localhost" || host == own || net.ParseIP(strings.Trim(host, "[]")) != nil
}

// maxConnections leaves file descriptors for workers, the kubelet and
// Alertmanager: the usual limit is 1024 and more.
const maxConnections = 256

// connections limits the connections of a server. Beyond the limit, one that
// waits for a request is closed, so that idle clients cannot keep others out.
type connections struct {
	mu   sync.Mutex
	open map[net.Conn]http.ConnState
}

// track is the ConnState of an http.Server.
func (c *connections) track(conn net.Conn, state http.ConnState) {
	if victim := c.note(conn, state); victim != nil {
		victim.Close()
	}
}

// note returns a connection to close, or nil.
func (c *connections) note(conn net.Conn, state http.ConnState) net.Conn {
	c.mu.Lock()
	defer c.mu.Unlock()
	if state == http.StateClosed || state == http.StateHijacked {
		delete(c.open, conn)
		return nil
	}
	if c.open == nil {
		c.open = map[net.Conn]http.ConnState{}
	}
	c.open[conn] = state
	if len(c.open) <= maxConnections {
		return nil
	}
	victim := conn
	for other, s := range c.open {
		if s != http.StateActive && other != conn {
			victim = other
			break
		}
	}
	delete(c.open, victim)
	return victim
}

// ready answers 200 once every source has had its first outcome, good or bad.
func (p *program) ready(w http.ResponseWriter, _ *http.Request) {
	snap := p.sampler.Latest()
	if snap == nil {
		http.Error(w, "no snapshot yet", http.StatusServiceUnavailable)
		return
	}
	if s := waitingFor(snap); s != "" {
		http.Error(w, "waiting for the first round of "+s, http.StatusServiceUnavailable)
		return
	}
	fmt.Fprintln(w, "accel-exporter is ready.")
}

func (p *program) landingPage() http.Handler {
	page, err := web.NewLandingPage(web.LandingConfig{
		Name:        "accel-exporter",
		Description: "Health and use of this node's accelerators for Prometheus",
		Version:     version.Info(),
		Profiling:   "false",
		Links: []web.LandingLinks{
			{Address: p.flags.telemetryPath, Text: "Metrics", Description: "what Prometheus scrapes"},
			{Address: "/debug/state", Text: "State", Description: "the current snapshot as JSON: every device, source and recent event"},
			{Address: "/debug/allocations", Text: "Allocations", Description: "the allocations of every device as JSON; accel-exporter who prints them"},
			{Address: "/debug/rules", Text: "Rules", Description: "the rules evaluated on this node and their alerts as JSON; accel-exporter rules eval prints them"},
			{Address: "/debug/status", Text: "Status", Description: "what needs attention as JSON; accel-exporter top shows it"},
			{Address: "/debug/series", Text: "Series", Description: "the number of series of each metric family as JSON; accel-exporter series prints them"},
			{Address: "/-/healthy", Text: "Health", Description: "the process is alive"},
			{Address: "/-/ready", Text: "Readiness", Description: "every source has been read once"},
		},
	})
	if err != nil {
		// The template and its input are part of this build.
		panic(err)
	}
	return page
}

// postReload reads the configuration file again.
func (p *program) postReload(w http.ResponseWriter, r *http.Request) {
	if !p.flags.lifecycle {
		http.Error(w, "reload over HTTP is off; start with --web.enable-lifecycle, or send SIGHUP", http.StatusForbidden)
		return
	}
	if err := p.reload.now(r.Context()); err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	fmt.Fprintln(w, "configuration reloaded")
}

package main

import (
	"fmt"
	"net/http"
	"strings"

	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/prometheus/common/version"
	"github.com/prometheus/exporter-toolkit/web"
)

// reservedPath reports whether a path is reserved for other pages.
func reservedPath(path string) bool {
	return path == "/" || strings.HasPrefix(path, "/-/") || strings.HasPrefix(path, "/debug/")
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
	mux.HandleFunc("POST /-/reload", p.postReload)
	mux.HandleFunc("POST /-/release", p.postRelease)
	mux.HandleFunc("POST /-/attach", p.postAttach)
	mux.Handle("GET /{$}", p.landingPage())
	return mux
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

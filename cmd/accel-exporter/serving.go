package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	stdlog "log"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/alecthomas/kingpin/v2"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	versioncollector "github.com/prometheus/client_golang/prometheus/collectors/version"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/prometheus/common/version"
	"github.com/prometheus/exporter-toolkit/web"
	webflag "github.com/prometheus/exporter-toolkit/web/kingpinflag"

	"github.com/accel-exporter/accel-exporter/internal/config/strict"
	"github.com/accel-exporter/accel-exporter/internal/exposition"
	"github.com/accel-exporter/accel-exporter/internal/status"
)

// webFlags is the command line of the web server.
type webFlags struct {
	web           *web.FlagConfig
	telemetryPath string
	maxRequests   int
	lifecycle     bool
	statusPage    bool
	release       bool
	detail        string
}

func (f *webFlags) add(app *kingpin.Application) {
	f.web = webflag.AddFlags(app, defaultAddress)
	app.Flag("web.telemetry-path", "Path under which metrics are served.").Default("/metrics").StringVar(&f.telemetryPath)
	app.Flag("web.max-requests", "Largest number of concurrent scrapes; further ones get status 503.").Default("8").IntVar(&f.maxRequests)
	app.Flag("web.status-page", "Serve a page for people at /, with the state of sources, devices, alerts, events and allocations, and the flags and the configuration without secrets.").Default("true").BoolVar(&f.statusPage)
	app.Flag("web.enable-lifecycle", "Allow a reload of the configuration by POST /-/reload.").BoolVar(&f.lifecycle)
	app.Flag("web.enable-release", "Allow POST /-/release and /-/attach, which close and reopen every handle to a source's hardware.").BoolVar(&f.release)
	app.Flag("metrics.detail", "How much of each metric family is served: standard, with all series of a device that needs attention, or full. docs/metrics.md has the part of each family.").Default(standardDetail).EnumVar(&f.detail, standardDetail, fullDetail)
}

func (f *webFlags) check() error {
	var errs []error
	bad := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if f.telemetryPath == "" || f.telemetryPath[0] != '/' || reservedPath(f.telemetryPath) {
		bad("--web.telemetry-path is %q; a path that begins with / and is not /, /device, /-/… or /debug/… is accepted", f.telemetryPath)
	}
	if strings.ContainsAny(f.telemetryPath, "{} ") {
		bad("--web.telemetry-path is %q; a path without braces and blanks is accepted", f.telemetryPath)
	}
	for _, a := range *f.web.WebListenAddresses {
		if !strings.Contains(a, "://") && !isAddress(a) {
			bad("--web.listen-address is %q; HOST:PORT, :PORT or vsock://:PORT is accepted", a)
		}
	}
	if f.maxRequests < 1 {
		bad("--web.max-requests is %d; 1 or more is accepted", f.maxRequests)
	}
	return errors.Join(errs...)
}

func isAddress(a string) bool {
	_, port, err := net.SplitHostPort(a)
	if err == nil {
		_, err = net.LookupPort("tcp", port)
	}
	return err == nil
}

// serving serves the pages of a node.
type serving struct {
	flags    *webFlags
	log      *slog.Logger
	node     *sampling
	alerts   *alerts // nil if no rules are evaluated
	fields   *dcgmFields
	reload   *reloader
	exporter *exposition.Exporter
	registry *prometheus.Registry
	page     *status.Page
	showing  sync.Mutex
	states   atomic.Int32 // concurrent requests for the state
}

func newServing(f *webFlags, node *sampling, fields *dcgmFields) *serving {
	p := &serving{flags: f, log: node.log, node: node, fields: fields, registry: prometheus.NewRegistry()}
	p.registry.MustRegister(
		collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
		versioncollector.NewCollector("accel_exporter"),
	)
	p.exporter = exposition.New(node.sampler.Latest, p.registry, exposition.Options{
		MaxInFlight:  f.maxRequests,
		WriteTimeout: 30 * time.Second,
		Log:          p.log,
		Registry:     p.registry,
	})
	p.show()
	return p
}

// show applies the current settings to the page. The last call wins.
func (p *serving) show() {
	p.showing.Lock()
	defer p.showing.Unlock()
	cfg := p.node.config.Load()
	dropped := cfg.Dropped()
	p.exporter.Apply(exposition.Settings{
		MaxSeries: cfg.Metrics.MaxSeries,
		Drop: func(family string) bool {
			_, found := slices.BinarySearch(dropped, family)
			return found
		},
		Standard: p.detail() == standardDetail,
		View:     p.fields.page(),
	})
}

// detail returns the level of detail, from the configuration file or else from the
// flag.
func (p *serving) detail() string { return cmp.Or(p.node.config.Load().Metrics.Detail, p.flags.detail) }

// newStatusPage returns the status page.
func (p *serving) newStatusPage(settings func() *status.Settings) *status.Page {
	return status.New(status.Options{
		Node:        p.node.flags.pods.nodeOrHost(),
		Version:     "accel-exporter " + version.Info() + " " + version.BuildContext(),
		Metrics:     strings.TrimPrefix(p.flags.telemetryPath, "/"),
		Snapshot:    p.node.sampler.Latest,
		Allocations: p.node.pods.state,
		Alerts:      func() *status.Alerts { return p.alerts.status() },
		Settings:    settings,
		Log:         p.log,
	})
}

// shutdownPatience bounds the scrapes in progress when the exporter stops.
const shutdownPatience = 3 * time.Second

// run serves until ctx is done or the listener fails.
func (p *serving) run(ctx context.Context) error {
	var open connections
	server := &http.Server{
		Handler:           p.handler(),
		ConnState:         open.track,
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       10 * time.Second,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    64 << 10,
		ErrorLog:          stdlog.New(serverLog{&p.node.lines}, "", 0),
		BaseContext:       func(net.Listener) context.Context { return ctx },
	}
	ending, cancel := context.WithCancel(ctx)
	var loops sync.WaitGroup
	defer loops.Wait()
	defer cancel()
	loops.Go(func() {
		<-ending.Done()
		stop, done := context.WithTimeout(context.Background(), shutdownPatience)
		defer done()
		if server.Shutdown(stop) != nil {
			server.Close()
		}
	})
	if p.flags.statusPage {
		loops.Go(func() { p.page.Run(ending) })
	}
	p.announce()
	if err := web.ListenAndServe(server, p.flags.web, p.log); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// announce logs the address of the page.
func (p *serving) announce() {
	scheme := "http"
	if *p.flags.web.WebConfigFile != "" {
		scheme = "http(s)"
	}
	for _, a := range *p.flags.web.WebListenAddresses {
		host, port, err := net.SplitHostPort(a)
		if err != nil || strings.Contains(a, "://") {
			continue // a socket, or an error that the listener reports
		}
		if host == "" {
			host = "localhost"
		}
		p.log.Info("Serving metrics", "url", fmt.Sprintf("%s://%s%s", scheme, net.JoinHostPort(host, port), p.flags.telemetryPath))
	}
}

// reservedPath reports whether a path is reserved for other pages.
func reservedPath(path string) bool {
	return path == "/" || path == status.DevicePath || strings.HasPrefix(path, "/-/") || strings.HasPrefix(path, "/debug/")
}

func (p *serving) handler() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET "+p.flags.telemetryPath, promhttp.InstrumentMetricHandler(p.registry, p.exporter))
	mux.HandleFunc("GET /-/healthy", func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintln(w, "accel-exporter is alive. accel_source_up on the metrics page shows what it can read.")
	})
	mux.HandleFunc("GET /-/ready", p.ready)
	mux.HandleFunc("GET /debug/state", p.debugState)
	mux.HandleFunc("GET /debug/rules", p.debugRules)
	mux.HandleFunc("GET /debug/series", p.debugSeries)
	mux.HandleFunc("POST /-/reload", p.postReload)
	mux.HandleFunc("POST /-/release", p.postRelease)
	mux.HandleFunc("POST /-/attach", p.postAttach)
	mux.Handle("GET /debug/status", p.page.View())
	if p.flags.statusPage {
		p.page.Register(mux)
	} else {
		mux.HandleFunc("GET /{$}", p.landing)
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

// connections limits the connections of a server. Beyond the limit, a
// connection that waits for a request is closed, so that idle clients cannot
// keep others out.
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
func (p *serving) ready(w http.ResponseWriter, _ *http.Request) {
	snap := p.node.sampler.Latest()
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

// landing is / without the status page.
func (p *serving) landing(w http.ResponseWriter, _ *http.Request) {
	fmt.Fprintf(w, "accel-exporter %s\n\nMetrics: %s\nJSON: /debug/state, /debug/status, /debug/rules, /debug/series\nProbes: /-/healthy, /-/ready\n", version.Info(), p.flags.telemetryPath)
}

// postReload reads the configuration file again.
func (p *serving) postReload(w http.ResponseWriter, r *http.Request) {
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

func (p *serving) postRelease(w http.ResponseWriter, r *http.Request) {
	name, ok := p.releasable(w, r)
	if !ok {
		return
	}
	var d time.Duration
	if s := r.URL.Query().Get("for"); s != "" {
		var err error
		if d, err = strict.ParseDuration(s); err != nil || d <= 0 {
			http.Error(w, fmt.Sprintf("for is %q; a duration such as 10m is accepted", s), http.StatusBadRequest)
			return
		}
	}
	if err := p.node.release(name, byRequest, d); err != nil {
		p.log.Error("Release is not complete", "collector", name, "err", err)
		http.Error(w, err.Error(), http.StatusGatewayTimeout)
		return
	}
	p.log.Info("Source released on request", "collector", name, "for", d)
	fmt.Fprintf(w, "%s released\n", name)
}

func (p *serving) postAttach(w http.ResponseWriter, r *http.Request) {
	name, ok := p.releasable(w, r)
	if !ok {
		return
	}
	other, err := p.node.attach(name, byRequest)
	switch {
	case err != nil:
		http.Error(w, err.Error(), http.StatusGatewayTimeout)
	case other != "":
		http.Error(w, fmt.Sprintf("%s is still released by %s", name, other), http.StatusConflict)
	default:
		p.log.Info("Source attached on request", "collector", name)
		fmt.Fprintf(w, "%s attached\n", name)
	}
}

// releasable returns the source that a request names. If it returns false, it
// has answered the request with an error.
func (p *serving) releasable(w http.ResponseWriter, r *http.Request) (string, bool) {
	if !p.flags.release {
		http.Error(w, "release over HTTP is off; start with --web.enable-release, or use --release.directory", http.StatusForbidden)
		return "", false
	}
	name := r.URL.Query().Get("source")
	_, ok := p.node.workers[name]
	if !ok {
		http.Error(w, fmt.Sprintf("source is %q; accepted: %s", name, strings.Join(slices.Sorted(maps.Keys(p.node.workers)), ", ")), http.StatusBadRequest)
	}
	return name, ok
}

// Limits of the /debug endpoints: clients that do not read their response must
// not use up the file descriptors that scrapes need.
const (
	maxStates    = 4
	stateTimeout = 10 * time.Second
)

// debugState serves the latest Snapshot.
func (p *serving) debugState(w http.ResponseWriter, _ *http.Request) {
	p.sendState(w, func() any { return p.node.stateJSON() })
}

// debugRules serves the rules and their alerts.
func (p *serving) debugRules(w http.ResponseWriter, _ *http.Request) {
	if p.alerts == nil {
		http.Error(w, "no rules are evaluated; start the exporter with --rules.builtin, --rules.file or --alertmanager.url", http.StatusNotFound)
		return
	}
	p.sendState(w, func() any { return p.alerts.engine.Report() })
}

// sendState serves a value as JSON to at most maxStates clients at a time.
func (p *serving) sendState(w http.ResponseWriter, state func() any) {
	if p.states.Add(1) > maxStates {
		p.states.Add(-1)
		http.Error(w, "too many requests for the state at the same time", http.StatusServiceUnavailable)
		return
	}
	defer p.states.Add(-1)
	var body bytes.Buffer
	if err := writeJSON(&body, state()); err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	// Only now: a busy machine takes long to make the response. A ResponseWriter
	// without deadlines, such as a test recorder, has no stalled reader.
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(stateTimeout))
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	_, _ = body.WriteTo(w) // the client may have left
}

// debugSeries serves the number of series of each family.
func (p *serving) debugSeries(w http.ResponseWriter, _ *http.Request) {
	p.sendState(w, func() any {
		return seriesJSON{Detail: p.detail(), Families: p.exporter.Usage()}
	})
}

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	stdlog "log"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
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
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/version"
	"github.com/prometheus/exporter-toolkit/web"
	webflag "github.com/prometheus/exporter-toolkit/web/kingpinflag"

	"github.com/accel-exporter/accel-exporter/internal/exposition"
	"github.com/accel-exporter/accel-exporter/internal/status"
	"github.com/accel-exporter/accel-exporter/internal/status/bundle"
)

// webFlags is the command line of the web server.
type webFlags struct {
	web        *web.FlagConfig
	statusPage bool
	hosts      []string
	detail     string
}

func (f *webFlags) add(app *kingpin.Application) {
	f.web = webflag.AddFlags(app, defaultAddress)
	app.Flag("web.status-page", "Serve a page for people at /, with the state of sources, devices, alerts, events and allocations.").Default("true").BoolVar(&f.statusPage)
	app.Flag("web.host", "Name under which people reach this exporter, beside addresses, the node's name and names of a private domain; repeatable. Pages for people are refused under other names, unless --web.config.file protects them.").StringsVar(&f.hosts)
	app.Flag("metrics.detail", "How much of each metric family is served: standard, with all series of a device that needs attention, or full. docs/metrics.md has the part of each family.").Default(standardDetail).EnumVar(&f.detail, standardDetail, fullDetail)
}

func (f *webFlags) check() error {
	for _, a := range *f.web.WebListenAddresses {
		if !strings.Contains(a, "://") && !isAddress(a) {
			return fmt.Errorf("--web.listen-address is %q; HOST:PORT, :PORT or vsock://:PORT is accepted", a)
		}
	}
	return nil
}

func isAddress(a string) bool {
	_, port, err := net.SplitHostPort(a)
	if err == nil {
		_, err = net.LookupPort("tcp", port)
	}
	return err == nil
}

// metricsPath is the path of the metrics, and maxScrapes the number of concurrent
// scrapes; further ones get status 503.
const (
	metricsPath = "/metrics"
	maxScrapes  = 8
)

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
	recorder *bundle.Recorder
	showing  sync.Mutex
}

func newServing(f *webFlags, node *sampling, fields *dcgmFields) *serving {
	p := &serving{flags: f, log: node.log, node: node, fields: fields, registry: prometheus.NewRegistry()}
	p.registry.MustRegister(
		collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
		versioncollector.NewCollector("accel_exporter"),
	)
	p.exporter = exposition.New(node.sampler.Latest, prometheus.GathererFunc(p.own), exposition.Options{
		MaxInFlight:  maxScrapes,
		WriteTimeout: 30 * time.Second,
		Log:          p.log,
		Registry:     p.registry,
	})
	p.show()
	return p
}

// own gathers the families of the process. client_golang's process_network_* are not
// among them: they are the traffic of the network namespace, which may be the node's.
func (p *serving) own() ([]*dto.MetricFamily, error) {
	families, err := p.registry.Gather()
	return slices.DeleteFunc(families, func(f *dto.MetricFamily) bool { return strings.HasPrefix(f.GetName(), "process_network_") }), err
}

// show applies the current settings to the page. The last call wins.
func (p *serving) show() {
	p.showing.Lock()
	defer p.showing.Unlock()
	cfg := p.node.config.Load()
	p.exporter.Apply(exposition.Settings{
		Standard: cmp.Or(cfg.Metrics.Detail, p.flags.detail) == standardDetail,
		View:     p.fields.page(),
	})
}

// statusOptions returns the inputs of the status page.
func statusOptions(f *flags, node *sampling, a *alerts) status.Options {
	return status.Options{
		Node:        node.flags.pods.nodeOrHost(),
		Version:     "accel-exporter " + version.Info() + " " + version.BuildContext(),
		Snapshot:    node.sampler.Latest,
		History:     &node.history,
		Allocations: node.pods.state,
		Explain:     explainRefusal,
		AsksFor:     f.asksFor,
		Alerts:      a.status,
		Log:         node.log,
	}
}

// shutdownPatience bounds the scrapes in progress when the exporter stops.
const shutdownPatience = 3 * time.Second

// run serves until ctx is done or the listener fails.
func (p *serving) run(ctx context.Context) error {
	server := &http.Server{
		Handler:           p.handler(),
		ConnState:         limitConnections(),
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
	if err := web.ListenAndServe(server, p.flags.web, p.log); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// privateDomains are names that no public site has.
var privateDomains = []string{".localhost", ".local", ".internal", ".home.arpa", ".svc"}

// reachedAs reports whether host, of a request, is a name of this node. The page of
// another site can point its own name at the node's address, and read what a browser
// inside the network then receives.
func (f *webFlags) reachedAs(host, node string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	host = strings.TrimSuffix(strings.ToLower(host), ".")
	_, err := netip.ParseAddr(strings.Trim(host, "[]"))
	known := func(name string) bool { return strings.EqualFold(name, host) }
	private := func(domain string) bool { return strings.HasSuffix(host, domain) }
	return err == nil || !strings.Contains(host, ".") || known(node) || slices.ContainsFunc(f.hosts, known) || slices.ContainsFunc(privateDomains, private)
}

// forPeople refuses requests under the name of another site.
func (p *serving) forPeople(next http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if *p.flags.web.WebConfigFile == "" && !p.flags.reachedAs(r.Host, p.node.flags.pods.nodeOrHost()) {
			http.Error(w, fmt.Sprintf("This node is not known as %q. Use its address, or start the exporter with --web.host=NAME.", r.Host), http.StatusMisdirectedRequest)
			return
		}
		next(w, r)
	}
}

// handler serves pages that change nothing: a page of another site that makes a browser
// send a request gains nothing by it.
func (p *serving) handler() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET "+metricsPath, promhttp.InstrumentMetricHandler(p.registry, p.exporter))
	mux.HandleFunc("GET /-/healthy", func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintln(w, "accel-exporter is alive. accel_source_up on the metrics page shows what it can read.")
	})
	mux.HandleFunc("GET /-/ready", p.ready)
	mux.HandleFunc("GET /debug/state", p.debugState)
	mux.HandleFunc("GET /debug/rules", p.debugRules)
	mux.Handle("GET /debug/status", p.page.JSON())
	mux.Handle("GET /debug/bundle", p.page.Limit(http.HandlerFunc(p.bundle)))
	if p.flags.statusPage {
		p.page.Register(mux)
	} else {
		mux.HandleFunc("GET /{$}", p.landing)
	}
	people := p.forPeople(mux.ServeHTTP)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case metricsPath, "/-/healthy", "/-/ready":
			mux.ServeHTTP(w, r)
		default:
			people(w, r)
		}
	})
}

// maxConnections bounds the memory and file descriptors of clients.
const maxConnections = 256

// limitConnections returns the ConnState of a server, which closes connections above
// the limit.
func limitConnections() func(net.Conn, http.ConnState) {
	var open atomic.Int64
	return func(conn net.Conn, state http.ConnState) {
		switch state {
		case http.StateNew:
			if open.Add(1) > maxConnections {
				conn.Close()
			}
		case http.StateClosed, http.StateHijacked:
			open.Add(-1)
		}
	}
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
	fmt.Fprintf(w, "accel-exporter %s\n\nMetrics: %s\nJSON: /debug/state, /debug/status, /debug/rules, /debug/bundle\nProbes: /-/healthy, /-/ready\n", version.Info(), metricsPath)
}

// debugState serves the latest Snapshot.
func (p *serving) debugState(w http.ResponseWriter, _ *http.Request) {
	sendJSON(w, p.node.stateJSON())
}

// debugRules serves the rules and their alerts.
func (p *serving) debugRules(w http.ResponseWriter, _ *http.Request) {
	if p.alerts == nil {
		http.Error(w, noRules, http.StatusNotFound)
		return
	}
	sendJSON(w, p.alerts.engine.Report())
}

func sendJSON(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	_ = writeJSON(w, v) // it fails when the client has left
}

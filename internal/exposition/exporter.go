package exposition

import (
	"log/slog"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/accel-exporter/accel-exporter/collector"
)

// Options bound what one scrape may cost. The zero value bounds nothing.
type Options struct {
	// MaxSeries caps the series of devices and node; the process's own come
	// on top. Beyond it what a View adds goes first, then the detail of
	// partitions, links and lanes, and whole devices; health goes last. What
	// is left out is counted. 0 is no cap.
	MaxSeries int
	// MaxInFlight caps concurrent scrapes; one more is answered 503. 0 is no
	// cap.
	MaxInFlight int
	// WriteTimeout bounds the time a client may take to read a response, from
	// the start of the scrape. 0 is no bound.
	WriteTimeout time.Duration
	// Log receives one line when an error begins and one when it ends. Nil
	// discards them.
	Log *slog.Logger
	// Registry receives promhttp_metric_handler_errors_total, with the same
	// meaning on both faces. It is usually the registry behind self. Nil
	// leaves the family out.
	Registry prometheus.Registerer
}

// Exporter serves the latest Snapshot. It is an http.Handler for /metrics,
// safe for concurrent use.
//
// For promhttp_metric_handler_requests_total and its kin wrap it as any
// promhttp handler: promhttp.InstrumentMetricHandler(registry, exporter).
type Exporter struct {
	latest func() *collector.Snapshot
	self   self
	// histograms are those of the Snapshot, on their way by the side of self.
	histograms histograms

	o     Options
	slow  http.Handler
	errs  *prometheus.CounterVec
	slots chan struct{} // one token per scrape in flight, nil without a cap

	layout  atomic.Pointer[layout]
	rebuild sync.Mutex // held while tables are built, never while writing
	// settings is guarded by rebuild.
	settings Settings

	dropped [len(reasons)]atomic.Uint64
	counted atomic.Pointer[collector.Snapshot]

	agreed atomic.Pointer[agreement]
}

// New returns an Exporter that serves what latest returns, which may be nil
// until something has been sampled, merged by family name with what self
// gathers. A family that both have is served from the Snapshot.
func New(latest func() *collector.Snapshot, self prometheus.Gatherer, o Options) *Exporter {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	e := &Exporter{latest: latest, o: o, settings: Settings{MaxSeries: o.MaxSeries}}
	e.self.gatherer, e.self.log = self, o.Log
	if o.MaxInFlight > 0 {
		e.slots = make(chan struct{}, o.MaxInFlight)
	}
	e.errs = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "promhttp_metric_handler_errors_total",
		Help: "Total number of internal errors encountered by the promhttp metric handler.",
	}, []string{"cause"})
	e.errs.WithLabelValues("gathering")
	e.errs.WithLabelValues("encoding")
	if o.Registry != nil {
		o.Registry.MustRegister(e.errs)
	}
	e.slow = promhttp.HandlerFor(e.Gatherer(), promhttp.HandlerOpts{
		ErrorHandling:       promhttp.ContinueOnError,
		EnableOpenMetrics:   true,
		OfferedCompressions: []promhttp.Compression{promhttp.Identity, promhttp.Gzip},
		Registry:            o.Registry,
	})
	return e
}

// emptySnapshot stands for the time before anything was sampled.
var emptySnapshot = new(collector.Snapshot)

// snapshot fills f with the latest values and the layout they belong to.
func (e *Exporter) snapshot(f *frame) {
	s := e.latest()
	if s == nil {
		s = emptySnapshot
	}
	l := e.layout.Load()
	if l == nil || !l.fill(s, f) {
		l = e.relayout(s, f)
	}
	f.layout, f.of = l, s
	// A Snapshot that several scrapes see is counted once.
	if e.counted.Swap(s) != s {
		for i, n := range l.dropped {
			e.dropped[i].Add(n)
		}
	}
	for i := range e.dropped {
		f.values[l.own+i] = float64(e.dropped[i].Load())
	}
}

// relayout builds the tables for s, unless another scrape has just done so.
func (e *Exporter) relayout(s *collector.Snapshot, f *frame) *layout {
	e.rebuild.Lock()
	defer e.rebuild.Unlock()
	if l := e.layout.Load(); l != nil && l.fill(s, f) {
		return l
	}
	l := newLayout(s, &e.settings)
	if !l.fill(s, f) {
		panic("exposition: a layout does not fit the snapshot it was built from")
	}
	e.layout.Store(l)
	return l
}

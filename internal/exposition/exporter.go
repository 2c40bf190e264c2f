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

// Options limit the cost of a scrape. The zero value sets no limit.
type Options struct {
	// MaxSeries limits the series of devices and node, not the series of the
	// process. Beyond it the series of a View are dropped first, then
	// partitions, details such as links and lanes, whole devices, and health
	// last. Dropped series are counted. 0 is no limit.
	MaxSeries int
	// MaxInFlight limits concurrent scrapes; one more is answered 503. 0 is
	// no limit.
	MaxInFlight int
	// WriteTimeout limits the time from the start of a scrape until the client
	// has read the response. 0 is no limit.
	WriteTimeout time.Duration
	// Log receives a line when an error begins and when it ends. Nil discards
	// them.
	Log *slog.Logger
	// Registry receives promhttp_metric_handler_errors_total. It is usually
	// the registry behind self. Nil leaves the family out.
	Registry prometheus.Registerer
}

// Exporter serves the latest Snapshot. It is an http.Handler for /metrics,
// safe for concurrent use.
//
// To count requests, wrap it as any promhttp handler:
// promhttp.InstrumentMetricHandler(registry, exporter).
type Exporter struct {
	latest func() *collector.Snapshot
	self   self

	o     Options
	slow  http.Handler // promhttp's, of this page
	errs  *prometheus.CounterVec
	slots chan struct{} // one token per scrape in flight, nil without a cap

	layout  atomic.Pointer[layout]
	rebuild sync.Mutex // locked while a layout is built, never while writing
	// settings is guarded by rebuild.
	settings Settings

	dropped [len(reasons)]atomic.Uint64
	counted atomic.Pointer[collector.Snapshot]

	agreed atomic.Pointer[agreement]
}

// New returns an Exporter of the Snapshot that latest returns, nil before the
// first, and of the families that self gathers. A family that both have is
// served from the Snapshot.
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
		Registry:            o.Registry,
		ErrorHandling:       promhttp.ContinueOnError,
		EnableOpenMetrics:   true,
		OfferedCompressions: []promhttp.Compression{promhttp.Identity, promhttp.Gzip},
	})
	return e
}

// emptySnapshot is served before the first Snapshot.
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
	// Several scrapes of one Snapshot count once.
	if e.counted.Swap(s) != s {
		for i, n := range l.dropped {
			e.dropped[i].Add(n)
		}
	}
	e.fillOwn(f)
}

// fillOwn fills in the exporter's own counters.
func (e *Exporter) fillOwn(f *frame) {
	for i := range e.dropped {
		f.values[f.layout.own+i] = float64(e.dropped[i].Load())
	}
}

// relayout builds the layout for s, unless another scrape has just done so.
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

// Settings can change while an Exporter serves.
type Settings struct {
	// MaxSeries replaces Options.MaxSeries.
	MaxSeries int
	// Drop selects families that are not served. They are not counted as
	// dropped. Nil selects none.
	Drop func(family string) bool
	// Standard serves only the part of each family that its Level names,
	// except of devices that need attention. Left out series are not counted
	// as dropped.
	Standard bool
	// View adds series to the page; Drop and Standard do not apply to them.
	// Nil adds none.
	View View
}

// Apply replaces the settings for scrapes that begin later.
func (e *Exporter) Apply(s Settings) {
	e.rebuild.Lock()
	defer e.rebuild.Unlock()
	e.settings = s
	e.layout.Store(nil)
}

// drops reports whether the settings leave out a family.
func (s *Settings) drops(m *collector.Metric) bool { return s.Drop != nil && s.Drop(m.Name) }

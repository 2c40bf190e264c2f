package differential

import (
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/prometheus/prometheus/model/value"
	"google.golang.org/protobuf/proto"

	dto "github.com/prometheus/client_model/go"
)

// exporter makes pages whose series come, go, reset and repeat.
type exporter struct {
	r      *rand.Rand
	series []*generated
}

// generated is one metric and how it behaves.
type generated struct {
	family string
	kind   dto.MetricType
	labels map[string]string

	alive bool
	value float64
	// churn is in how many of a hundred steps it comes or goes, move in how
	// many it changes, odd in how many it is NaN or infinite, reset in how
	// many it starts again.
	churn, move, odd, reset int
}

// What the series are about.
var (
	gauges   = []string{"temp", "util", "state", "info"}
	counters = []string{"errors_total", "bytes_total"}
	devices  = []string{"d0", "d1", "d2"}
)

func newExporter(r *rand.Rand) *exporter {
	e := &exporter{r: r}
	add := func(family string, kind dto.MetricType) {
		for range 1 + r.IntN(4) {
			g := &generated{
				family: family, kind: kind, labels: map[string]string{"device": oneOf(r, devices...)}, alive: chance(r, 80),
				churn: oneOf(r, 0, 0, 3, 30), move: oneOf(r, 0, 5, 50, 100), odd: oneOf(r, 0, 0, 0, 10), reset: oneOf(r, 0, 2, 10),
			}
			if chance(r, 40) {
				g.labels["x"] = oneOf(r, "a", "b", "")
			}
			if chance(r, 15) { // labels of the target
				g.labels[oneOf(r, "instance", "job")] = oneOf(r, "", "n1", "other")
			}
			same := func(o *generated) bool { return o.family == family && maps.Equal(o.labels, g.labels) }
			if !slices.ContainsFunc(e.series, same) {
				e.series = append(e.series, g)
			}
		}
	}
	for _, name := range gauges {
		add(name, oneOf(r, dto.MetricType_GAUGE, dto.MetricType_GAUGE, dto.MetricType_UNTYPED))
	}
	for _, name := range counters {
		add(name, dto.MetricType_COUNTER)
	}
	return e
}

// page moves every series on and returns the page.
func (e *exporter) page() []*dto.MetricFamily {
	var page []*dto.MetricFamily
	for _, g := range e.series {
		g.step(e.r)
		if !g.alive {
			continue
		}
		if n := len(page); n == 0 || page[n-1].GetName() != g.family {
			page = append(page, &dto.MetricFamily{Name: &g.family, Type: &g.kind})
		}
		f := page[len(page)-1]
		f.Metric = append(f.Metric, g.metric(e.r))
	}
	if chance(e.r, 10) { // the order of a page is none
		e.r.Shuffle(len(page), func(i, j int) { page[i], page[j] = page[j], page[i] })
		for _, f := range page {
			e.r.Shuffle(len(f.Metric), func(i, j int) { f.Metric[i], f.Metric[j] = f.Metric[j], f.Metric[i] })
		}
	}
	return page
}

func (g *generated) step(r *rand.Rand) {
	if chance(r, g.churn) {
		g.alive = !g.alive
	}
	if chance(r, g.reset) {
		g.value = 0
	}
	if !chance(r, g.move) {
		return
	}
	switch g.kind {
	case dto.MetricType_COUNTER:
		g.value += float64(r.IntN(5))
	default:
		g.value = oneOf(r, 0, 1, 1, 2, 50, 85, 91, 99.5, -3)
	}
}

func (g *generated) metric(r *rand.Rand) *dto.Metric {
	m := &dto.Metric{}
	for _, name := range slices.Sorted(maps.Keys(g.labels)) {
		m.Label = append(m.Label, &dto.LabelPair{Name: proto.String(name), Value: proto.String(g.labels[name])})
	}
	v := g.value
	if chance(r, g.odd) {
		// A page has no staleness markers: its NaN of those bits is a NaN.
		v = oneOf(r, math.NaN(), math.Float64frombits(value.StaleNaN), math.Inf(1), math.Inf(-1))
	}
	switch g.kind {
	case dto.MetricType_COUNTER:
		m.Counter = &dto.Counter{Value: &v}
	case dto.MetricType_GAUGE:
		m.Gauge = &dto.Gauge{Value: &v}
	default:
		m.Untyped = &dto.Untyped{Value: &v}
	}
	return m
}

// TestSeries: rules of each kind over series that come, go, reset, repeat, are NaN and
// collide with the labels of the target; steps come early, late and after a pause, and
// the exporter is away at times.
func TestSeries(t *testing.T) {
	rules := readRules(t, "testdata/kinds.yaml")
	fired, failed := map[string]bool{}, map[string]bool{}
	for i := range uint64(*cases) {
		t.Run(fmt.Sprint("seed=", *seed+i), func(t *testing.T) {
			r := rand.New(rand.NewPCG(*seed+i, 0))
			interval := oneOf(r, 15*time.Second, 10*time.Second, time.Minute)
			p := newPair(t, options{
				rules: rules, interval: interval, resend: oneOf(r, time.Minute, 20*time.Second, 3*time.Minute),
				target:   map[string]string{"job": "accel-exporter", "instance": "n1"},
				external: map[string]string{"cluster": "c1"}, externalURL: "http://n1:9400",
			})
			e := newExporter(r)
			at := time.UnixMilli(1_800_000_000_000 + r.Int64N(60_000)).UTC()
			for range 120 {
				p.step(at, e.page(), !chance(r, 2))
				at = at.Add(pause(r, interval))
			}
			maps.Copy(fired, p.fired)
			maps.Copy(failed, p.failed)
		})
	}
	if len(fired) < 6 || len(failed) == 0 {
		t.Errorf("of the alerts only %v fired, of the rules %v failed", fired, failed)
	}
}

// pause is the time to the next step: mostly the interval, sometimes less, as after an
// event, or more.
func pause(r *rand.Rand, interval time.Duration) time.Duration {
	switch n := r.IntN(100); {
	case n < 85:
		return interval
	case n < 93:
		return time.Duration(1+r.Int64N(interval.Milliseconds())) * time.Millisecond
	case n < 99:
		return interval * time.Duration(2+r.IntN(5))
	}
	return 20 * time.Minute
}

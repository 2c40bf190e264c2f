package tools

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"math"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/textparse"
	"github.com/prometheus/prometheus/model/value"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/rules"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb"
	"github.com/prometheus/prometheus/tsdb/chunkenc"
)

// A history is what a Prometheus has of targets after hours, made of pages of some
// minutes: each second of the pages becomes a longer time. Faults happen once, so
// their counters do not grow by more than on the pages; energy, bytes and seconds do.
type history struct {
	targets []*recorded
	began   time.Time // of the pages
	times   []time.Time
}

// recorded is the pages of one target.
type recorded struct {
	address string
	labels  map[string]string
	series  map[string]*course
}

// course is one series of a target; it is NaN where its page lacked it.
type course struct {
	labels labels.Labels
	name   string
	counts bool
	values []float64
	ref    storage.SeriesRef
	there  bool
}

var (
	// once are counters of events.
	once = regexp.MustCompile(`error|xid|event|reset|exit|crash|fail|reconfig|remap|retired|report|replay|changes|rejected|refused|lost|malformed|remediator`)
	// ages grow as time does.
	ages = regexp.MustCompile(`^accel_allocation_(idle|fault_age)_seconds$`)
	// fresh are times that move with the scrape.
	fresh = regexp.MustCompile(`_last_(sample|success|pass)_timestamp_seconds$`)
)

// add asks every target for its page.
func (h *history) add(t *testing.T) {
	t.Helper()
	at := len(h.times)
	h.times = append(h.times, time.Now())
	for _, target := range h.targets {
		text, err := get("http://" + target.address + "/metrics")
		if err != nil {
			t.Fatal(err)
		}
		p, kinds := textparse.NewPromParser(text, labels.NewSymbolTable(), false), map[string]model.MetricType{}
		for {
			entry, err := p.Next()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatalf("%v: %v", target.labels, err)
			}
			if entry == textparse.EntryType {
				name, kind := p.Type()
				kinds[string(name)] = kind
			}
			if entry != textparse.EntrySeries {
				continue
			}
			raw, _, v := p.Series()
			c := target.series[string(raw)]
			if c == nil {
				c = &course{}
				p.Labels(&c.labels)
				c.name = c.labels.Get(model.MetricNameLabel)
				family := regexp.MustCompile(`_(bucket|sum|count)$`).ReplaceAllString(c.name, "")
				c.counts = kinds[c.name] == model.MetricTypeCounter || kinds[family] == model.MetricTypeHistogram
				b := labels.NewBuilder(c.labels)
				for name, v := range target.labels {
					b.Set(name, cmp.Or(c.labels.Get(name), v)) // honor_labels
				}
				c.labels = b.Labels()
				target.series[string(raw)] = c
			}
			c.upTo(at)
			c.values = append(c.values, v)
		}
	}
}

func (c *course) upTo(pages int) {
	for len(c.values) < pages {
		c.values = append(c.values, math.NaN())
	}
}

// grown makes the counters of what happens all the time grow faster by the factor, and
// evenly: the exporter samples once between two pages, or not, or twice.
func (c *course) grown(factor float64) {
	if !c.counts || once.MatchString(c.name) {
		return
	}
	const near = 4
	even := slices.Clone(c.values)
	for i := range even {
		if i < near || i+near >= len(even) || slices.ContainsFunc(c.values[i-near:i+near+1], math.IsNaN) {
			continue
		}
		even[i] = 0
		for _, v := range c.values[i-near : i+near+1] {
			even[i] += v / (2*near + 1)
		}
	}
	c.values = even
	last, sum := math.NaN(), math.NaN()
	for i, v := range c.values {
		switch {
		case math.IsNaN(v):
			continue
		case math.IsNaN(last) || v < last:
			sum = v
		default:
			sum += factor * (v - last)
		}
		last, c.values[i] = v, sum
	}
}

// at is the value at a moment, which is between the page i and the next.
func (h *history) at(c *course, i int, share, factor float64, now time.Time) float64 {
	v := c.values[i]
	switch {
	case ages.MatchString(c.name) && v > 0:
		return factor * (v + share)
	case fresh.MatchString(c.name):
		return float64(now.Unix()) - float64(h.times[i].Unix()) + v
	case strings.HasSuffix(c.name, "_timestamp_seconds") && v > 0:
		since := h.times[i].Sub(time.Unix(0, int64(v*1e9))).Seconds()
		before := min(since, h.times[i].Sub(h.began).Seconds())
		return float64(now.Unix()) - factor*(before+share) - (since - before)
	case c.counts && !once.MatchString(c.name) && i+1 < len(c.values) && c.values[i+1] > v:
		return v + share*(c.values[i+1]-v)
	}
	return v
}

// write makes the database of the span before the end, with scrapes and rules.
func (h *history) write(t *testing.T, dir string, end time.Time, span, interval time.Duration) {
	t.Helper()
	ctx, quiet, db := context.Background(), slog.New(slog.DiscardHandler), openDatabase(t, dir)
	engine := promql.NewEngine(promql.EngineOpts{MaxSamples: 50_000_000, Timeout: time.Minute})
	defer engine.Close()
	files, err := filepath.Glob(filepath.Join(root, "rules/*.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	loaded, errs := rules.NewManager(&rules.ManagerOptions{
		Context: ctx, Appendable: db, Queryable: db, QueryFunc: rules.EngineQueryFunc(engine, db), Logger: quiet, ExternalURL: &url.URL{},
		NotifyFunc: func(context.Context, string, ...*rules.Alert) {},
	}).LoadGroups(interval, labels.EmptyLabels(), "", nil, false, files...)
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	for _, g := range loaded {
		for _, r := range g.AlertingRules() {
			r.SetRestored(true) // there is no state before
		}
	}
	factor := span.Seconds() / h.times[len(h.times)-1].Sub(h.began).Seconds()
	for _, target := range h.targets {
		for _, c := range target.series {
			c.upTo(len(h.times))
			c.grown(factor)
		}
	}
	for now := end.Add(-span); !now.After(end); now = now.Add(interval) {
		real := h.began.Add(time.Duration(float64(span-end.Sub(now)) / factor))
		i := max(0, slices.IndexFunc(append(slices.Clip(h.times), real.Add(time.Hour)), real.Before)-1)
		share := min(1, max(0, real.Sub(h.times[i]).Seconds()))
		app := db.Appender(ctx)
		for _, target := range h.targets {
			for _, c := range target.series {
				v := h.at(c, i, share, factor, now)
				if math.IsNaN(v) {
					if !c.there {
						continue
					}
					v = math.Float64frombits(value.StaleNaN)
				}
				c.there = !math.IsNaN(v)
				if c.ref, err = app.Append(c.ref, c.labels, now.UnixMilli(), v); err != nil {
					t.Fatalf("%s: %v", c.labels, err)
				}
			}
			for name, v := range map[string]float64{"up": 1, "scrape_duration_seconds": 0.01, "scrape_samples_scraped": float64(len(target.series))} {
				own := maps.Clone(target.labels)
				own[model.MetricNameLabel] = name
				if _, err := app.Append(0, labels.FromMap(own), now.UnixMilli(), v); err != nil {
					t.Fatal(err)
				}
			}
		}
		if err := app.Commit(); err != nil {
			t.Fatal(err)
		}
		for _, g := range slices.Sorted(maps.Keys(loaded)) {
			if now.Unix()%int64(loaded[g].Interval().Seconds()) < int64(interval.Seconds()) {
				loaded[g].Eval(ctx, now)
			}
		}
	}
	earlier(t, db, dir, end.Add(-span))
	closeDatabase(t, db)
}

// earlier writes what the rules recorded of allocations in the 40 days before: as on
// average of these hours, idle more by night and more then than now.
func earlier(t *testing.T, db *tsdb.DB, dir string, until time.Time) {
	t.Helper()
	ctx := context.Background()
	q, err := db.Querier(until.UnixMilli(), math.MaxInt64)
	if err != nil {
		t.Fatal(err)
	}
	defer q.Close()
	type flat struct {
		labels labels.Labels
		mean   float64
		idle   bool
		ref    storage.SeriesRef
	}
	var all []flat
	const names = `namespace:accel_allocation_.+:rate5m|pool_model:accel_devices.*|pool_profile:accel_partitions.*`
	for set := q.Select(ctx, false, nil, labels.MustNewMatcher(labels.MatchRegexp, model.MetricNameLabel, names)); set.Next(); {
		s := flat{labels: set.At().Labels()}
		s.idle = strings.Contains(s.labels.Get(model.MetricNameLabel), "idle")
		var sum, n float64
		for it := set.At().Iterator(nil); it.Next() != chunkenc.ValNone; {
			if _, v := it.At(); !math.IsNaN(v) {
				sum, n = sum+v, n+1
			}
		}
		s.mean = sum / max(n, 1)
		all = append(all, s)
	}
	inside := filepath.Join(dir, "earlier")
	old := openDatabase(t, inside)
	for now := until.Add(-40 * 24 * time.Hour); now.Before(until); now = now.Add(4 * time.Minute) {
		app, days := old.Appender(ctx), until.Sub(now).Hours()/24
		factor := (1 + days/30) * (1 + 0.5*math.Cos(2*math.Pi*days))
		for i, s := range all {
			v := s.mean
			if s.idle {
				v *= factor
			}
			if all[i].ref, err = app.Append(s.ref, s.labels, now.UnixMilli(), v); err != nil {
				t.Fatal(err)
			}
		}
		if err := app.Commit(); err != nil {
			t.Fatal(err)
		}
	}
	closeDatabase(t, old)
	blocks, err := filepath.Glob(filepath.Join(inside, "*", "meta.json"))
	if err != nil || len(blocks) != 1 {
		t.Fatal(blocks, err)
	}
	block := filepath.Dir(blocks[0])
	if err := errors.Join(os.Rename(block, filepath.Join(dir, filepath.Base(block))), os.RemoveAll(inside)); err != nil {
		t.Fatal(err)
	}
}

func openDatabase(t *testing.T, dir string) *tsdb.DB {
	t.Helper()
	options := tsdb.DefaultOptions()
	options.MinBlockDuration = (100 * 24 * time.Hour).Milliseconds() // written when it is closed
	options.MaxBlockDuration = options.MinBlockDuration
	db, err := tsdb.Open(dir, slog.New(slog.DiscardHandler), nil, options, nil)
	if err != nil {
		t.Fatal(err)
	}
	return db
}

// closeDatabase leaves one block, which any version of Prometheus reads.
func closeDatabase(t *testing.T, db *tsdb.DB) {
	t.Helper()
	head := db.Head()
	err := errors.Join(db.CompactHead(tsdb.NewRangeHead(head, head.MinTime(), head.MaxTime())), db.Close(),
		os.RemoveAll(filepath.Join(db.Dir(), "wal")), os.RemoveAll(filepath.Join(db.Dir(), "chunks_head")))
	if err != nil {
		t.Fatal(err)
	}
}

// TestScreenshots draws the dashboards over hours of the simulated nodes, in which one
// fault happens after the other.
func TestScreenshots(t *testing.T) {
	into := os.Getenv("SCREENSHOTS")
	if into == "" {
		t.Skip("SCREENSHOTS is not set: make screenshots sets it")
	}
	program(t, "PROMETHEUS")
	dir := cmp.Or(*historyIn, t.TempDir())
	h := &history{}
	add := func(job, address string, l map[string]string) {
		l["job"], l["instance"] = job, cmp.Or(l["instance"], address)
		h.targets = append(h.targets, &recorded{address: address, labels: l, series: map[string]*course{}})
	}
	var faults []func()
	for i, n := range nodes {
		at, inject := n.run(t)
		for j, f := range n.faults {
			faults = slices.Insert(faults, min(len(faults), j*(i+1)), func() { inject(f) })
		}
		add("accel-exporter", at, map[string]string{"instance": n.name, "node": n.name, "pool": "mixed", "cluster": []string{"east", "west"}[i/3]})
	}
	add("beside", beside(t), map[string]string{"cluster": "east"})
	add("accel-remediator", remedied(t), map[string]string{"cluster": "east", "pool": "mixed"})
	eventually(t, "pods are known", func() error {
		text, err := get("http://" + h.targets[0].address + "/metrics")
		if err == nil && !strings.Contains(string(text), "accel_allocation_utilization_ratio{") {
			err = errors.New("none")
		}
		return err
	})
	h.began = time.Now()
	const before, between, after = 20, 2, 20 // pages
	for i := range before + between*len(faults) + after {
		h.add(t)
		if f := i - before; f >= 0 && f%between == 0 && f/between < len(faults) {
			faults[f/between]()
		}
		time.Sleep(time.Until(h.began.Add(time.Duration(i+1) * time.Second)))
	}
	end := time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC) // rules with long intervals depend on it
	h.write(t, dir, end, historySpan, *historyStep)

	p := startPrometheus(t, t.TempDir(), "", "--storage.tsdb.path="+dir, "--storage.tsdb.retention.time=60d")
	screenshots(t, p, into, end)
}

const historySpan = 3 * time.Hour

var (
	historyIn   = flag.String("history", "", "directory to keep the data of the screenshots in")
	historyStep = flag.Duration("history-step", 15*time.Second, "scrape interval of the screenshots")
)

// screenshots draws the top of each dashboard with test/render.
func screenshots(t *testing.T, p prom, into string, end time.Time) {
	t.Helper()
	out := t.TempDir()
	for _, what := range [][]string{{fmt.Sprint(historySpan.Minutes())}, {fmt.Sprint(7 * 24 * 60), "accel-idle"}} {
		args := append([]string{filepath.Join(root, "test/render/render.mjs"), "http://" + string(p), out}, what...)
		cmd := exec.Command("node", args...)
		cmd.Env = append(os.Environ(), "FORMAT=jpeg", "HEIGHT=1450", "SCALE=0.8", fmt.Sprint("END=", end.Unix()))
		if text, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, text)
		}
	}
	paths, err := filepath.Glob(filepath.Join(out, "*.jpeg"))
	if err != nil || len(paths) == 0 {
		t.Fatalf("%d pictures: %v", len(paths), err)
	}
	for _, path := range paths {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(into, filepath.Base(path)), string(data))
	}
}

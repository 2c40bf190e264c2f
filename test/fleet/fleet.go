package main

import (
	"context"
	"fmt"
	"hash/maphash"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb"
)

const (
	// now is when rules are evaluated.
	now      = 1_800_000_000
	lookback = 5 * time.Minute
	scrape   = 30 * time.Second
	// nameLabel has the name of a series.
	nameLabel = "__name__"
	// chunk is the average size of a chunk of the head, all of which an
	// instant query unpacks.
	chunk = 30 * time.Minute
)

// fleet is a filled database.
type fleet struct {
	head    *tsdb.Head
	dir     string
	now     time.Time
	nodes   int
	gpus    int // whole ones
	series  int
	heap    uint64   // bytes of the database
	absent  []string // families that rules read and the fleet does not have
	windows map[string]time.Duration
}

// newFleet fills a database with as much of the past of each family as the
// windows say; families outside them are left out, which makes the database
// smaller and no query cheaper.
func newFleet(path string, nodes int, windows map[string]time.Duration, history time.Duration) (*fleet, error) {
	page, err := loadPage(path)
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "fleet")
	if err != nil {
		return nil, err
	}
	opts := tsdb.DefaultHeadOptions()
	opts.ChunkDirRoot = dir
	// Recorded series get their past when the present has been written.
	opts.IsolationDisabled = true // there are no reads during appends
	opts.ChunkRange = (60 * 24 * time.Hour).Milliseconds()
	head, err := tsdb.NewHead(nil, nil, nil, nil, opts, nil)
	if err != nil {
		return nil, err
	}
	f := &fleet{head: head, dir: dir, now: time.Unix(now, 0), windows: windows}
	if err := head.Init(0); err != nil {
		return nil, err
	}
	devices, whole := devicesOf(page)
	if whole == 0 {
		return nil, fmt.Errorf("%s has no device", path)
	}
	f.nodes, f.gpus = nodes, whole*nodes
	known := map[string]bool{}
	for node := range nodes {
		if err := f.add(scraped(page, devices, node), history, known); err != nil {
			return nil, err
		}
	}
	for name := range windows {
		if !known[name] && !strings.Contains(name, ":") {
			f.absent = append(f.absent, name)
		}
	}
	slices.Sort(f.absent)
	runtime.GC()
	f.heap = heapNow()
	return f, nil
}

// devicesOf returns the labels of the devices that can be allocated, and how many
// whole ones there are.
func devicesOf(page []sample) (devices []map[string]string, whole int) {
	cut := map[string]bool{}
	for _, s := range page {
		if s.name != "accel_device_info" {
			continue
		}
		d := map[string]string{"device": s.labels["device"]}
		if parent := s.labels["parent"]; parent != "" {
			d["parent"], cut[parent] = parent, true
		} else {
			whole++
		}
		devices = append(devices, d)
	}
	return slices.DeleteFunc(devices, func(d map[string]string) bool { return cut[d["device"]] }), whole
}

// scraped are all series about a node, with the labels of their targets.
func scraped(page []sample, devices []map[string]string, node int) []sample {
	has := map[string]bool{}
	for _, s := range page {
		has[s.name] = true
	}
	all := slices.Clone(page)
	for _, s := range slices.Concat(allocations(node, devices), drift(devices), faults(node, devices), []sample{{"up", nil, 1}}) {
		if !has[s.name] {
			all = append(all, s)
		}
	}
	name := fmt.Sprintf("node-%d", node)
	target := []string{"cluster", "c", "pool", fmt.Sprintf("pool-%d", node%pools), "node", name, "job", "accel-exporter", "instance", name + ":9400"}
	for i, s := range all {
		l := with(s.labels, target...)
		for _, id := range []string{"device", "parent"} {
			if l[id] != "" {
				l[id] = fmt.Sprintf("%s-%04d", l[id], node)
			}
		}
		all[i].labels = l
	}
	for _, s := range cluster(node, devices) {
		all = append(all, sample{s.name, with(s.labels, "cluster", "c", "job", "beside", "instance", "beside:8080"), s.value})
	}
	return all
}

// add appends the past of the samples: counters that have begun grow, gauges
// that are not flags move a little.
func (f *fleet) add(all []sample, history time.Duration, known map[string]bool) error {
	app := f.head.Appender(context.Background())
	seed := maphash.MakeSeed()
	for _, s := range all {
		past, ok := f.windows[s.name]
		if !ok {
			continue
		}
		known[s.name] = true
		if past > history {
			return fmt.Errorf("a rule reads %s of %s as scraped: more than -history", past, s.name)
		}
		l := labels.FromMap(with(s.labels, nameLabel, s.name))
		f.series++
		var ref storage.SeriesRef
		var err error
		phase := time.Duration(maphash.String(seed, s.labels["node"])%uint64(scrape.Milliseconds())) * time.Millisecond
		n := int(past/scrape) + 1
		for i := range n {
			at := f.now.Add(-phase - scrape*time.Duration(n-1-i))
			if ref, err = app.Append(ref, l, at.UnixMilli(), value(s, i)); err != nil {
				return fmt.Errorf("%s: %w", l, err)
			}
		}
	}
	return app.Commit()
}

func value(s sample, i int) float64 {
	switch {
	case strings.HasSuffix(s.name, "_timestamp_seconds") && s.value <= 1: // of the run that made the page
		return now
	case strings.HasSuffix(s.name, "_timestamp_seconds"):
		return s.value
	case s.value == 0 || s.value == 1 || strings.HasSuffix(s.name, "_info"):
		return s.value
	case strings.Contains(s.name, "bytes_total"):
		return s.value + 1e10*float64(i)
	case strings.HasSuffix(s.name, "_seconds_total"):
		return s.value + float64(i)
	case strings.HasSuffix(s.name, "_total"), strings.HasPrefix(s.name, "kube_"):
		return s.value
	default:
		return s.value * (1 + float64(i*7919%13)/1000)
	}
}

// record appends what a rule has recorded, and the same for as long as rules
// will look back at it.
func (f *fleet) record(name string, vector []labels.Labels, values []float64, interval time.Duration) error {
	app := f.head.Appender(context.Background())
	for i, l := range vector {
		b := labels.NewBuilder(l)
		b.Set(nameLabel, name)
		named := b.Labels()
		var ref storage.SeriesRef
		var err error
		for n := int(f.windows[name] / interval); n >= 0; n-- {
			at := f.now.Add(-time.Duration(n) * interval)
			if ref, err = app.Append(ref, named, at.UnixMilli(), values[i]); err != nil {
				return fmt.Errorf("%s: %w", named, err)
			}
		}
	}
	return app.Commit()
}

func (f *fleet) close() {
	f.head.Close()
	os.RemoveAll(f.dir)
}

func heapNow() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

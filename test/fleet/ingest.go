package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/textparse"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb"
)

const (
	// ingestFor is the time that a head block covers before Prometheus writes
	// it to disk: up to three hours, two on average.
	ingestFor = 2 * time.Hour
	// podChanges is how often the pod of a device changes in a day.
	podChanges = 20
)

// ingested is what one page costs a Prometheus.
type ingested struct {
	page      string
	onNode    int    // series of a page
	series    uint64 // of the head, with those of ended pods
	heap      uint64 // bytes
	cpu       time.Duration
	disk      int64 // bytes of the block
	nodes     int
	processed int // samples
}

// ingest parses and appends the pages of all nodes for two hours, as scrapes do, and
// writes the block.
func ingest(page string, node []sample, nodes int, interval time.Duration) (_ *ingested, err error) {
	dir, err := os.MkdirTemp("", "ingest")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	runtime.GC()
	before := heapNow()
	options := tsdb.DefaultOptions()
	options.MinBlockDuration = (24 * time.Hour).Milliseconds() // written below
	options.MaxBlockDuration = options.MinBlockDuration
	db, err := tsdb.Open(dir, slog.New(slog.DiscardHandler), nil, options, nil)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()

	out := &ingested{page: page, onNode: len(node), nodes: nodes}
	s := &scraper{head: db.Head(), nodes: make([]target, nodes)}
	begin := time.Unix(now-now%86400, 0)
	started := cpu()
	for at := time.Duration(0); at < ingestFor; at += interval {
		generation := int(at * podChanges / (24 * time.Hour))
		text := render(node, int(at/interval))
		for n := range nodes {
			if err := s.scrape(n, generation, text, begin.Add(at)); err != nil {
				return nil, err
			}
		}
	}
	out.cpu = cpu() - started
	out.processed = s.samples
	out.series = db.Head().NumSeries()
	runtime.GC()
	out.heap = heapNow() - before
	if err := db.CompactHead(tsdb.NewRangeHead(db.Head(), db.Head().MinTime(), db.Head().MaxTime())); err != nil {
		return nil, err
	}
	err = filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err == nil && !d.IsDir() && !strings.Contains(path, "/wal/") && !strings.Contains(path, "/chunks_head/") {
			info, err := d.Info()
			if err != nil {
				return err
			}
			out.disk += info.Size()
		}
		return err
	})
	runtime.KeepAlive(s)
	return out, err
}

// render returns the page of a node at the step i. %d stands for its number.
func render(node []sample, i int) []byte {
	var b bytes.Buffer
	for _, s := range node {
		b.WriteString(s.name)
		b.WriteByte('{')
		for j, name := range slices.Sorted(maps.Keys(s.labels)) {
			if j > 0 {
				b.WriteByte(',')
			}
			fmt.Fprintf(&b, "%s=%q", name, s.labels[name])
		}
		b.WriteString("} ")
		b.Write(strconv.AppendFloat(b.AvailableBuffer(), value(s, i), 'g', -1, 64))
		b.WriteByte('\n')
	}
	return b.Bytes()
}

// scraper appends pages as Prometheus' scrape loop does: it parses each, and knows
// the series of each target by their text.
type scraper struct {
	head    *tsdb.Head
	nodes   []target
	samples int
}

type target struct {
	known      map[string]storage.SeriesRef
	generation int
}

func (s *scraper) scrape(n, generation int, text []byte, at time.Time) error {
	t := &s.nodes[n]
	if t.known == nil || t.generation != generation {
		// The series of ended pods stay in the head until it is written.
		t.known, t.generation = map[string]storage.SeriesRef{}, generation
	}
	app := s.head.Appender(context.Background())
	p := textparse.NewPromParser(text, labels.NewSymbolTable(), false)
	for {
		entry, err := p.Next()
		if errors.Is(err, io.EOF) {
			return app.Commit()
		}
		if err != nil {
			return err
		}
		if entry != textparse.EntrySeries {
			continue
		}
		raw, _, v := p.Series()
		ref, known := t.known[string(raw)]
		var l labels.Labels
		if !known {
			p.Labels(&l)
			l = targetLabels(l, n, generation)
		}
		now, err := app.Append(ref, l, at.UnixMilli(), v)
		if err != nil {
			return fmt.Errorf("%s: %w", l, err)
		}
		if !known {
			t.known[string(raw)] = now
		}
		s.samples++
	}
}

// targetLabels adds the labels of the node, makes devices of its own of the page's,
// and pods of the generation.
func targetLabels(l labels.Labels, node, generation int) labels.Labels {
	b := labels.NewBuilder(l)
	name := fmt.Sprintf("node-%d", node)
	for _, target := range [][2]string{{"cluster", "c"}, {"pool", fmt.Sprintf("pool-%d", node%pools)}, {"node", name}, {"job", "accel-exporter"}, {"instance", name + ":9400"}} {
		b.Set(target[0], target[1])
	}
	for _, id := range []string{"device", "parent", "UUID", "pod", "hostname"} {
		v := l.Get(id)
		if v == "" {
			continue
		}
		v = fmt.Sprintf("%s-%04d", v, node)
		if id == "pod" {
			v = fmt.Sprintf("%s-%d", v, generation)
		}
		b.Set(id, v)
	}
	return b.Labels()
}

func heapNow() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// ingestPages are the pages that -ingest compares: with the allocations of their
// pods, which dcgm-exporter has as labels of all series.
func ingestPages() (names []string, pages map[string][]sample, err error) {
	const golden = "../cmd/accel-exporter/testdata/golden/"
	c := classes["gpu"]
	pages = map[string][]sample{}
	for _, p := range [][2]string{{"standard", "h100-8.standard.metrics"}, {"full", "h100-8.metrics"}, {"dcgm-exporter", "h100-8.compat.metrics"}} {
		page, err := loadPage(golden + p[1])
		if err != nil {
			return nil, nil, err
		}
		if p[0] == "dcgm-exporter" {
			page = slices.DeleteFunc(page, func(s sample) bool { return !strings.HasPrefix(s.name, "DCGM_FI_") })
		} else {
			devices, _ := devicesOf(page)
			page = append(page, c.allocations(1, devices)...)
		}
		names = append(names, p[0])
		pages[p[0]] = page
	}
	return names, pages, nil
}

// reportIngest writes the table of docs/sizing.md.
func reportIngest(w io.Writer, all []*ingested) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprint(t, "page\tseries a node\tin the head\tbytes a series\tKiB a node\tCPU µs a sample\tms CPU a scrape\tMiB disk a node and day\t\n")
	for _, i := range all {
		scrapes := float64(i.processed) / float64(i.onNode)
		fmt.Fprintf(t, "%s\t%d\t%d\t%d\t%.0f\t%.2f\t%.2f\t%.1f\t\n", i.page, i.onNode, i.series/uint64(i.nodes), i.heap/i.series,
			float64(i.heap)/float64(i.nodes)/1024, i.cpu.Seconds()*1e6/float64(i.processed), i.cpu.Seconds()*1e3/scrapes,
			float64(i.disk)/float64(i.nodes)*float64(24*time.Hour/ingestFor)/(1<<20))
	}
	return t.Flush()
}

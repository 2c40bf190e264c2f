package exposition_test

import (
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/accel-exporter/accel-exporter/collector"
	"github.com/accel-exporter/accel-exporter/internal/exposition"
)

// Concurrent scrapes while snapshots advance and the set of series changes: each
// must be the whole page of one snapshot.
func TestConcurrentScrapes(t *testing.T) {
	snapshots := []*collector.Snapshot{node(2, 0, 40)}
	snapshots = append(snapshots, next(snapshots[0]), node(1, 3, 25))
	none := prometheus.NewRegistry()
	accepts := []string{text, openMetrics, protobuf}
	pages := make(map[string][]string)
	for _, accept := range accepts {
		for _, s := range snapshots {
			_, _, page := get(t, usual(s, none, drops{}), "Accept", accept)
			pages[accept] = append(pages[accept], page)
		}
	}

	var tick atomic.Uint64
	e := exposition.New(func() *collector.Snapshot { return snapshots[tick.Add(1)/3%uint64(len(snapshots))] }, nil, exposition.Options{})
	var wg sync.WaitGroup
	for i := range 4 {
		wg.Go(func() {
			for j := range 40 {
				accept := accepts[(i+j)%len(accepts)]
				encoding := []string{"gzip", "identity"}[j%2]
				_, header, page := get(t, e, "Accept", accept, "Accept-Encoding", encoding)
				if header.Get("Content-Encoding") == "gzip" {
					page = gunzip(t, page)
				}
				if !slices.Contains(pages[accept], page) {
					t.Errorf("%s, %s: the page of no snapshot:\n%s", accept, encoding, page)
					return
				}
			}
		})
	}
	wg.Wait()
}

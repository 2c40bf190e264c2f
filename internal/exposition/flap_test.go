package exposition_test

import (
	"net/http"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/accel-exporter/accel-exporter/collector"
	"github.com/accel-exporter/accel-exporter/internal/exposition"
)

// flapping returns snapshots of a node of which one reading comes and goes.
func flapping() [2]*collector.Snapshot {
	with := node(2, 0, 40)
	without := next(with)
	d := &without.Devices[0]
	d.Readings = d.Readings[:len(d.Readings)-1]
	return [2]*collector.Snapshot{with, without}
}

// Tables are not built again for a shape that was there a moment ago.
func TestFlappingReading(t *testing.T) {
	snapshots := flapping()
	i := 0
	latest := func() *collector.Snapshot { i++; return snapshots[i%2] }
	e := exposition.New(latest, nil, exposition.Options{})
	for range 4 {
		comparePages(t, usual(snapshots[(i+1)%2], prometheus.NewRegistry(), drops{}), e, "Accept", text, "Accept-Encoding", "gzip")
	}
	r := request(text, "gzip")
	w := discard{make(http.Header, 4)}
	if n := testing.AllocsPerRun(20, func() { clear(w.header); e.ServeHTTP(w, r) }); n > 20 && !raceEnabled {
		t.Errorf("%v allocations per scrape", n)
	}
}

// A layout from before the settings changed does not come back.
func TestFlappingReadingAndSettings(t *testing.T) {
	snapshots := flapping()
	i := 0
	e := exposition.New(func() *collector.Snapshot { return snapshots[i%2] }, nil, exposition.Options{})
	for i = range 2 {
		get(t, e, "Accept", text)
	}
	e.Apply(exposition.Settings{Drop: func(string) bool { return true }})
	for i = range 4 {
		if f, err := e.Gatherer().Gather(); err != nil || len(f) != 1 {
			t.Fatalf("%d families, %v, want the exporter's own", len(f), err)
		}
	}
}

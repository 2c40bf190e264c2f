package main

import (
	"context"
	"fmt"
	"runtime"
	"runtime/debug"
	"slices"
	"syscall"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb"
)

// cost is what one rule took.
type cost struct {
	group, rule string
	interval    time.Duration
	cpu         time.Duration // of one evaluation
	allocated   uint64        // bytes, in one evaluation
	series      int           // that it returned
}

// perMinute is the CPU time of the rule in a minute.
func (c cost) perMinute() time.Duration {
	return time.Duration(float64(c.cpu) * float64(time.Minute) / float64(c.interval))
}

// maxGarbage is how many bytes of garbage may lie about.
const maxGarbage = 1 << 30

// reference is a query whose cost does not change with the rules.
const reference = `count by (cluster, pool) (count by (cluster, pool, model) (accel_device_info{parent=""}))`

// evaluate runs every rule, in the order of the groups, and its records are
// there for the rules that follow.
func (f *fleet) evaluate(ctx context.Context, groups []group, rounds int) ([]cost, error) {
	engine := promql.NewEngine(promql.EngineOpts{MaxSamples: 1 << 30, Timeout: time.Hour, LookbackDelta: lookback})
	defer engine.Close()
	// No collection of garbage falls into a measurement: it would cost by the
	// size of the database, not by the rule. What a rule leaves is counted.
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	var costs []cost
	for _, g := range groups {
		for _, r := range g.rules {
			c, vector, err := f.measure(ctx, engine, r.expr.String(), rounds)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", r.name(), err)
			}
			c.group, c.rule, c.interval = g.name, r.name(), g.interval
			costs = append(costs, c)
			if r.record == "" {
				continue
			}
			var names []labels.Labels
			var values []float64
			for _, s := range vector {
				names, values = append(names, s.Metric), append(values, s.F)
			}
			if err := f.record(r.record, names, values, g.interval); err != nil {
				return nil, err
			}
		}
	}
	c, _, err := f.measure(ctx, engine, reference, rounds)
	c.rule, c.interval = reference, time.Minute
	return append(costs, c), err
}

// measure evaluates one expression several times. The least counts: what else
// the machine does can only add to it.
func (f *fleet) measure(ctx context.Context, engine *promql.Engine, expr string, rounds int) (cost, promql.Vector, error) {
	var c cost
	var vector promql.Vector
	var times []time.Duration
	var memory runtime.MemStats
	for range rounds {
		if heapNow() > f.heap+maxGarbage {
			runtime.GC()
		}
		runtime.ReadMemStats(&memory)
		allocated, before := memory.TotalAlloc, cpu()
		q, err := engine.NewInstantQuery(ctx, f, promql.NewPrometheusQueryOpts(false, 0), expr, f.now)
		if err != nil {
			return c, nil, err
		}
		res := q.Exec(ctx)
		if res.Err != nil {
			return c, nil, res.Err
		}
		if vector, err = res.Vector(); err != nil {
			return c, nil, err
		}
		vector = slices.Clone(vector)
		q.Close()
		times = append(times, cpu()-before)
		runtime.ReadMemStats(&memory)
		c.allocated = memory.TotalAlloc - allocated
	}
	c.cpu, c.series = slices.Min(times), len(vector)
	return c, vector, nil
}

// Querier makes the fleet a storage.Queryable.
func (f *fleet) Querier(from, to int64) (storage.Querier, error) {
	return tsdb.NewBlockQuerier(tsdb.NewRangeHead(f.head, from, to), from, to)
}

// cpu is the CPU time that the process has used.
func cpu() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err) // it cannot fail for the process itself
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

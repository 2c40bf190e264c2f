package main

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

// large is the fleet for which the cost is stated.
const large = 80_000

// report writes the table, the dearest rule first, and what it was measured on.
func report(w io.Writer, costs []cost, f *fleet) error {
	unit := f.class.unit
	each := func(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1000 / float64(f.devices) }
	kib := func(bytes float64) float64 { return bytes / 1024 / float64(f.devices) }
	last := costs[len(costs)-1]
	costs = slices.SortedFunc(slices.Values(costs[:len(costs)-1]), func(a, b cost) int { return cmp.Compare(b.perMinute(), a.perMinute()) })
	var perMinute time.Duration
	var allocated float64
	var dearest cost
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintf(tw, "µs per %s:\tevaluation\tminute\tKiB\tseries\tinterval\tgroup\n", unit)
	for _, c := range costs {
		perMinute += c.perMinute()
		allocated += float64(c.allocated) * float64(time.Minute) / float64(c.interval)
		if c.cpu > dearest.cpu {
			dearest = c
		}
		fmt.Fprintf(tw, "%s\t%.2f\t%.2f\t%.1f\t%d\t%s\t%s\n", c.rule, each(c.cpu), each(c.perMinute()), kib(float64(c.allocated)), c.series, c.interval, c.group)
	}
	fmt.Fprintf(tw, "all %d rules\t\t%.1f\t%.1f\n", len(costs), each(perMinute), kib(allocated))
	fmt.Fprintf(tw, "for comparison: %s\t%.2f\n", last.rule, each(last.cpu))
	if err := tw.Flush(); err != nil {
		return err
	}
	fmt.Fprintf(w, "The dearest evaluation is that of %s with %.1f µs per %s. All together take %.2f of a core for %d %ss, if cost grows as the fleet does.\n",
		dearest.rule, each(dearest.cpu), unit, each(perMinute)*large/60e6, large, unit)
	fmt.Fprintf(w, "Simulated: %d %ss on %d nodes, each with the page %s as its exporter wrote it, under names of its own, and with made-up series of pods, baselines, kube-state-metrics and node_exporter; %d series that rules read, with as much past as rules and chunks of half an hour look at.\n",
		f.devices, unit, f.nodes, f.class.page, f.series)
	fmt.Fprintln(w, "Measured: user and system time of Prometheus' engine on one core, the cheapest of the rounds; neither scraping, nor writing what is recorded, nor collecting the garbage that the column KiB counts.")
	if len(f.absent) > 0 {
		fmt.Fprintf(w, "Read by rules and not of this fleet: %s\n", strings.Join(f.absent, ", "))
	}
	return nil
}

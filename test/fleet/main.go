// Command fleet measures what the rule files cost a Prometheus that watches many
// nodes. It fills a TSDB head with the page of a node with eight GPUs, as the golden
// file has it, once for each node of a fleet. Beside it stand the series of
// allocations, kube-state-metrics and node_exporter that the rules join. Every rule is
// evaluated with Prometheus' own engine.
//
// Costs are CPU time of the process on one core, per GPU: of one evaluation, and of a
// minute at the interval of the rule's group. The cheapest of several rounds counts,
// so that most of what else the machine does is left out; no garbage is collected
// meanwhile, and how much there is stands beside. The table ends with a query that
// stays the same, to compare machines by.
package main

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

func main() {
	if err := run(context.Background(), os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "fleet:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, stdout io.Writer) error {
	flags := flag.NewFlagSet("fleet", flag.ContinueOnError)
	nodes := flags.Int("nodes", 1000, "nodes of the fleet")
	rounds := flags.Int("rounds", 5, "evaluations of each rule, of which the cheapest counts")
	interval := flags.Duration("interval", time.Minute, "interval of groups without an interval")
	history := flags.Duration("history", 95*time.Minute, "longest window over scraped series that is filled; a rule with a longer one is an error")
	files := flags.String("rules", "../rules/*.yaml", "the rule files")
	page := flags.String("page", golden, "the page of one node")
	if err := flags.Parse(args); err != nil {
		return err
	}
	// One core, as a rule group has it; rusage counts all threads.
	runtime.GOMAXPROCS(1)
	paths, err := filepath.Glob(*files)
	if err != nil {
		return err
	}
	groups, err := loadGroups(paths, *interval)
	if err != nil {
		return err
	}
	f, err := newFleet(*page, *nodes, windows(groups, *history), *history)
	if err != nil {
		return err
	}
	defer f.close()
	costs, err := f.evaluate(ctx, groups, *rounds)
	if err != nil {
		return err
	}
	return report(stdout, costs, f)
}

// large is the number of GPUs for which the cost is stated.
const large = 80_000

// report writes the table, the most expensive rule first, and the simulated fleet that
// it was measured on.
func report(w io.Writer, costs []cost, f *fleet) error {
	each := func(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1000 / float64(f.gpus) }
	kib := func(bytes float64) float64 { return bytes / 1024 / float64(f.gpus) }
	last := costs[len(costs)-1]
	costs = slices.SortedFunc(slices.Values(costs[:len(costs)-1]), func(a, b cost) int { return cmp.Compare(b.perMinute(), a.perMinute()) })
	var perMinute time.Duration
	var allocated float64
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(tw, "µs per GPU:\tevaluation\tminute\tKiB\tseries\tinterval\tgroup")
	for _, c := range costs {
		perMinute += c.perMinute()
		allocated += float64(c.allocated) * float64(time.Minute) / float64(c.interval)
		fmt.Fprintf(tw, "%s\t%.2f\t%.2f\t%.1f\t%d\t%s\t%s\n", c.rule, each(c.cpu), each(c.perMinute()), kib(float64(c.allocated)), c.series, c.interval, c.group)
	}
	fmt.Fprintf(tw, "all %d rules\t\t%.1f\t%.1f\n", len(costs), each(perMinute), kib(allocated))
	fmt.Fprintf(tw, "for comparison: %s\t%.2f\n", last.rule, each(last.cpu))
	if err := tw.Flush(); err != nil {
		return err
	}
	most := slices.MaxFunc(costs, func(a, b cost) int { return cmp.Compare(a.cpu, b.cpu) })
	fmt.Fprintf(w, "The most expensive evaluation is that of %s with %.1f µs per GPU. All together take %.2f of a core for %d GPUs, if cost grows as the fleet does.\n",
		most.rule, each(most.cpu), each(perMinute)*large/60e6, large)
	fmt.Fprintf(w, "Simulated: %d GPUs on %d nodes, with made-up series of pods, baselines, kube-state-metrics and node_exporter; %d series that rules read, with as much past as rules and chunks of half an hour look at.\n",
		f.gpus, f.nodes, f.series)
	fmt.Fprintln(w, "Measured: user and system time of Prometheus' engine on one core, the cheapest of the rounds; neither scraping, nor writing what is recorded, nor collecting the garbage that the column KiB counts.")
	if len(f.absent) > 0 {
		fmt.Fprintf(w, "Read by rules and not of this fleet: %s\n", strings.Join(f.absent, ", "))
	}
	return nil
}

// Command fleet measures what the rule files cost a Prometheus that watches many
// nodes. It fills a TSDB head with the page of a node, as the golden file has
// it, once for each node of a fleet: eight GPUs, or FPGA cards with -class fpga.
// Beside it stand the series of allocations, kube-state-metrics and node_exporter that
// the rules join. Every rule is evaluated with Prometheus' own
// engine.
//
// Costs are CPU time of the process on one core, per device: of one evaluation,
// and of a minute at the interval of the rule's group. The cheapest of several
// rounds counts, so that most of what else the machine does is left out; no
// garbage is collected meanwhile, and how much there is stands beside. The table
// ends with a query that stays the same, to compare machines by.
//
// With -ingest it measures what pages cost Prometheus' database, rules aside: memory,
// CPU time to parse and append them, and disk.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
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
	interval := flags.Duration("interval", time.Minute, "interval of groups that have none of their own")
	history := flags.Duration("history", 95*time.Minute, "longest window over scraped series that is filled; a rule with a longer one is an error")
	files := flags.String("rules", "../rules/*.yaml", "the rule files")
	kind := flags.String("class", "gpu", "what the nodes have: gpu or fpga")
	page := flags.String("page", "", "the page of one node, where not the golden one of the class")
	pages := flags.Bool("ingest", false, "measure instead what the pages of the exporter and of dcgm-exporter cost to scrape and keep")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *pages {
		return runIngest(stdout, *nodes, *interval)
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
	c, ok := classOf(*kind, *page)
	if !ok {
		return fmt.Errorf("-class: found %q; accepted is gpu or fpga", *kind)
	}
	node, err := loadPage(c.page)
	if err != nil {
		return err
	}
	f, err := newFleet(c, node, *nodes, windows(groups, *history), *history)
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

func runIngest(stdout io.Writer, nodes int, interval time.Duration) error {
	names, pages, err := ingestPages()
	if err != nil {
		return err
	}
	var all []*ingested
	for _, name := range names {
		one, err := ingest(name, pages[name], nodes, interval)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		all = append(all, one)
	}
	return reportIngest(stdout, all)
}

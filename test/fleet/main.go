// Command fleet tells what the rule files cost a Prometheus that watches many
// nodes. It fills a TSDB head with the page of a node with eight GPUs, as the
// golden file has it, once for each node of a fleet, beside the series of
// allocations, kube-state-metrics, cAdvisor and node_exporter that the rules
// join, and evaluates every rule with Prometheus' own engine.
//
// Costs are CPU time of the process on one core, per GPU: of one evaluation, and
// of a minute at the interval of the rule's group. The cheapest of several
// rounds counts, so that most of what else the machine does, and collections of
// garbage that fall into one round, are left out. The table ends with a query
// that stays the same, to compare machines by.
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
	files := flags.String("rules", "../../rules/*.yaml", "the rule files")
	page := flags.String("page", "../../cmd/accel-exporter/testdata/golden/h100-8.metrics", "the page of one node")
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
	node, err := loadPage(*page)
	if err != nil {
		return err
	}
	f, err := newFleet(node, *nodes, windows(groups), *history)
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

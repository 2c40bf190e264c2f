package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/alecthomas/kingpin/v2"

	"github.com/accel-exporter/accel-exporter/internal/exposition"
)

// seriesJSON is the response of /debug/series.
type seriesJSON struct {
	// Detail is the --metrics.detail in force.
	Detail   string             `json:"detail"`
	Families []exposition.Usage `json:"families"`
}

// seriesCommand is `accel-exporter series`: what the page of a running exporter
// costs a Prometheus, and what the settings would save.
func seriesCommand(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	var ask askFlags
	app := kingpin.New("accel-exporter series", "Lists the metric families of a running exporter by their number of series: served now, at --metrics.detail=standard and at full. The first column is what metrics.drop of that family would save.")
	ask.add(app)
	var view viewFlags
	view.add(app)
	what := app.Arg("FAMILY", "Only these families: a name, or the beginning of names (accel_gpu_).").Strings()
	if _, err := parseArgs(app, args, stdout, stderr); err != nil {
		return err
	}
	var answer seriesJSON
	if err := ask.get(ctx, "/debug/series", "", &answer); err != nil {
		return err
	}
	answer.Families = slices.DeleteFunc(answer.Families, func(u exposition.Usage) bool {
		return len(*what) > 0 && !slices.ContainsFunc(*what, func(w string) bool { return strings.HasPrefix(u.Family, w) })
	})
	if len(answer.Families) == 0 {
		return noMatch{"family", strings.Join(*what, " ")}
	}
	slices.SortStableFunc(answer.Families, func(x, y exposition.Usage) int {
		return cmp.Or(cmp.Compare(y.Served, x.Served), cmp.Compare(y.Full, x.Full))
	})
	return show(&view, stdout, &answer, printSeries)
}

func printSeries(w *screen, a *seriesJSON) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprint(t, "SERVED\tSTANDARD\tFULL\t  FAMILY\n")
	var sum exposition.Usage
	for _, u := range a.Families {
		fmt.Fprintf(t, "%d\t%d\t%d\t  %s\n", u.Served, u.Standard, u.Full, u.Family)
		sum.Served += u.Served
		sum.Standard += u.Standard
		sum.Full += u.Full
	}
	fmt.Fprintf(t, "%d\t%d\t%d\t  all (detail in force: %s)\n", sum.Served, sum.Standard, sum.Full, a.Detail)
	return t.Flush()
}

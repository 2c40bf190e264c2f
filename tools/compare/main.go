// Command compare compares the output of "nvidia-smi -q -x" with a metrics page of
// accel-exporter on the same machine, field by field. fields.tsv lists the fields.
//
//	compare [-all] XML PAGE
//
// PAGE is a file or a URL. Exit status: 0, 1 if a field differs, 2 for an error.
// device.sh captures both and more on a machine with GPUs.
package main

import (
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"text/tabwriter"
)

func main() {
	all := flag.Bool("all", false, "also print equal fields, fields that both lack and elements without a series")
	flag.Usage = func() {
		fmt.Fprintln(flag.CommandLine.Output(), "usage: compare [-all] XML PAGE")
		flag.PrintDefaults()
	}
	flag.Parse()
	if flag.NArg() != 2 {
		flag.Usage()
		os.Exit(2)
	}
	results, err := run(flag.Arg(0), flag.Arg(1))
	if err != nil {
		fmt.Fprintln(os.Stderr, "compare:", err)
		os.Exit(2)
	}
	if show(os.Stdout, results, *all) {
		os.Exit(1)
	}
}

func run(xml, page string) ([]result, error) {
	x, err := read(xml)
	if err != nil {
		return nil, err
	}
	p, err := read(page)
	if err != nil {
		return nil, err
	}
	return compare(x, p)
}

// read reads a file or the body of a URL.
func read(from string) ([]byte, error) {
	if !strings.HasPrefix(from, "http://") && !strings.HasPrefix(from, "https://") {
		return os.ReadFile(from)
	}
	r, err := http.Get(from)
	if err != nil {
		return nil, err
	}
	defer r.Body.Close()
	if r.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s: %s", from, r.Status)
	}
	return io.ReadAll(r.Body)
}

// show prints a table of the results and the number of each verdict. It reports
// whether a field differs.
func show(w io.Writer, results []result, all bool) bool {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "GPU\tFIELD\tXML\tSERIES\tVALUE\tVERDICT")
	count := map[verdict]int{}
	for _, r := range results {
		count[r.verdict]++
		if all || r.verdict != equal && r.verdict != neither && r.verdict != noSeries {
			fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\n", r.gpu, r.field, r.xml, r.series, r.value, r.verdict)
		}
	}
	t.Flush()
	for i, v := range verdicts {
		fmt.Fprintf(w, "%s%d %s", strings.Repeat(", ", min(i, 1)), count[v], v)
	}
	fmt.Fprintln(w)
	return count[differs] > 0
}

package engine

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"

	"github.com/prometheus/prometheus/promql/parser"

	"github.com/accel-exporter/accel-exporter/internal/strict/wording"
)

var repetition = regexp.MustCompile(`x\s*([0-9]+)`)

// inputs parses the input series.
func (t *unitTest) inputs(r *ring) ([]input, error) {
	var all []input
	var total uint64
	for _, s := range t.InputSeries {
		for _, m := range repetition.FindAllStringSubmatch(s.Values, -1) {
			n, err := strconv.ParseUint(m[1], 10, 32)
			if total += n; err != nil || total > maxTestSamples {
				return nil, fmt.Errorf("series %s: found more than %d samples; accepted are at most that many in a test", wording.Quote(s.Series), maxTestSamples)
			}
		}
		l, values, err := parser.ParseSeriesDesc(s.Series + " " + s.Values)
		if err != nil {
			return nil, fmt.Errorf("series %s: %s", wording.Quote(s.Series), exprError(err))
		}
		if slices.ContainsFunc(values, func(v parser.SequenceValue) bool { return v.Histogram != nil }) {
			return nil, fmt.Errorf("series %s: found a native histogram; accepted are floats", wording.Quote(s.Series))
		}
		all = append(all, input{r.get(l, true), values})
	}
	return all, nil
}

// feedInputs adds the samples of one time to the ring.
func feedInputs(r *ring, inputs []input, at int) {
	for _, in := range inputs {
		if at < len(in.values) && !in.values[at].Omitted {
			r.append(in.series, in.values[at].Value)
		}
	}
}

package strict_test

import (
	"math"
	"testing"

	"github.com/accel-exporter/accel-exporter/internal/config/strict"
	"github.com/accel-exporter/accel-exporter/internal/sim/golden"
)

// FuzzDecode: whatever the file holds, Decode returns. A refusal is a list of
// single-line messages, each with a line of the file; what is accepted lies
// within every range.
func FuzzDecode(f *testing.F) {
	for _, s := range []string{
		"", "mode: fast\nshare: 0.5\noffset: -1e3\n", "weights: {a: 1, b: 2.5}\n", "limits:\n  x: {low: 1, high: 2}\n",
		"groups: &g\n  a: [x]\nlimit: *g\n", "layers: [{x: 1}, {y: 7}]\n", "inner:\n  limits:\n  - {low: 2, high: 1}\n",
		"code: abc\ncodes: [def]\nmodes: [slow]\n", "wait: 10s\non: true\n", "weights: {<<: *a}\n", "? [a]\n: b\n", "share: .nan\n",
		"title: |\n  a\n  b\n", "weights:\n\t- x\n", "a: {\n", "--- {}\n--- {}\n", "offset: 017\n", "share: !!float 1\n", "title: !!str 5\n",
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var got form
		err := strict.Decode("f.yml", data, &got)
		if err != nil {
			golden.Refused(t, err, data)
			return
		}
		if got.Share < 0 || got.Share > 1 || got.Count < 0 || got.Count > 9 || math.IsNaN(got.Offset) || math.IsInf(got.Offset, 0) || got.Limit.Low > got.Limit.High {
			t.Errorf("%+v", got)
		}
	})
}

package strict_test

import (
	"cmp"
	"math"
	"slices"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"

	"github.com/accel-exporter/accel-exporter/internal/config/strict"
	"github.com/accel-exporter/accel-exporter/internal/sim/golden"
)

// FuzzDecode: whatever the file holds, Decode returns. A refusal is a list of
// single-line messages, each with a line of the file; what is accepted lies
// within every range and is what the YAML library reads.
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
		checkForm(t, &got)
		var want form
		if err := yaml.Unmarshal(data, &want); err != nil {
			return // aliases and null, of which that decoder thinks otherwise
		}
		if diff := gocmp.Diff(want.Groups, got.Groups, gocmp.Comparer(sameGroups)); diff != "" {
			t.Errorf("groups (-library +strict):\n%s", diff)
		}
		if want.Share != got.Share || want.Count != got.Count || want.Wait != got.Wait || want.Title != got.Title {
			t.Errorf("the library reads %+v, strict %+v", want, got)
		}
	})
}

// sameGroups compares without telling an empty list from none.
func sameGroups(a, b map[string][]string) bool {
	if len(a) != len(b) {
		return false
	}
	for k := range a {
		if !slices.Equal(a[k], b[k]) {
			return false
		}
	}
	return true
}

func checkForm(t *testing.T, f *form) {
	t.Helper()
	limits := append(slices.Clone(f.Inner.Limits), f.Limit)
	for _, l := range f.Limits {
		limits = append(limits, l)
	}
	for _, l := range limits {
		if l.Low > l.High || l.Low < 0 || l.High > 100 {
			t.Errorf("limit %+v", l)
		}
	}
	for _, m := range append(slices.Clone(f.Modes), cmp.Or(f.Mode, "fast")) {
		if m != "fast" && m != "slow" {
			t.Errorf("mode %q", m)
		}
	}
	for _, w := range f.Weights {
		if !(w >= 0 && w <= 10) {
			t.Errorf("weight %v", w)
		}
	}
	if f.Share < 0 || f.Share > 1 || math.IsNaN(f.Offset) || math.IsInf(f.Offset, 0) || f.Count < 0 || f.Count > 9 || f.Wait != 0 && (f.Wait < time.Second || f.Wait > time.Minute) {
		t.Errorf("%+v", f)
	}
}

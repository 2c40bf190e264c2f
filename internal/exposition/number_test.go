package exposition

import (
	"bytes"
	"io"
	"math"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
)

func appendNumber(b []byte, v float64, openMetrics bool) []byte {
	w := append(b, make([]byte, slack)...)
	return w[:writeNumber(w, len(b), v, openMetrics)]
}

// expfmtNumber lets expfmt write v.
func expfmtNumber(t testing.TB, v float64, openMetrics bool) string {
	t.Helper()
	f := &dto.MetricFamily{
		Name:   new("x"),
		Type:   dto.MetricType_GAUGE.Enum(),
		Metric: []*dto.Metric{{Gauge: &dto.Gauge{Value: &v}}},
	}
	var b bytes.Buffer
	write := expfmt.MetricFamilyToText
	if openMetrics {
		write = func(w io.Writer, f *dto.MetricFamily) (int, error) { return expfmt.MetricFamilyToOpenMetrics(w, f) }
	}
	if _, err := write(&b, f); err != nil {
		t.Fatal(err)
	}
	return strings.TrimPrefix(strings.TrimSpace(b.String()), "# TYPE x gauge\nx ")
}

func checkNumber(t *testing.T, v float64) {
	t.Helper()
	for _, openMetrics := range []bool{false, true} {
		want := expfmtNumber(t, v, openMetrics)
		if got := string(appendNumber(nil, v, openMetrics)); got != want {
			t.Errorf("%x (OpenMetrics %v): %s, want %s", v, openMetrics, got, want)
		}
	}
}

var edgeNumbers = []float64{
	0, math.Copysign(0, -1), 1, 0.1, 0.5, 1.0 / 3, 1e-3, 1e-4, 9.9999e-5, 1e-5, 123456, 999999, 1e6, 1000001, 1234567,
	999999.5, 999999.999, 1e6 + 0.5, 1234567.891, 1.76e9 + 0.123, 1 << 52, 1<<53 - 1, 1 << 53, 1<<53 + 2, 1e15, 1e16, 1e17, 1e20, 1e21, 1e22, 1e23,
	999999999999.999, 0.001, 0.0015, 0.015625, 0.000244140625, 100.25, 5e-324, math.SmallestNonzeroFloat64, math.MaxFloat64,
	math.Pi, math.Inf(1), math.NaN(), 4503599627370497.5, 0.30000000000000004, 123456.789012345, 999999.9999999999,
}

func TestNumbers(t *testing.T) {
	for _, v := range edgeNumbers {
		checkNumber(t, v)
		checkNumber(t, -v)
	}
	r := rand.New(rand.NewPCG(1, 2))
	for range 200_000 {
		var v float64
		switch r.IntN(4) {
		case 0:
			v = math.Float64frombits(r.Uint64())
		case 1:
			v = float64(r.Int64()>>r.UintN(63)) / []float64{1, 10, 100, 1e3, 1e4, 1e5, 1e6, 1e9, 1e12, 64, 1000.5}[r.IntN(11)]
		case 2:
			v = r.Float64()
		case 3:
			v = math.Nextafter(float64(r.Int64N(1e9))/1e3, math.Inf(r.IntN(2)*2-1))
		}
		if got, want := string(appendNumber(nil, v, false)), string(appendReference(v)); got != want {
			t.Fatalf("%x: %s, want %s", v, got, want)
		}
	}
}

func FuzzNumber(f *testing.F) {
	for _, v := range edgeNumbers {
		f.Add(math.Float64bits(v))
	}
	f.Fuzz(func(t *testing.T, bits uint64) { checkNumber(t, math.Float64frombits(bits)) })
}

// appendReference is the rule of expfmt's text format.
func appendReference(v float64) []byte {
	switch {
	case v == 0:
		return []byte("0")
	case math.IsInf(v, 1):
		return []byte("+Inf")
	}
	return strconv.AppendFloat(nil, v, 'g', -1, 64)
}

var numbers = map[string]float64{"int": 4711, "bytes": 85899345920, "milli": 123.456, "timestamp": 1760000000.123, "seconds": 12.345678, "third": 100.0 / 3}

func BenchmarkNumber(b *testing.B) {
	for name, v := range numbers {
		b.Run(name+"/ours", func(b *testing.B) {
			buf := make([]byte, slack)
			for b.Loop() {
				writeNumber(buf, 0, v, false)
			}
		})
		b.Run(name+"/strconv", func(b *testing.B) {
			buf := make([]byte, 0, 32)
			for b.Loop() {
				buf = strconv.AppendFloat(buf[:0], v, 'g', -1, 64)
			}
		})
	}
}

// BenchmarkNumbers writes numbers that no branch predictor has seen before, of
// the kinds and in the shares that a page has them: a third each of small
// integers and short decimals, a quarter of large integers, the rest ratios of
// full precision.
func BenchmarkNumbers(b *testing.B) {
	r := rand.New(rand.NewPCG(4, 5))
	values := make([]float64, 1<<14)
	for i := range values {
		switch n := r.IntN(12); {
		case n < 4:
			values[i] = float64(r.Int64N(1e6) >> r.IntN(20))
		case n < 8:
			values[i] = float64(r.Int64N(1e9)>>r.IntN(20)) / []float64{100, 1e3, 1e6}[n%3]
		case n < 11:
			values[i] = float64(r.Int64N(1 << 46))
		default:
			values[i] = r.Float64()
		}
	}
	buf := make([]byte, slack)
	for i := 0; b.Loop(); i++ {
		writeNumber(buf, 0, values[i%len(values)], false)
	}
}

package exposition

import (
	"bytes"
	"io"
	"math"
	"strings"
	"testing"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
)

// expfmtNumber returns v as expfmt writes it.
func expfmtNumber(t *testing.T, v float64, openMetrics bool) string {
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

func TestNumbers(t *testing.T) {
	for _, v := range []float64{
		0, 1, 0.1, 0.5, 1.0 / 3, 1e-4, 1e-5, 123456, 999999, 1e6, 1234567, 999999.5, 1.76e9 + 0.123, 1 << 53, 1e20, 1e21,
		5e-324, math.MaxFloat64, math.Pi, math.Inf(1), math.NaN(),
	} {
		for _, v := range []float64{v, -v} {
			for _, openMetrics := range []bool{false, true} {
				want := expfmtNumber(t, v, openMetrics)
				if got := string(appendNumber(nil, v, openMetrics)); got != want {
					t.Errorf("%v (OpenMetrics %v): %s, want %s", v, openMetrics, got, want)
				}
			}
		}
	}
}

package exposition_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"syscall"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"github.com/accel-exporter/accel-exporter/collector"
	"github.com/accel-exporter/accel-exporter/internal/exposition"
)

// BenchmarkScrape is a scrape of each Snapshot of a node of eight GPUs, over a socket
// and with the families of the process. cpu-ns/op is the CPU time of the server and of
// the client, which reads the answer and drops it.
func BenchmarkScrape(b *testing.B) {
	reg := prometheus.NewRegistry()
	reg.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	snap := node(8)
	e := exposition.New(func() *collector.Snapshot { return snap }, reg, exposition.Options{})
	server := httptest.NewServer(e)
	defer server.Close()
	for _, encoding := range []string{"identity", "gzip"} {
		b.Run(encoding, func(b *testing.B) {
			request, err := http.NewRequestWithContext(b.Context(), http.MethodGet, server.URL, http.NoBody)
			if err != nil {
				b.Fatal(err)
			}
			request.Header.Set("Accept-Encoding", encoding)
			before := cpuTime(b)
			for b.Loop() {
				next := *snap
				snap = &next
				answer, err := server.Client().Do(request)
				if err != nil {
					b.Fatal(err)
				}
				n, _ := io.Copy(io.Discard, answer.Body)
				answer.Body.Close()
				b.ReportMetric(float64(n), "body-B")
			}
			b.ReportMetric(float64(cpuTime(b)-before)/float64(b.N), "cpu-ns/op")
		})
	}
}

func cpuTime(b *testing.B) int64 {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return u.Utime.Nano() + u.Stime.Nano()
}

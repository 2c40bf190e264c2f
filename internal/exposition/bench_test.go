package exposition_test

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/accel-exporter/accel-exporter/collector"
	"github.com/accel-exporter/accel-exporter/internal/exposition"
)

// shapes are the nodes that scrapes are measured on.
var shapes = []struct {
	name                 string
	gpus, partitions, of int
}{
	{"8gpu", 8, 0, 80},
	{"16x7mig", 16, 7, 60},
}

// ticker returns snapshots of one shape in turn, so that every value differs
// from that of the scrape before, at no cost to the scrape.
func ticker(gpus, partitions, of int) func() *collector.Snapshot {
	s := []*collector.Snapshot{node(gpus, partitions, of)}
	for len(s) < 4 {
		s = append(s, next(s[len(s)-1]))
	}
	var n atomic.Uint64
	return func() *collector.Snapshot { return s[n.Add(1)%uint64(len(s))] }
}

// BenchmarkScrape scrapes over a loopback socket and reports the CPU time of
// this process, the server, per scrape. The client is a separate process. Every
// value changes between scrapes.
//
//	go test -run '^$' -bench Scrape -benchtime 200x -count 5 ./internal/exposition
//
// Compare cpu-ns/op within one run: page is this package, promhttp is promhttp
// with a const metric per series. With gzip, page must take at most 1/8 of the
// CPU time of promhttp. ns/op is wall time and includes the client.
func BenchmarkScrape(b *testing.B) {
	for _, s := range shapes {
		latest := ticker(s.gpus, s.partitions, s.of)
		reg := prometheus.NewRegistry()
		reg.MustRegister(newNaive(latest))
		for _, encoding := range []string{"identity", "gzip"} {
			for _, server := range []struct {
				name    string
				handler http.Handler
			}{
				{"page", exposition.New(latest, nil, exposition.Options{})},
				{"promhttp", promhttp.HandlerFor(reg, handlerOpts)},
			} {
				b.Run(fmt.Sprintf("%s/%s/%s", s.name, encoding, server.name), func(b *testing.B) {
					scrape(b, server.handler, text, encoding)
				})
			}
		}
	}
}

func scrape(b *testing.B, h http.Handler, accept, encoding string) {
	server := httptest.NewServer(h)
	defer server.Close()
	client := exec.Command(os.Args[0])
	client.Env = append(os.Environ(), clientEnv+"="+strings.Join([]string{server.URL, accept, encoding}, "\n"))
	in, _ := client.StdinPipe()
	out, _ := client.StdoutPipe()
	client.Stderr = os.Stderr
	if err := client.Start(); err != nil {
		b.Fatal(err)
	}
	defer client.Wait()
	defer in.Close()
	answers := bufio.NewScanner(out)
	ask := func(n int) {
		fmt.Fprintln(in, n)
		if !answers.Scan() {
			b.Fatal("the client has gone")
		}
	}
	ask(3)
	b.ResetTimer()
	before := cpuTime(b)
	ask(b.N)
	used := cpuTime(b) - before
	b.StopTimer()
	b.ReportMetric(float64(used)/float64(b.N), "cpu-ns/op")
	var size int
	fmt.Sscan(answers.Text(), &size)
	b.ReportMetric(float64(size), "body-B")
}

func cpuTime(b *testing.B) int64 {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return u.Utime.Nano() + u.Stime.Nano()
}

const clientEnv = "EXPORTER_TEST_CLIENT"

// client runs instead of the tests where clientEnv is set. For each line of its
// input, a number, it scrapes that often and prints the size of the last body.
func client(settings string) {
	parts := strings.Split(settings, "\n")
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		var n, size int64
		fmt.Sscan(lines.Text(), &n)
		for range n {
			r, _ := http.NewRequest(http.MethodGet, parts[0], nil)
			r.Header.Set("Accept", parts[1])
			r.Header.Set("Accept-Encoding", parts[2])
			resp, err := http.DefaultClient.Do(r)
			if err != nil {
				fmt.Fprintln(os.Stderr, err)
				os.Exit(1)
			}
			size, _ = io.Copy(io.Discard, resp.Body)
			resp.Body.Close()
		}
		fmt.Println(size)
	}
}

// discard is a ResponseWriter that costs nothing.
type discard struct{ header http.Header }

func (d discard) Header() http.Header         { return d.header }
func (d discard) Write(b []byte) (int, error) { return len(b), nil }
func (d discard) WriteHeader(int)             {}

// BenchmarkRender measures a scrape without a network.
func BenchmarkRender(b *testing.B) {
	for _, s := range shapes {
		e := exposition.New(ticker(s.gpus, s.partitions, s.of), nil, exposition.Options{})
		for _, c := range []struct{ name, accept, encoding string }{
			{"text", text, ""},
			{"text-gzip", text, "gzip"},
			{"protobuf", protobuf, ""},
			{"protobuf-gzip", protobuf, "gzip"},
		} {
			b.Run(s.name+"/"+c.name, func(b *testing.B) {
				r := request(c.accept, c.encoding)
				e.ServeHTTP(discard{make(http.Header, 4)}, r) // builds what is built once
				b.ReportAllocs()
				before := cpuTime(b)
				for b.Loop() {
					e.ServeHTTP(discard{make(http.Header, 4)}, r)
				}
				b.ReportMetric(float64(cpuTime(b)-before)/float64(b.N), "cpu-ns/op")
			})
		}
		b.Run(s.name+"/rebuild", func(b *testing.B) {
			snapshot := node(s.gpus, s.partitions, s.of)
			r := request(text, "gzip")
			b.ReportAllocs()
			for b.Loop() {
				exposition.New(fixed(snapshot), nil, exposition.Options{}).ServeHTTP(discard{make(http.Header, 4)}, r)
			}
		})
	}
}

func request(accept, encoding string) *http.Request {
	r := httptest.NewRequest(http.MethodGet, "/metrics", nil)
	r.Header.Set("Accept", accept)
	if encoding != "" {
		r.Header.Set("Accept-Encoding", encoding)
	}
	return r
}

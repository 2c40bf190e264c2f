package exposition_test

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

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

// ready sends bytes made beforehand: the floor under any exporter.
type ready struct{ plain, zipped []byte }

func makeReady(b *testing.B, h http.Handler) ready {
	_, _, plain := get(b, h, "Accept", text)
	_, _, zipped := get(b, h, "Accept", text, "Accept-Encoding", "gzip")
	return ready{[]byte(plain), []byte(zipped)}
}

func (r ready) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
	body := r.plain
	if req.Header.Get("Accept-Encoding") == "gzip" {
		w.Header().Set("Content-Encoding", "gzip")
		body = r.zipped
	}
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	w.Write(body)
}

// BenchmarkScrape scrapes over a loopback socket and reports the CPU time that
// this process, the server alone, took per scrape: the client is a process of
// its own. Every value changes between scrapes.
//
// Only ratios inside one run mean anything, and of repeated runs the minimum:
//
//	go test -run '^$' -bench Scrape -benchtime 200x -count 6 ./internal/exposition
//
// Compare cpu-ns/op of fast with ready (the same bytes made beforehand, the
// target is 2), with conventional (the other face, through promhttp) and with
// naive (a const metric per series, through promhttp; the targets are 1/50
// and, with gzip, 1/20). ns/op is wall time and includes the client.
func BenchmarkScrape(b *testing.B) {
	for _, s := range shapes {
		latest := ticker(s.gpus, s.partitions, s.of)
		own := prometheus.NewRegistry()
		e := exposition.New(latest, own, exposition.Options{})
		reg := prometheus.NewRegistry()
		reg.MustRegister(newNaive(latest))
		faces := []struct {
			name    string
			handler http.Handler
			accept  []string
		}{
			{"ready", makeReady(b, e), []string{text}},
			{"fast", e, []string{text, openMetrics, protobuf}},
			{"conventional", conventional(e), []string{text}},
			{"naive", promhttp.HandlerFor(reg, handlerOpts), []string{text}},
		}
		for _, face := range faces {
			for _, accept := range face.accept {
				for _, encoding := range []string{"identity", "gzip"} {
					kind := map[string]string{text: "text", openMetrics: "openmetrics", protobuf: "protobuf"}[accept]
					b.Run(fmt.Sprintf("%s/%s/%s/%s", s.name, face.name, kind, encoding), func(b *testing.B) {
						scrape(b, face.handler, accept, encoding, 0)
					})
				}
			}
		}
	}
}

// BenchmarkPacedScrape leaves a pause between scrapes, as Prometheus does:
// caches are cold and the process is asleep, which costs more than the page.
// It is what a scrape costs a node; BenchmarkScrape is what can be compared
// well.
//
//	go test -run '^$' -bench PacedScrape -benchtime 50x -count 3 ./internal/exposition
func BenchmarkPacedScrape(b *testing.B) {
	latest := ticker(16, 7, 60)
	e := exposition.New(latest, nil, exposition.Options{})
	for _, encoding := range []string{"identity", "gzip"} {
		b.Run("ready/"+encoding, func(b *testing.B) { scrape(b, makeReady(b, e), text, encoding, pace) })
		b.Run("fast/"+encoding, func(b *testing.B) { scrape(b, e, text, encoding, pace) })
	}
}

const pace = 100 * time.Millisecond

func scrape(b *testing.B, h http.Handler, accept, encoding string, pause time.Duration) {
	server := httptest.NewServer(h)
	defer server.Close()
	client := exec.Command(os.Args[0])
	client.Env = append(os.Environ(), clientEnv+"="+strings.Join([]string{server.URL, accept, encoding, pause.String()}, "\n"))
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

// client is what this test binary becomes with clientEnv set: it scrapes as
// often as each line of its input says and answers with the size of the body.
func client(settings string) {
	parts := strings.Split(settings, "\n")
	pause, _ := time.ParseDuration(parts[3])
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
			time.Sleep(pause)
		}
		fmt.Println(size)
	}
}

// discard is a ResponseWriter that costs nothing.
type discard struct{ header http.Header }

func (d discard) Header() http.Header         { return d.header }
func (d discard) Write(b []byte) (int, error) { return len(b), nil }
func (d discard) WriteHeader(int)             {}

// BenchmarkRender is the part of a scrape that is this package's own.
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
		b.Run(s.name+"/flapping", func(b *testing.B) {
			latest := ticker(s.gpus, s.partitions, s.of)
			var n int
			e := exposition.New(func() *collector.Snapshot {
				now := *latest()
				if n++; n%2 == 0 {
					now.Devices = now.Devices[1:]
				}
				return &now
			}, nil, exposition.Options{})
			r := request(text, "gzip")
			for b.Loop() {
				e.ServeHTTP(discard{make(http.Header, 4)}, r)
			}
		})
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

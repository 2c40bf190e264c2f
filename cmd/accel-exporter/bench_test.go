package main

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// BenchmarkMemory starts the stripped program on the eight-GPU scenario. It
// reports the proportional set size and the anonymous memory of exporter and
// worker, after the first hundred operations and after the last. Run it with
// -benchtime=10000x to see whether memory grows.
func BenchmarkMemory(b *testing.B) {
	binary := filepath.Join(simulator(b), "accel-exporter")
	if out, err := exec.Command("make", "-s", "-C", "../..", "build", "BIN="+binary).CombinedOutput(); err != nil {
		b.Fatalf("%v\n%s", err, out)
	}
	config := tempFile(b, "accel.yaml", "metrics:\n  max_series: 50000\n")
	for _, bm := range []struct {
		name string
		op   func(*node)
	}{
		{"scrape", func(n *node) { n.scrape() }},
		{"reload", func(n *node) {
			n.request("/-/reload")
		}},
	} {
		b.Run(bm.name, func(b *testing.B) {
			state, flags := compile(b, scenario)
			cmd := exec.Command(binary, append(flags, "--web.listen-address=127.0.0.1:0", "--config.file="+config, "--web.enable-lifecycle")...)
			n := startCommand(b, state, cmd)
			// A scrape here would add a second format to the exporter's memory.
			n.poll(func() bool { code, _ := n.get("/-/ready"); return code == 200 }, func() string { return "readiness" })
			for range 100 {
				bm.op(n)
				time.Sleep(pace)
			}
			pss, anonymous := mib(b, n, cmd, "Pss"), mib(b, n, cmd, "Anonymous")
			for b.Loop() {
				bm.op(n)
				time.Sleep(pace)
			}
			b.ReportMetric(0, "ns/op")
			b.ReportMetric(pss, "first-pss-MiB")
			b.ReportMetric(anonymous, "first-anon-MiB")
			b.ReportMetric(mib(b, n, cmd, "Pss"), "last-pss-MiB")
			b.ReportMetric(mib(b, n, cmd, "Anonymous"), "last-anon-MiB")
		})
	}
}

// pace is the time between two operations. It is short for a scrape interval,
// but lets the exporter idle between scrapes.
const pace = 100 * time.Millisecond

// scrape requests the metrics with the headers of Prometheus and discards them.
func (n *node) scrape() {
	req, err := http.NewRequest(http.MethodGet, n.url+"/metrics", nil)
	if err != nil {
		n.t.Fatal(err)
	}
	req.Header.Set("Accept", "application/openmetrics-text;version=1.0.0,text/plain;version=0.0.4;q=0.5")
	req.Header.Set("Accept-Encoding", "gzip")
	resp, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		n.t.Fatal(err)
	}
	io.Copy(io.Discard, resp.Body)
	resp.Body.Close()
}

// mib sums a field of smaps_rollup over the exporter and its worker.
func mib(b *testing.B, n *node, cmd *exec.Cmd, field string) float64 {
	b.Helper()
	sum := 0.0
	for _, pid := range []int{cmd.Process.Pid, n.worker()} {
		f, err := os.Open(fmt.Sprintf("/proc/%d/smaps_rollup", pid))
		if err != nil {
			b.Fatal(err)
		}
		for scan := bufio.NewScanner(f); scan.Scan(); {
			if rest, ok := strings.CutPrefix(scan.Text(), field+":"); ok {
				kib, err := strconv.ParseFloat(strings.Fields(rest)[0], 64)
				if err != nil {
					b.Fatal(err)
				}
				sum += kib / 1024
			}
		}
		f.Close()
	}
	return sum
}

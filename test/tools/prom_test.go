package tools

import (
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// prom is the address of a Prometheus.
type prom string

// answer is what Prometheus returns of any query.
type answer struct {
	Data struct {
		Result []struct {
			Metric map[string]string
			Value  [2]any
		}
	}
}

func (p prom) ask(path string, form url.Values) (a answer, err error) {
	err = getJSON("http://"+string(p)+path+"?"+form.Encode(), &a)
	return a, err
}

// scrapes returns a configuration of Prometheus with a target, its labels and further
// sections.
func scrapes(job, address, labels, more string) string {
	return fmt.Sprintf(`global: {scrape_interval: 1s, evaluation_interval: 1s}
%sscrape_configs:
  - job_name: %s
    honor_labels: true
    static_configs: [{targets: ['%s'], labels: {%s}}]
`, more, job, address, labels)
}

// startPrometheus runs Prometheus with a configuration and further flags, its files in
// dir, until the test ends.
func startPrometheus(t *testing.T, dir, config string, flags ...string) prom {
	t.Helper()
	address, path := freeAddress(t), filepath.Join(dir, "prometheus.yml")
	write(t, path, config)
	if !slices.ContainsFunc(flags, func(f string) bool { return strings.HasPrefix(f, "--storage.") }) {
		flags = append(flags, "--storage.tsdb.path="+filepath.Join(dir, "data"))
	}
	start(t, address, program(t, "PROMETHEUS"), append([]string{"--config.file=" + path, "--web.listen-address=" + address}, flags...)...)
	return prom(address)
}

// awaits waits until a query has an answer.
func (p prom) awaits(t *testing.T, expr string) {
	t.Helper()
	eventually(t, expr, func() error {
		a, err := p.instant(expr)
		if err == nil && len(a.Data.Result) == 0 {
			err = errors.New("no data")
		}
		return err
	})
}

func (p prom) instant(expr string) (answer, error) {
	return p.ask("/api/v1/query", url.Values{"query": {expr}})
}

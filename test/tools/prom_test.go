package tools

import (
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"regexp"
	"slices"
	"sort"
	"strings"
	"testing"
	"time"
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

// series returns how many series the query has, over ten minutes where it is
// not of one moment.
func (p prom) series(q ask, expr string) (int, error) {
	if q.instant {
		a, err := p.instant(expr)
		return len(a.Data.Result), err
	}
	now := time.Now().Unix()
	a, err := p.ask("/api/v1/query_range", url.Values{
		"query": {expr}, "start": {fmt.Sprint(now - 600)}, "end": {fmt.Sprint(now)}, "step": {"5"},
	})
	return len(a.Data.Result), err
}

var (
	labelValues = regexp.MustCompile(`^label_values\((.+), (\w+)\)$`)
	queryResult = regexp.MustCompile(`^query_result\((.+)\)$`)
)

// values returns what a variable offers, as Grafana makes it of the answer.
func (p prom) values(t *testing.T, c choice, way map[string]string) []string {
	t.Helper()
	query := expanded(c.query(t), way)
	if m := labelValues.FindStringSubmatch(query); m != nil {
		var found struct{ Data []string }
		if err := getJSON("http://"+string(p)+"/api/v1/label/"+m[2]+"/values?"+url.Values{"match[]": {m[1]}}.Encode(), &found); err != nil {
			t.Errorf("variable %s: %v", c.Name, err)
		}
		return found.Data
	}
	m := queryResult.FindStringSubmatch(query)
	if m == nil {
		t.Errorf("variable %s: %q is no query that is known", c.Name, query)
		return nil
	}
	a, err := p.instant(m[1])
	if err != nil {
		t.Errorf("variable %s: %v", c.Name, err)
	}
	return picked(t, c, a)
}

// picked applies the regular expression of a variable to the text that Grafana
// makes of each series.
func picked(t *testing.T, c choice, a answer) []string {
	t.Helper()
	re, err := regexp.Compile(strings.ReplaceAll(strings.Trim(c.Regex, "/"), "(?<", "(?P<"))
	if err != nil {
		t.Errorf("variable %s: %v", c.Name, err)
		return nil
	}
	var all []string
	for _, s := range a.Data.Result {
		var labels []string
		for k, v := range s.Metric {
			labels = append(labels, fmt.Sprintf("%s=%q", k, v))
		}
		sort.Strings(labels)
		m := re.FindStringSubmatch("{" + strings.Join(labels, ",") + "} 1 0")
		if m == nil {
			t.Errorf("variable %s: %s does not fit %v", c.Name, c.Regex, labels)
			continue
		}
		all = append(all, m[max(1, re.SubexpIndex("value"))])
	}
	slices.Sort(all)
	return slices.Compact(all)
}

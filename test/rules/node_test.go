package differential

import (
	"bytes"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"
	"google.golang.org/protobuf/proto"

	dto "github.com/prometheus/client_model/go"
)

// node is a page of the exporter to which things happen.
type node struct {
	r        *rand.Rand
	families []*dto.MetricFamily
	devices  []string
	// asked are selectors of the rules: what could raise something.
	asked []*parser.VectorSelector

	now      time.Time
	down     int // steps that the exporter is away yet
	episodes []*episode
}

// episode is something that lasts for some steps.
type episode struct {
	steps  int
	device string // whose series are gone
	// metric has another value, or is an extra one of family.
	metric *dto.Metric
	before float64
	family string
	grows  bool
}

// golden reads pages of one machine; a family of a later one replaces that of
// an earlier. Values that differ from run to run are 1 at first.
func golden(t testing.TB, names ...string) []*dto.MetricFamily {
	t.Helper()
	all := map[string]*dto.MetricFamily{}
	for _, name := range names {
		data, err := os.ReadFile(filepath.Join("../../cmd/accel-exporter/testdata/golden", name))
		if err != nil {
			t.Fatal(err)
		}
		p := expfmt.NewTextParser(model.UTF8Validation)
		families, err := p.TextToMetricFamilies(bytes.NewReader(bytes.ReplaceAll(data, []byte(" VOLATILE\n"), []byte(" 1\n"))))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		maps.Copy(all, families)
	}
	var page []*dto.MetricFamily
	for _, name := range slices.Sorted(maps.Keys(all)) {
		page = append(page, all[name])
	}
	return page
}

func newNode(r *rand.Rand, page []*dto.MetricFamily, asked []*parser.VectorSelector) *node {
	n := &node{r: r, families: page, asked: asked}
	for _, f := range page {
		if f.GetName() == "accel_device_info" {
			for _, m := range f.Metric {
				n.devices = append(n.devices, labelOf(m, "device"))
			}
		}
	}
	return n
}

func labelOf(m *dto.Metric, name string) string {
	for _, l := range m.Label {
		if l.GetName() == name {
			return l.GetValue()
		}
	}
	return ""
}

// valueOf is where the value of a metric stands, nil for a histogram or
// summary.
func valueOf(m *dto.Metric) *float64 {
	switch {
	case m.Gauge != nil:
		return m.Gauge.Value
	case m.Counter != nil:
		return m.Counter.Value
	case m.Untyped != nil:
		return m.Untyped.Value
	}
	return nil
}

// page moves the node on to a time and returns its page, or false while the
// exporter is away.
func (n *node) page(at time.Time) ([]*dto.MetricFamily, bool) {
	n.now = at
	for range 3 {
		if chance(n.r, 50) {
			n.begin()
		}
	}
	n.episodes = slices.DeleteFunc(n.episodes, n.pass)
	switch {
	case n.down > 0:
		n.down--
		return nil, false
	case n.r.IntN(400) == 0:
		n.restart()
	}
	return n.render(), true
}

// begin begins an episode.
func (n *node) begin() {
	e := &episode{steps: 1 + n.r.IntN(oneOf(n.r, 3, 20, 160))}
	switch k := n.r.IntN(20); {
	case k == 0 && len(n.devices) > 0 && e.steps < 20:
		e.device = oneOf(n.r, n.devices...)
	case k < 12:
		n.ask(e)
	default:
		n.change(e, oneOf(n.r, n.families...))
	}
	n.episodes = append(n.episodes, e)
}

// change gives a metric of the family another value, or has it grow.
func (n *node) change(e *episode, f *dto.MetricFamily) {
	if len(f.Metric) == 0 {
		return
	}
	m := oneOf(n.r, f.Metric...)
	v := valueOf(m)
	if v == nil || slices.ContainsFunc(n.episodes, func(o *episode) bool { return o.metric == m }) {
		return
	}
	e.metric, e.before, e.grows = m, *v, f.GetType() == dto.MetricType_COUNTER
	if e.grows {
		return
	}
	*v = n.value(f.GetName(), *v)
}

func (n *node) value(name string, v float64) float64 {
	if strings.HasSuffix(name, "_timestamp_seconds") {
		return float64(n.now.Unix() - int64(n.r.IntN(1200)))
	}
	return oneOf(n.r, 0, 1, 1, v*0.5, v*1.25, v*3, v+100, 5000, -1)
}

// ask adds a series that a rule asks for: one of the page as the selector
// wants it, else one of a device.
func (n *node) ask(e *episode) {
	s := oneOf(n.r, n.asked...)
	own := map[string]string{}
	kind := dto.MetricType_GAUGE
	for _, f := range n.families {
		if f.GetName() == s.Name && len(f.Metric) > 0 {
			if valueOf(f.Metric[0]) == nil {
				return
			}
			for _, l := range oneOf(n.r, f.Metric...).Label {
				own[l.GetName()] = l.GetValue()
			}
			kind = f.GetType()
		}
	}
	if len(own) == 0 && len(n.devices) > 0 {
		own["device"] = oneOf(n.r, n.devices...)
	}
	for _, m := range s.LabelMatchers {
		if m.Name == model.MetricNameLabel {
			continue
		}
		if v, ok := satisfying(n.r, m); ok {
			own[m.Name] = v
		}
	}
	v := n.value(s.Name, 1)
	m := &dto.Metric{}
	for _, name := range slices.Sorted(maps.Keys(own)) {
		m.Label = append(m.Label, &dto.LabelPair{Name: proto.String(name), Value: proto.String(own[name])})
	}
	switch kind {
	case dto.MetricType_COUNTER:
		m.Counter, e.grows = &dto.Counter{Value: &v}, true
	case dto.MetricType_UNTYPED:
		m.Untyped = &dto.Untyped{Value: &v}
	default:
		m.Gauge = &dto.Gauge{Value: &v}
	}
	e.metric, e.family = m, s.Name
}

// satisfying is a value that a matcher takes and that is not empty, or false
// where a word of the matcher is none.
func satisfying(r *rand.Rand, m *labels.Matcher) (string, bool) {
	words := strings.FieldsFunc(m.Value, func(c rune) bool { return strings.ContainsRune("|()^$", c) })
	r.Shuffle(len(words), func(i, j int) { words[i], words[j] = words[j], words[i] })
	for _, w := range append(words, "some") {
		if w != "" && m.Matches(w) {
			return w, true
		}
	}
	return "", false
}

// pass moves an episode on by a step and reports whether it is over.
func (n *node) pass(e *episode) bool {
	if e.grows {
		*valueOf(e.metric) += float64(n.r.IntN(20))
	}
	if e.steps--; e.steps > 0 {
		return false
	}
	if e.metric != nil && e.family == "" && !e.grows {
		*valueOf(e.metric) = e.before
	}
	return true
}

// restart has the exporter away for some steps; what it counts itself begins
// anew.
func (n *node) restart() {
	n.down = n.r.IntN(8)
	for _, f := range n.families {
		for _, m := range f.Metric {
			if m.Counter != nil && chance(n.r, 50) {
				*m.Counter.Value = 0
			}
		}
	}
}

// render returns the page without what is lost and with what is extra.
func (n *node) render() []*dto.MetricFamily {
	lost := map[string]bool{}
	extra := map[string][]*dto.Metric{}
	for _, e := range n.episodes {
		if e.device != "" {
			lost[e.device] = true
		}
		if e.family != "" {
			extra[e.family] = append(extra[e.family], e.metric)
		}
	}
	var page []*dto.MetricFamily
	for _, f := range n.families {
		g := &dto.MetricFamily{Name: f.Name, Type: f.Type}
		for _, m := range f.Metric {
			if name := f.GetName(); strings.HasSuffix(name, "_last_sample_timestamp_seconds") || strings.HasSuffix(name, "_last_success_timestamp_seconds") {
				*valueOf(m) = float64(n.now.Unix() - 1)
			}
			if d := labelOf(m, "device"); d == "" || !lost[d] {
				g.Metric = append(g.Metric, m)
			}
		}
		g.Metric = append(g.Metric, extra[f.GetName()]...)
		delete(extra, f.GetName())
		if len(g.Metric) > 0 {
			page = append(page, g)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(extra)) {
		kind := dto.MetricType_GAUGE
		page = append(page, &dto.MetricFamily{Name: proto.String(name), Type: &kind, Metric: extra[name]})
	}
	return page
}

package remediation

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/common/expfmt"

	"github.com/accel-exporter/accel-exporter/collector"
	"github.com/accel-exporter/accel-exporter/internal/sim/golden"
)

// page returns these families as a scrape reads them.
func page(t *testing.T, c *Controller, leads, reloaded bool) string {
	t.Helper()
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(c)
	registry.MustRegister(Process(func() bool { return leads }, func() bool { return reloaded })...)
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	for _, f := range families {
		if _, err := expfmt.MetricFamilyToText(&b, f); err != nil {
			t.Fatal(err)
		}
	}
	return b.String()
}

// TestPage: two pools. One has a node that was taken out too often, an exempt
// node and a node whose hook fails; most nodes of the other fail at once.
// test/tools serves this page to the dashboards.
func TestPage(t *testing.T) {
	r := newRig(t, 10)
	for i := range 10 {
		r.nodes[fmt.Sprintf("n%02d", i)].Labels["pool"] = []string{"training", "inference"}[i/6]
	}
	r.nodes["n01"].Annotations = map[string]string{HistoryAnnotation: text([]time.Time{noon.Add(-4 * time.Hour), noon.Add(-2 * time.Hour)})}
	r.nodes["n02"].Annotations = map[string]string{HoldAnnotation: "true"}
	r.fails = func(what string) (bool, bool) { return what == "call", false }
	var listed []Alert
	for _, node := range []int{1, 2, 3, 6, 7, 8, 99} {
		listed = append(listed, lostOn(node, noon))
	}
	r.pass(t, time.Minute, listed...)
	got := page(t, r.c, true, false)
	golden.Compare(t, "testdata/page.metrics", got)
	for _, m := range Metrics() {
		if !strings.Contains(got, "\n# TYPE "+m.Name+" "+m.Kind.Type()+"\n") {
			t.Errorf("%s is in the table and not on the page", m.Name)
		}
	}
}

// TestPageWithoutPlan: a process that waits for the lease has no metrics of nodes.
func TestPageWithoutPlan(t *testing.T) {
	var names []string
	for line := range strings.Lines(page(t, newRig(t, 2).c, false, true)) {
		if name, ok := strings.CutPrefix(line, "# HELP "); ok {
			names = append(names, strings.Fields(name)[0])
		}
	}
	want := []string{acting.Name, actionsTotal.Name, leader.Name, policyReloaded.Name}
	if diff := cmp.Diff(want, names); diff != "" {
		t.Error(diff)
	}
}

// TestNamedNodes: a node that is in again has no series, and at most 1000 nodes
// have one.
func TestNamedNodes(t *testing.T) {
	r := newRig(t, 4)
	r.pass(t, time.Minute, lostOn(1, noon))
	if out := page(t, r.c, true, true); !strings.Contains(out, nodeOut.Name+`{device="",node="n01",pool="a"} `) {
		t.Error(out)
	}
	r.pass(t, 5*time.Minute)
	if out := page(t, r.c, true, true); strings.Contains(out, nodeOut.Name+"{") {
		t.Error(out)
	}
	record := map[string]string{RecordAnnotation: text(Record{Since: noon}), InspectAnnotation: "required"}
	r.c.plan.Store(&Plan{Nodes: slices.Collect(func(yield func(Step) bool) {
		for i := range maxNamed + 1 {
			if !yield(Step{Node: Node{Name: fmt.Sprint(i), Annotations: record}}) {
				return
			}
		}
	})})
	out := page(t, r.c, true, true)
	for _, m := range []*collector.Metric{nodeOut, nodeInspection} {
		if n := strings.Count(out, "\n"+m.Name+"{"); n != maxNamed {
			t.Errorf("%d series", n)
		}
	}
}

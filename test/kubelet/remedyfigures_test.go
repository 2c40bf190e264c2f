package kubelet_test

import (
	"flag"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// The figures of docs/remediator.md. They are measured when asked for, and
// assert nothing.
var (
	faults = flag.Int("remedy.faults", 0, "measure so many times how long it takes from a fault in the simulator to a tainted node")
	fleet  = flag.Int("remedy.fleet", 0, "measure memory and CPU time of a remediator with so many nodes")
)

// A GPU is lost on one node after the other: how long until the node is
// tainted, by way of the exporter's own rules, Alertmanager and its webhook.
func TestRemedyLatency(t *testing.T) {
	if *faults == 0 {
		t.Skip("asked for by -remedy.faults=50")
	}
	var nodes []string
	for i := range *faults {
		nodes = append(nodes, fmt.Sprintf("node-%03d", i))
	}
	r := newRemedy(t, nodes...)
	must(t, os.WriteFile(r.path("policy.yml"), []byte(remedyRules+"limits: {share: 1, per_hour: 10000}\nbreaker: {nodes: 1000}\n"), 0o600))
	r.act("--act")
	var took []time.Duration
	for _, node := range nodes {
		r.export(node)
		if !r.clean(node) {
			t.Fatalf("%s is out before the fault", node)
		}
		began := time.Now()
		r.sim("inject", "lost", "2")
		await(t, node+" is tainted", r.remediator, func() bool { return tainted(r.node(node)) })
		took = append(took, time.Since(began))
		r.end(&r.exporter)
		must(t, os.RemoveAll(r.path("state")))
	}
	slices.Sort(took)
	at := func(share float64) time.Duration {
		return took[min(len(took)-1, int(share*float64(len(took))))].Round(time.Millisecond)
	}
	t.Logf("%d faults: minimum %v, median %v, p90 %v, p99 %v, maximum %v", len(took), at(0), at(0.5), at(0.9), at(0.99), at(1))
}

// Nodes as large as in the field, twenty alerts that fire, and passes that find
// nothing to do.
func TestRemedyFleet(t *testing.T) {
	if *fleet == 0 {
		t.Skip("asked for by -remedy.fleet=1000")
	}
	r := newRemedy(t)
	must(t, os.WriteFile(r.path("policy.yml"), []byte(remedyRules+"limits: {share: 1, per_hour: 10000}\nbreaker: {nodes: 1000}\n"), 0o600))
	var failing []string
	for i := range *fleet {
		name := fmt.Sprintf("node-%04d", i)
		if len(failing) < 20 {
			failing = append(failing, name)
		}
		r.largeNode(name)
	}
	r.act("--act")
	await(t, "it has looked", r.remediator, func() bool {
		return r.shows("accel_remediator_pool_nodes{pool=\"\"} " + strconv.Itoa(*fleet))
	})
	r.fire(time.Now().Add(time.Hour), failing...)
	await(t, "the nodes are marked", r.remediator, func() bool {
		return !slices.ContainsFunc(failing, func(node string) bool { return !r.out(node) })
	})
	r.passes(2)
	began, before := time.Now(), r.cpu()
	<-time.After(time.Minute) // a scrape during this time would cost more than what is measured
	used, over := r.cpu()-before, time.Since(began)
	rollup := func(name string) int { return kernelSays(t, r.remediator, "smaps_rollup", name) }
	t.Logf("%d nodes, %d alerts: Pss %d KiB, of that anonymous %d KiB, peak of the resident set %d KiB; CPU %v in %v: %.2f %% of a core",
		*fleet, len(failing), rollup("Pss"), rollup("Anonymous"), kernelSays(t, r.remediator, "status", "VmHWM"), used, over.Round(time.Second), 100*used.Seconds()/over.Seconds())
}

// largeNode makes a node with as many images, labels and addresses as there are
// in the field: 12 KiB of it.
func (r *remedy) largeNode(name string) {
	r.t.Helper()
	labels, images := object{}, []any{}
	for i := range 60 {
		labels[fmt.Sprintf("feature.node.kubernetes.io/cpu-feature-%02d", i)] = "true"
	}
	for i := range 50 {
		images = append(images, object{"sizeBytes": 1 << 30, "names": []any{
			fmt.Sprintf("registry.example/team/image-%02d@sha256:%064d", i, i), fmt.Sprintf("registry.example/team/image-%02d:v1", i),
		}})
	}
	r.do(http.MethodPost, "/api/v1/nodes", object{"metadata": object{"name": name, "labels": labels}})
	r.do(http.MethodPatch, "/api/v1/nodes/"+name+"/status", object{"status": object{
		"images": images, "capacity": object{"cpu": "128", "memory": "2Ti", "nvidia.com/gpu": "8"}, "nodeInfo": object{"kubeletVersion": "v1.37.2"},
	}})
}

// cpu returns the processor time that the remediator has used.
func (r *remedy) cpu() time.Duration {
	r.t.Helper()
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", r.remediator.cmd.Process.Pid))
	must(r.t, err)
	_, rest, _ := strings.Cut(string(data), ") ")
	fields := strings.Fields(rest)
	user, err := strconv.Atoi(fields[11])
	must(r.t, err)
	system, err := strconv.Atoi(fields[12])
	must(r.t, err)
	return time.Duration(user+system) * 10 * time.Millisecond // of a clock of 100 Hz, as all have
}

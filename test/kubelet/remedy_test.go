package kubelet_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

var remediatorBinary = flag.String("remediator", root+"/bin/accel-remediator", "accel-remediator")

var alertmanagerBinary = flag.String("alertmanager", "", "Alertmanager; a test fails where it is not there")

const (
	remediatorAddress   = "127.0.0.1:19401"
	alertmanagerAddress = "127.0.0.1:9093"
	remediatorUser      = "accel-remediator"
	// proofPage is the page of exporters that are not real.
	proofPage = `# TYPE accel_source_up gauge
accel_source_up{source="nvidia",reason=""} 1
# TYPE accel_device_health gauge
accel_device_health{device="GPU-0",state="healthy"} 1
accel_device_health{device="GPU-3",state="healthy"} 1
# TYPE accel_device_faults_unknown_before_timestamp_seconds gauge
accel_device_faults_unknown_before_timestamp_seconds{device="GPU-0"} 1
`
)

// remedy is a cluster with simulated nodes, an Alertmanager and a remediator
// that has the rights it is shipped with and no more.
type remedy struct {
	*cluster
	alertmanager, remediator, exporter *process
	token, proofPort                   string
	proof                              atomic.Pointer[string] // the page of these exporters, nil if they are dead
	began                              time.Time              // of alerts that the test makes
}

// remedyRules is a policy of one rule, to which another may be added.
const remedyRules = `node_label: node
alerts: [Lost, Stuck]
settle: 10s
rules:
  - match: {alertname: "AcceleratorFailed|Lost", severity: critical}
    health: failed
    taints: [{key: accel.health, value: failed, effect: NoSchedule}]
    cordon: true
    condition: true
    evict: true
`

const remedyAlertmanager = `route: {receiver: remediator, group_by: ['...'], group_wait: 0s, group_interval: 1s, repeat_interval: 1h}
receivers:
  - name: remediator
    webhook_configs: [{url: "http://%s/webhook", send_resolved: true}]
`

// newRemedy returns one with nodes of these names.
func newRemedy(t *testing.T, nodes ...string) *remedy {
	t.Helper()
	needs(t)
	alertmanager := program(t, *alertmanagerBinary, "alertmanager/usr/bin/prometheus-alertmanager")
	r := &remedy{cluster: newCluster(t), began: time.Now(), proofPort: "19402"}
	r.do(http.MethodPost, "/api/v1/namespaces", object{"metadata": object{"name": "accel-exporter"}})
	r.do(http.MethodPost, "/api/v1/namespaces/accel-exporter/serviceaccounts", object{"metadata": object{"name": "default"}})
	for _, name := range nodes {
		r.do(http.MethodPost, "/api/v1/nodes", object{"metadata": object{"name": name}})
		r.exporterPod("accel-exporter", name, object{"app.kubernetes.io/name": "accel-exporter"})
	}
	r.serveProof()
	r.permitRemediator()
	must(t, os.WriteFile(r.path("policy.yml"), []byte(remedyRules+"breaker: {share: 0.5, window: 10m, nodes: 3}\n"), 0o600))
	must(t, os.WriteFile(r.path("alertmanager.yml"), fmt.Appendf(nil, remedyAlertmanager, remediatorAddress), 0o600))
	r.alertmanager = r.run("alertmanager.log", alertmanager, "--config.file="+r.path("alertmanager.yml"), "--storage.path="+r.path("am"),
		"--web.listen-address="+alertmanagerAddress, "--cluster.listen-address=")
	return r
}

// exporterPod makes the pod of an exporter, which has the address of the test.
func (r *remedy) exporterPod(namespace, node string, labels object) {
	r.t.Helper()
	name := "accel-exporter-" + node
	pods := "/api/v1/namespaces/" + namespace + "/pods"
	r.do(http.MethodPost, pods, object{
		"metadata": object{"name": name, "labels": labels},
		"spec":     object{"nodeName": node, "containers": []any{object{"name": "exporter", "image": "scratch.local/exporter:1"}}},
	})
	r.do(http.MethodPatch, pods+"/"+name+"/status", object{"status": object{"phase": "Running", "podIP": "127.0.0.1", "podIPs": []any{object{"ip": "127.0.0.1"}}}})
}

// serveProof starts the exporters of all nodes: one page, which says that all is well.
func (r *remedy) serveProof() {
	r.t.Helper()
	page := proofPage
	r.proof.Store(&page)
	stop, err := r.net.serve(19402, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if page := r.proof.Load(); page != nil {
			fmt.Fprint(w, *page)
			return
		}
		panic(http.ErrAbortHandler)
	}))
	must(r.t, err)
	r.t.Cleanup(stop)
}

// permitRemediator makes what deploy/remediator has, and a kubeconfig with a
// token of its service account.
func (r *remedy) permitRemediator() {
	r.t.Helper()
	page, err := os.ReadFile(root + "/deploy/remediator/remediator.yaml")
	must(r.t, err)
	r.create(string(page), "")
	r.token = r.serviceToken(remediatorUser, remediatorUser, nil)
	r.userConfig("remediator.kubeconfig", r.token)
}

// act starts the remediator.
func (r *remedy) act(args ...string) {
	r.remediator = r.replica("one", "remediator.kubeconfig", remediatorAddress, args...)
}

// replica starts a remediator with its own name. Of a flag that is given twice
// the last value counts.
func (r *remedy) replica(pod, kubeconfig, address string, args ...string) *process {
	r.t.Helper()
	return r.run("remediator.log", abs(r.t, *remediatorBinary), slices.Concat([]string{
		"--policy.file=" + r.path("policy.yml"), "--exporter.url=http://{address}:" + r.proofPort + "/metrics", "--alertmanager.url=http://" + alertmanagerAddress, "--kubeconfig=" + r.path(kubeconfig),
		"--namespace=" + remediatorUser, "--pod=" + pod, "--web.listen-address=" + address,
	}, args)...)
}

// export starts the exporter on a simulated node, with the kubelet of the
// simulation, and with its own rules.
func (r *remedy) export(node string, args ...string) {
	r.t.Helper()
	rules, err := os.ReadFile(root + "/rules/devices.yaml")
	must(r.t, err)
	r.proofPort = strings.TrimPrefix(exporterAddress, "127.0.0.1:")
	// An alert outlives its fault by minutes, for people who look late.
	rules = regexp.MustCompile(`keep_firing_for: \S+`).ReplaceAll(rules, []byte("keep_firing_for: 1s"))
	rules = bytes.ReplaceAll(rules, []byte(`"}[15m]) > 0`), []byte(`"}[1s]) > 0`))
	must(r.t, os.WriteFile(r.path("rules.yaml"), rules, 0o600))
	r.exporter = r.run("exporter.log", abs(r.t, root+"/bin/accel-sim"), append([]string{
		"run", "--scenario=h100-8", "--state=" + r.path("state"),
		"--fixtures=" + abs(r.t, root+"/fixtures"), "--library=" + abs(r.t, root+"/bin/sim/libnvidia-ml.so.1"), "--",
		abs(r.t, root+"/bin/accel-exporter"), "--web.listen-address=" + exporterAddress, "--alertmanager.url=http://" + alertmanagerAddress,
		"--rules.file=" + r.path("rules.yaml"), "--kubernetes.node=" + node,
	}, args...)...)
	await(r.t, "the exporter knows the allocations", r.exporter, func() bool {
		data, err := r.get("http://" + exporterAddress + "/metrics")
		return err == nil && strings.Contains(data, `pod="llm-0"`)
	})
}

// get reads a page in the cluster's network.
func (r *remedy) get(url string) (string, error) {
	resp, err := r.admin.Get(url)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	page, err := io.ReadAll(resp.Body)
	return string(page), err
}

// metrics returns the remediator's page, or nothing while there is none.
func (r *remedy) metrics() string {
	page, _ := r.get("http://" + remediatorAddress + "/metrics")
	return page
}

// post sends JSON in the cluster's network and returns the answer's status, 0 where
// there is none.
func (r *remedy) post(url, body string) int {
	resp, err := r.admin.Post(url, "application/json", strings.NewReader(body))
	if err != nil {
		return 0
	}
	resp.Body.Close()
	return resp.StatusCode
}

// fire sends alerts to Alertmanager, which end at a time.
func (r *remedy) fire(end time.Time, nodes ...string) {
	r.t.Helper()
	var list []object
	for _, node := range nodes {
		list = append(list, object{"alertname": "Lost", "node": node})
	}
	r.fireAs(end, list...)
}

// fireAs sends alerts with these labels beside the labels that all alerts have.
func (r *remedy) fireAs(end time.Time, labels ...object) {
	r.t.Helper()
	var list []any
	for _, l := range labels {
		all := object{"severity": "critical", "device": "GPU-0"}
		maps.Copy(all, l)
		list = append(list, object{
			"labels": all, "annotations": object{"summary": "a device is lost"},
			"startsAt": r.began.Format(time.RFC3339Nano), "endsAt": end.Format(time.RFC3339Nano),
		})
	}
	data, err := json.Marshal(list)
	must(r.t, err)
	await(r.t, "Alertmanager takes alerts", r.alertmanager, func() bool {
		return r.post("http://"+alertmanagerAddress+"/api/v2/alerts", string(data)) == http.StatusOK
	})
}

func (r *remedy) node(name string) object {
	r.t.Helper()
	return r.do(http.MethodGet, "/api/v1/nodes/"+name, nil)
}

// out reports whether a node is marked completely, as in the policy.
func (r *remedy) out(name string) bool {
	n := r.node(name)
	spec, _ := n["spec"].(object)
	conditions, _ := n["status"].(object)["conditions"].([]any)
	return text(n, "metadata", "labels", "accel.health") == "failed" && spec["unschedulable"] == true && tainted(n) &&
		slices.ContainsFunc(conditions, func(c any) bool {
			return text(c.(object), "type") == "AcceleratorsHealthy" && text(c.(object), "status") == "False"
		})
}

// clean reports whether nothing is left on a node but its history.
func (r *remedy) clean(name string) bool {
	n := r.node(name)
	spec, _ := n["spec"].(object)
	return text(n, "metadata", "labels", "accel.health")+text(n, "metadata", "annotations", "accel.health/record") == "" &&
		spec["unschedulable"] != true && !tainted(n)
}

// tainted reports whether a node has the taint of the policy.
func tainted(node object) bool {
	spec, _ := node["spec"].(object)
	taints, _ := spec["taints"].([]any)
	return slices.ContainsFunc(taints, func(t any) bool { return text(t.(object), "key") == "accel.health" })
}

// noted reports whether there is an Event of that reason on an object.
func (r *remedy) noted(namespace, name, reason string) bool {
	return r.notes(namespace, name, reason) > 0
}

// notes returns how many Events of that reason there are.
func (r *remedy) notes(namespace, name, reason string) (n int) {
	r.t.Helper()
	for _, e := range r.list("/api/v1/namespaces/" + namespace + "/events") {
		if text(e.(object), "reason") == reason && text(e.(object), "involvedObject", "name") == name {
			n++
		}
	}
	return n
}

// times returns how often a node was taken out, and record what stands on it.
func (r *remedy) times(name string) int {
	r.t.Helper()
	var times []time.Time
	must(r.t, json.Unmarshal([]byte(text(r.node(name), "metadata", "annotations", "accel.health/history")), &times))
	return len(times)
}

func (r *remedy) record(name string) string {
	r.t.Helper()
	return text(r.node(name), "metadata", "annotations", "accel.health/record")
}

// gone reports whether a pod has been evicted. No kubelet is there to end it.
func (r *remedy) gone(namespace, name string) bool {
	r.t.Helper()
	code, pod, err := r.ask(http.MethodGet, "/api/v1/namespaces/"+namespace+"/pods/"+name, adminToken, nil)
	return err == nil && (code == http.StatusNotFound || text(pod, "metadata", "deletionTimestamp") != "")
}

// shows reports whether a page of the remediator's metrics has a line.
func (r *remedy) shows(line string) bool {
	return strings.Contains(r.metrics(), "\n"+line+"\n")
}

// pod makes the pod that the simulated kubelet lists, bound to a node.
func (r *remedy) pod(namespace, name, node string) {
	r.t.Helper()
	for _, made := range [][2]string{{"/api/v1/namespaces", namespace}, {"/api/v1/namespaces/" + namespace + "/serviceaccounts", "default"}} {
		code, answer, err := r.ask(http.MethodPost, made[0], adminToken, object{"metadata": object{"name": made[1]}})
		if err != nil || code >= 300 && code != http.StatusConflict {
			r.t.Fatalf("%s: %d, %v, %v", made[0], code, answer, err)
		}
	}
	r.do(http.MethodPost, "/api/v1/namespaces/"+namespace+"/pods", object{
		"metadata": object{"name": name},
		"spec":     object{"nodeName": node, "containers": []any{object{"name": "main", "image": "scratch.local/main:1"}}},
	})
	r.began = time.Now() // a pod that is later than its alert is another one
}

// A GPU is lost in the simulator: the exporter on the node finds it, and Alertmanager
// receives the alert. Nothing is done to the node until the receiver of evidence has accepted
// the bundle. Then the node is marked, its pod evicted, and both have events, which name the
// evidence. When the GPU is back, all of that is undone. A dry run before does nothing. The
// remediator is killed again and again meanwhile.
func TestRemedy(t *testing.T) {
	t.Parallel()
	r := newRemedy(t, "gpu-node", "other")
	r.pod("training", "llm-0", "gpu-node")
	var accepts, received atomic.Bool
	stop, err := r.net.serve(8090, http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if !accepts.Load() {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		data, err := io.ReadAll(req.Body)
		received.Store(err == nil && req.Method == http.MethodPut && bytes.HasPrefix(data, []byte("\x1f\x8b"))) // of gzip
	}))
	must(t, err)
	t.Cleanup(stop)
	policy := func(evidence string) {
		must(t, os.WriteFile(r.path("policy.yml"), []byte(remedyRules+"breaker: {share: 0.5, window: 10m, nodes: 3}\nevidence: "+evidence+"\n"), 0o600))
	}
	policy("0s")
	r.export("gpu-node", "--bundle.directory="+r.path("bundles"), "--bundle.url=http://127.0.0.1:8090/evidence/")
	r.act("--interval=1s")
	r.sim("inject", "lost", "2")
	await(t, "the dry run reports its plan", r.remediator, func() bool {
		return r.shows(`accel_remediator_planned_nodes{action="take_out"} 1`)
	})
	if !r.clean("gpu-node") || r.noted("default", "gpu-node", "AcceleratorsUnhealthy") {
		t.Error("a dry run has changed something")
	}
	r.end(&r.remediator)
	policy("10m")
	r.act("--act", "--interval=1s")
	await(t, "the node waits for its evidence", r.remediator, func() bool {
		return r.shows(`accel_remediator_withheld_nodes{pool="",reason="evidence"} 1`)
	})
	r.end(&r.remediator)
	if !r.clean("gpu-node") {
		t.Error("the node was changed before its evidence has left")
	}
	accepts.Store(true)
	r.killing(func(reached func(string, func() bool)) {
		reached("the node is marked", func() bool { return r.out("gpu-node") })
		reached("the pod is evicted", func() bool { return r.gone("training", "llm-0") })
		reached("both have events", func() bool {
			return r.noted("default", "gpu-node", "AcceleratorsUnhealthy") && r.noted("training", "llm-0", "AcceleratorFault")
		})
	})
	if !received.Load() {
		t.Error("the node was marked before its evidence was received")
	}
	for _, e := range r.list("/api/v1/namespaces/default/events") {
		if e := e.(object); text(e, "reason") == "AcceleratorsUnhealthy" && !strings.Contains(text(e, "message"), "Evidence sent: http://127.0.0.1:8090/evidence/accel-gpu-node-") {
			t.Errorf("the Event does not name the evidence: %s", text(e, "message"))
		}
	}
	r.sim("clear")
	r.killing(func(reached func(string, func() bool)) {
		reached("all is undone", func() bool { return r.clean("gpu-node") })
		reached("that has an event, too", func() bool { return r.noted("default", "gpu-node", "AcceleratorsRecovered") })
	})
	if !r.clean("other") {
		t.Error("another node was touched")
	}
}

// killing kills the remediator at any time, until every awaited condition is true:
// less and less often, since what takes effect after a time must be let.
func (r *remedy) killing(steps func(reached func(string, func() bool))) {
	r.t.Helper()
	life := 300 * time.Millisecond
	r.act("--act", "--interval=1s")
	born := time.Now()
	steps(func(what string, check func() bool) {
		await(r.t, what, nil, func() bool {
			if time.Since(born) > life {
				r.end(&r.remediator)
				r.act("--act", "--interval=1s")
				born, life = time.Now(), life*2+time.Duration(rand.IntN(300))*time.Millisecond
			}
			return check()
		})
	})
	r.end(&r.remediator)
}

// A webhook that is forged, repeated or lost changes nothing that is not so; an
// API server that is away is waited for; most of a pool that fails at once trips
// the breaker.
func TestRemedyTrouble(t *testing.T) {
	t.Parallel()
	var nodes []string
	for i := range 200 {
		nodes = append(nodes, fmt.Sprintf("node-%03d", i))
	}
	r := newRemedy(t, nodes...)
	r.act("--act", "--interval=1s")
	forged := `{"version": "4", "status": "firing", "alerts": [{"status": "firing", "labels": {"alertname": "Lost", "severity": "critical", "node": "node-007"}}]}`
	await(t, "the remediator listens", r.remediator, func() bool {
		return r.post("http://"+remediatorAddress+"/webhook", forged) == http.StatusAccepted
	})
	r.down()
	r.fire(time.Now().Add(time.Hour), "node-001")
	r.up()
	await(t, "the node is marked once the API server is back", r.remediator, func() bool { return r.out("node-001") })
	if !r.clean("node-007") {
		t.Error("a forged webhook was believed")
	}
	r.fire(time.Now().Add(time.Hour), nodes...)
	await(t, "the breaker is open", r.remediator, func() bool {
		return r.shows(`accel_remediator_breaker_open{pool=""} 1`)
	})
	out := 0
	for _, node := range nodes {
		if !r.clean(node) {
			out++
		}
	}
	// What was done before the second look at the alerts is within the limits.
	if out > 10 {
		t.Errorf("%d nodes are out", out)
	}
	r.fire(time.Now().Add(-time.Second), nodes...)
	await(t, "all are let in again", r.remediator, func() bool {
		return !slices.ContainsFunc(nodes, func(node string) bool { return !r.clean(node) })
	})
}

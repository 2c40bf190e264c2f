package kubelet_test

import (
	"flag"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	podresources "k8s.io/kubelet/pkg/apis/podresources/v1"
)

var (
	managerBinary    = flag.String("kube-controller-manager", "", "the controller manager; a test fails where it is not there")
	adapterBinary    = flag.String("prometheus-adapter", "", "prometheus-adapter; a test fails where it is not there")
	prometheusBinary = flag.String("prometheus", "", "Prometheus; a test fails where it is not there")
)

const (
	exporterAddress   = "127.0.0.1:19400"
	prometheusAddress = "127.0.0.1:9090"
	adapterPort       = 6444
)

// scaled is what the HPA test scales, on devices of one kind.
type scaled struct {
	name, resource string
	devices        []string
}

// A Deployment on simulated GPUs, and a Deployment on MIG devices, are scaled
// by the use of their own pods: up when the pods are busy, down when they are
// not, and not while the use is unknown. The exporter joins devices to pods by
// the kubelet, Prometheus records by rules/recordings.yaml, and the adapter
// serves deploy/prometheus-adapter.
func TestScaling(t *testing.T) {
	t.Parallel()
	s := newScaling(t)
	whole := scaled{"whole", "nvidia.com/gpu", s.gpus}
	parts := scaled{"mig", "nvidia.com/mig-1g.10gb", s.migs}
	s.load("0.3", "all")
	for _, d := range []scaled{whole, parts} {
		s.n.serve(d.resource, d.name, devices(d.devices...)...)
	}
	s.n.await("the devices are there to be given out", func() bool {
		a, err := s.n.raw().GetAllocatableResources(t.Context(), &podresources.AllocatableResourcesRequest{})
		return err == nil && len(a.Devices) == len(whole.devices)+len(parts.devices)
	})
	for _, d := range []scaled{whole, parts} {
		s.deploy(d)
	}
	s.replicas("each has one pod, whose use is known", 1, whole, parts)
	s.active("True", whole, parts)

	s.load("0.95", "all")
	s.replicas("busy pods get company", 3, whole, parts)

	s.end(&s.exporter)
	s.active("False", whole, parts)
	s.replicas("their use is unknown", 3, whole, parts)

	s.load("0.05", "all")
	s.export()
	s.replicas("idle pods go", 1, whole, parts)
}

// scaling is a cluster with all that horizontal autoscaling takes.
type scaling struct {
	*cluster
	n                                      *node
	gpus, migs                             []string
	manager, adapter, prometheus, exporter *process
}

func newScaling(t *testing.T) *scaling {
	t.Helper()
	needs(t)
	manager := program(t, *managerBinary, "kube-controller-manager-v*")
	adapter := program(t, *adapterBinary, "prometheus-adapter-v*")
	prometheus := program(t, *prometheusBinary, "prometheus/usr/bin/prometheus")
	s := &scaling{cluster: newCluster(t)}
	s.n = s.join()
	s.do(http.MethodPost, "/api/v1/namespaces", object{"metadata": object{"name": "ml"}})
	s.userConfig("admin", adminToken)
	s.manager = s.run("manager.log", manager, "--kubeconfig="+s.path("admin"), "--leader-elect=false", "--secure-port=0",
		"--controllers=deployment-controller,replicaset-controller,horizontal-pod-autoscaler-controller,serviceaccount-controller",
		"--horizontal-pod-autoscaler-sync-period=1s", "--horizontal-pod-autoscaler-initial-readiness-delay=1s",
		"--horizontal-pod-autoscaler-downscale-stabilization=1s")
	s.n.start()
	s.schedule(pod{name: exporter, containers: []container{{name: "main"}}})
	s.simulate()
	s.export()
	s.record(prometheus)
	s.adapt(adapter)
	return s
}

const root = "../.."

// machineOfGPUs has four GPUs for whole pods and one cut into MIG devices.
const machineOfGPUs = `description: for autoscaling
driver: {version: 580.105.08, branch: r580_92, nvml: 13.580.105.08, cuda: "13.0"}
gpus:
  - {board: h100-sxm5-80gb, count: 4, load: 0.3}
  - {board: h100-sxm5-80gb, load: 0.3, mig: [1g.10gb, 1g.10gb, 1g.10gb, 1g.10gb], mig_load: ["0.3", "0.3", "0.3", "0.3"]}
`

// simulate sets the machine up.
func (s *scaling) simulate() {
	s.t.Helper()
	must(s.t, os.WriteFile(s.path("scenario.yaml"), []byte(machineOfGPUs), 0o600))
	out := s.sim("compile", "--flags", "--no-pods", "--scenario="+s.path("scenario.yaml"), "--library="+abs(s.t, root+"/bin/sim/libnvidia-ml.so.1"))
	must(s.t, os.WriteFile(s.path("flags"), out, 0o600))
	state := string(s.sim("state"))
	for _, id := range regexp.MustCompile(`(?m)^gpu\.[0-3]\.uuid (\S+)`).FindAllStringSubmatch(state, -1) {
		s.gpus = append(s.gpus, id[1])
	}
	s.migs = regexp.MustCompile(`MIG-[-0-9a-f]+`).FindAllString(state, -1)
	if len(s.gpus) != 4 || len(s.migs) != 4 {
		s.t.Fatalf("the simulated machine has GPUs %v and MIG devices %v", s.gpus, s.migs)
	}
}

// sim runs a command of the simulator.
func (c *cluster) sim(command string, args ...string) []byte {
	c.t.Helper()
	args = append([]string{command, "--state=" + c.path("state"), "--fixtures=" + abs(c.t, root+"/fixtures")}, args...)
	cmd := exec.Command(root+"/bin/accel-sim", args...)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		c.t.Fatalf("accel-sim %v: %v: %s", args, err, stderr.String())
	}
	return out
}

func abs(t *testing.T, path string) string {
	t.Helper()
	path, err := filepath.Abs(path)
	must(t, err)
	return path
}

// load sets how busy GPUs and their MIG devices are.
func (s *scaling) load(value, device string) {
	s.t.Helper()
	s.sim("inject", "set", "load", value, device)
	for i := range s.migs {
		s.sim("inject", "set", "load", value, fmt.Sprintf("4/%d", i))
	}
}

// export starts the exporter, as it is installed on a node.
func (s *scaling) export() {
	s.t.Helper()
	args := append([]string{"ACCEL_SIM_STATE=" + s.path("state"), "POD_NAME=" + exporter, "POD_NAMESPACE=ml", abs(s.t, root+"/bin/accel-exporter")}, strings.Fields(s.read("flags"))...)
	args = append(args, "--web.listen-address="+exporterAddress, "--podresources.socket="+s.n.path("pod-resources/kubelet.sock"),
		"--podresources.interval=1s", "--path.pod-logs=", "--kubernetes.node="+nodeName)
	s.exporter = s.run("exporter.log", "env", args...)
}

const prometheusConfig = `global: {scrape_interval: 1s, evaluation_interval: 1s}
rule_files: [%q]
scrape_configs: [{job_name: accel-exporter, honor_labels: true, static_configs: [{targets: [%q]}]}]
`

// record starts a Prometheus with the rules for autoscaling.
func (s *scaling) record(binary string) {
	s.t.Helper()
	config := fmt.Sprintf(prometheusConfig, abs(s.t, root+"/rules/recordings.yaml"), exporterAddress)
	must(s.t, os.WriteFile(s.path("prometheus.yml"), []byte(config), 0o600))
	s.prometheus = s.run("prometheus.log", binary, "--config.file="+s.path("prometheus.yml"), "--storage.tsdb.path="+s.path("tsdb"),
		"--web.listen-address="+prometheusAddress, "--query.lookback-delta=15s")
}

// adapt starts the adapter with the configuration that is shipped, and has the
// API server ask it.
func (s *scaling) adapt(binary string) {
	s.t.Helper()
	s.adapter = s.run("adapter.log", binary, "--config="+abs(s.t, root+"/deploy/prometheus-adapter/config.yaml"),
		"--prometheus-url=http://"+prometheusAddress, "--metrics-relist-interval=1s", "--metrics-max-age=30s",
		fmt.Sprint("--secure-port=", adapterPort), "--cert-dir="+s.path("adapter"),
		"--lister-kubeconfig="+s.path("admin"), "--authentication-kubeconfig="+s.path("admin"), "--authorization-kubeconfig="+s.path("admin"))
	s.do(http.MethodPost, "/api/v1/namespaces", object{"metadata": object{"name": "monitoring"}})
	port := object{"name": "https", "port": 443, "targetPort": adapterPort}
	s.do(http.MethodPost, "/api/v1/namespaces/monitoring/services", object{"metadata": object{"name": "adapter"}, "spec": object{"ports": []any{port}}})
	s.do(http.MethodPost, "/apis/discovery.k8s.io/v1/namespaces/monitoring/endpointslices", object{
		"metadata":    object{"name": "adapter", "labels": object{"kubernetes.io/service-name": "adapter"}},
		"addressType": "IPv4",
		"ports":       []any{object{"name": "https", "port": adapterPort}},
		"endpoints":   []any{object{"addresses": []any{nodeIP}, "conditions": object{"ready": true}}},
	})
	s.do(http.MethodPost, "/apis/apiregistration.k8s.io/v1/apiservices", object{
		"metadata": object{"name": "v1beta1.custom.metrics.k8s.io"},
		"spec": object{
			"group": "custom.metrics.k8s.io", "version": "v1beta1", "groupPriorityMinimum": 100, "versionPriority": 100,
			"insecureSkipTLSVerify": true, "service": object{"namespace": "monitoring", "name": "adapter"},
		},
	})
	await(s.t, "the metrics API is served", s.adapter, func() bool {
		code, _, err := s.ask(http.MethodGet, "/apis/custom.metrics.k8s.io/v1beta1", adminToken, nil)
		return err == nil && code == http.StatusOK
	})
}

// deploy makes a Deployment whose pods have one device each, and an autoscaler
// that waits for nothing.
func (s *scaling) deploy(d scaled) {
	s.t.Helper()
	pod := pod{name: d.name, containers: []container{{name: "main", devices: map[string]int{d.resource: 1}}}}.bound()
	label := object{"app": d.name}
	s.do(http.MethodPost, "/apis/apps/v1/namespaces/ml/deployments", object{
		"metadata": object{"name": d.name},
		"spec": object{
			"replicas": 1, "selector": object{"matchLabels": label},
			"template": object{"metadata": object{"labels": label}, "spec": pod["spec"]},
		},
	})
	s.do(http.MethodPost, "/apis/autoscaling/v2/namespaces/ml/horizontalpodautoscalers", object{
		"metadata": object{"name": d.name},
		"spec": object{
			"scaleTargetRef": object{"apiVersion": "apps/v1", "kind": "Deployment", "name": d.name},
			"minReplicas":    1, "maxReplicas": 3,
			"behavior": object{"scaleDown": object{"stabilizationWindowSeconds": 0}},
			"metrics": []any{object{"type": "Pods", "pods": object{
				"metric": object{"name": "accel_utilization_ratio"}, "target": object{"type": "AverageValue", "averageValue": "600m"},
			}}},
		},
	})
}

// replicas waits until every Deployment has that many pods, all of them ready,
// and wants no other number.
func (s *scaling) replicas(why string, want int, all ...scaled) {
	s.t.Helper()
	for _, d := range all {
		await(s.t, fmt.Sprintf("%s: %s has %d pods", why, d.name, want), s.manager, func() bool {
			o := s.do(http.MethodGet, "/apis/apps/v1/namespaces/ml/deployments/"+d.name, nil)
			status := o["status"].(object)
			return number(status, "replicas") == want && number(status, "readyReplicas") == want && number(s.autoscaler(d), "desiredReplicas") == want
		})
	}
}

func (s *scaling) autoscaler(d scaled) object {
	s.t.Helper()
	o := s.do(http.MethodGet, "/apis/autoscaling/v2/namespaces/ml/horizontalpodautoscalers/"+d.name, nil)
	status, _ := o["status"].(object)
	return status
}

// active waits until every HPA has a value to go by, or none has.
func (s *scaling) active(want string, all ...scaled) {
	s.t.Helper()
	for _, d := range all {
		await(s.t, fmt.Sprintf("%s is scaled by a value: %s", d.name, want), s.manager, func() bool {
			conditions, _ := s.autoscaler(d)["conditions"].([]any)
			return slices.ContainsFunc(conditions, func(c any) bool {
				return text(c.(object), "type") == "ScalingActive" && text(c.(object), "status") == want
			})
		})
	}
}

func number(o object, key string) int {
	f, _ := o[key].(float64)
	return int(f)
}

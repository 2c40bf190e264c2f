package kubelet_test

import (
	"errors"
	"flag"
	"net/http"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var helmBinary = flag.String("helm", "", "helm; a test fails where it is not there")

const chart = root + "/deploy/helm/accel-exporter"

// The API server takes every object of the chart, with each of the values that
// it is tested with: its admission, its validation and its knowledge of fields.
func TestClusterChart(t *testing.T) {
	t.Parallel()
	helm := program(t, *helmBinary, "helm-v*")
	c := newCluster(t)
	c.do(http.MethodPost, "/api/v1/namespaces", object{"metadata": object{"name": "chart"}})
	values, err := filepath.Glob(chart + "/ci/*-values.yaml")
	if err != nil || len(values) == 0 {
		t.Fatalf("%d files of values, %v", len(values), err)
	}
	for _, file := range values {
		manifest := render(t, helm, "chart", "--namespace=chart", "--values="+file, "--set=crdCheck=false,remediator.namespace=")
		c.create(manifest, "&dryRun=All")
	}
}

// render returns what the chart becomes.
func render(t *testing.T, helm, release string, args ...string) string {
	t.Helper()
	out, err := exec.Command(helm, append([]string{"template", release, chart, "--set=image.repository=registry.example/accel-exporter,remediator.image.repository=registry.example/accel-remediator"}, args...)...).Output()
	if err != nil {
		var ended *exec.ExitError
		if errors.As(err, &ended) {
			t.Fatalf("helm %q: %s", args, ended.Stderr)
		}
		t.Fatal(err)
	}
	return string(out)
}

// collections are where objects of a kind are made; NS stands for a namespace.
// The kinds of other operators, which a cluster may lack, have no path.
var collections = map[string]string{
	"PodMonitor": "", "ServiceMonitor": "", "PrometheusRule": "", "SecurityContextConstraints": "",

	"Namespace":                        "/api/v1/namespaces",
	"ServiceAccount":                   "/api/v1/namespaces/NS/serviceaccounts",
	"ConfigMap":                        "/api/v1/namespaces/NS/configmaps",
	"Service":                          "/api/v1/namespaces/NS/services",
	"DaemonSet":                        "/apis/apps/v1/namespaces/NS/daemonsets",
	"Job":                              "/apis/batch/v1/namespaces/NS/jobs",
	"Deployment":                       "/apis/apps/v1/namespaces/NS/deployments",
	"NetworkPolicy":                    "/apis/networking.k8s.io/v1/namespaces/NS/networkpolicies",
	"ClusterRole":                      "/apis/rbac.authorization.k8s.io/v1/clusterroles",
	"ClusterRoleBinding":               "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
	"Role":                             "/apis/rbac.authorization.k8s.io/v1/namespaces/NS/roles",
	"ValidatingAdmissionPolicy":        "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies",
	"ValidatingAdmissionPolicyBinding": "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings",
	"RoleBinding":                      "/apis/rbac.authorization.k8s.io/v1/namespaces/NS/rolebindings",
}

var (
	kindLine      = regexp.MustCompile(`(?m)^kind: (\S+)$`)
	namespaceLine = regexp.MustCompile(`(?m)^  namespace: (\S+)$`)
)

// create makes each object of a manifest, and refuses fields that it does not
// know.
func (c *cluster) create(manifest, query string) {
	c.t.Helper()
	for document := range strings.SplitSeq(manifest, "\n---\n") {
		kind := kindLine.FindStringSubmatch(document)
		if kind == nil {
			continue
		}
		path, ok := collections[kind[1]]
		if !ok {
			c.t.Fatalf("where are objects of kind %s made?", kind[1])
		}
		if namespace := namespaceLine.FindStringSubmatch(document); namespace != nil {
			path = strings.Replace(path, "NS", namespace[1], 1)
		}
		if path != "" {
			c.do(http.MethodPost, path+"?fieldValidation=Strict"+query, document)
		}
	}
}

package deploy

import (
	"path/filepath"
	"strings"
	"testing"

	operator "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
	sigsyaml "sigs.k8s.io/yaml"
)

// constraints has the fields of OpenShift's SecurityContextConstraints that
// are in use here; its types cannot be had as a module with a checksum.
type constraints struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Metadata   struct {
		Name   string            `json:"name"`
		Labels map[string]string `json:"labels"`
	} `json:"metadata"`
	AllowHostDirVolumePlugin bool     `json:"allowHostDirVolumePlugin"`
	AllowHostIPC             bool     `json:"allowHostIPC"`
	AllowHostNetwork         bool     `json:"allowHostNetwork"`
	AllowHostPID             bool     `json:"allowHostPID"`
	AllowHostPorts           bool     `json:"allowHostPorts"`
	AllowPrivilegedContainer bool     `json:"allowPrivilegedContainer"`
	AllowPrivilegeEscalation bool     `json:"allowPrivilegeEscalation"`
	AllowedCapabilities      []string `json:"allowedCapabilities"`
	RequiredDropCapabilities []string `json:"requiredDropCapabilities"`
	ReadOnlyRootFilesystem   bool     `json:"readOnlyRootFilesystem"`
	RunAsUser                strategy `json:"runAsUser"`
	SELinuxContext           strategy `json:"seLinuxContext"`
	FSGroup                  strategy `json:"fsGroup"`
	SupplementalGroups       strategy `json:"supplementalGroups"`
	SeccompProfiles          []string `json:"seccompProfiles"`
	Volumes                  []string `json:"volumes"`
	Users                    []string `json:"users"`
}

// alertmanagerConfig has the fields of the operator's v1alpha1 that are in use
// here; its types need a module that nothing else needs.
type alertmanagerConfig struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Metadata   struct {
		Name   string            `json:"name"`
		Labels map[string]string `json:"labels"`
	} `json:"metadata"`
	Spec struct {
		Route     route `json:"route"`
		Receivers []struct {
			Name string `json:"name"`
		} `json:"receivers"`
		InhibitRules []struct {
			SourceMatch []routeMatcher `json:"sourceMatch"`
			TargetMatch []routeMatcher `json:"targetMatch"`
			Equal       []string       `json:"equal"`
		} `json:"inhibitRules"`
	} `json:"spec"`
}

type route struct {
	Receiver       string         `json:"receiver"`
	GroupBy        []string       `json:"groupBy"`
	GroupWait      string         `json:"groupWait"`
	GroupInterval  string         `json:"groupInterval"`
	RepeatInterval string         `json:"repeatInterval"`
	Matchers       []routeMatcher `json:"matchers"`
	Continue       bool           `json:"continue"`
	Routes         []route        `json:"routes"`
}

type routeMatcher struct {
	Name      string `json:"name"`
	Value     string `json:"value"`
	MatchType string `json:"matchType"`
}

type strategy struct {
	Type string `json:"type"`
}

// check decodes objects into the types of their readers, without unknown fields.
func check(t *testing.T, all []object) {
	t.Helper()
	for _, o := range all {
		var into any
		switch o.kind() {
		case "PodMonitor":
			into = &operator.PodMonitor{}
		case "ServiceMonitor":
			into = &operator.ServiceMonitor{}
		case "PrometheusRule":
			into = &operator.PrometheusRule{}
		case "AlertmanagerConfig":
			into = &alertmanagerConfig{}
		case "SecurityContextConstraints":
			into = &constraints{}
		default:
			made, err := scheme.Scheme.New(schema.FromAPIVersionAndKind(o.text("apiVersion"), o.kind()))
			if err != nil {
				t.Errorf("%s: %v", o.id(), err)
				continue
			}
			into = made
		}
		if err := sigsyaml.UnmarshalStrict(o.yaml(t), into); err != nil {
			t.Errorf("%s: %v", o.id(), err)
		}
		if _, known := into.(runtime.Object); !known && !strings.HasPrefix(o.text("apiVersion"), "monitoring.coreos.com/v1") && o.text("apiVersion") != "security.openshift.io/v1" {
			t.Errorf("%s: apiVersion %s", o.id(), o.text("apiVersion"))
		}
	}
}

func TestChartIsValid(t *testing.T) {
	for _, name := range cases(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			all := objects(t, name)
			check(t, all)
			seen := map[string]bool{}
			for _, o := range all {
				if seen[o.id()] {
					t.Errorf("%s is there twice", o.id())
				}
				seen[o.id()] = true
				// A ConfigMap or rule beyond that is refused by the API server.
				if size := len(o.yaml(t)); size > 1<<20 {
					t.Errorf("%s has %d bytes", o.id(), size)
				}
			}
		})
	}
}

// TestPlainManifests: what is applied without a chart.
func TestPlainManifests(t *testing.T) {
	for _, path := range glob(t, "deploy/*/*.yaml") {
		if path != "deploy/prometheus-adapter/config.yaml" && filepath.Base(path) != "kustomization.yaml" {
			check(t, documents(t, read(t, path)))
		}
	}
}

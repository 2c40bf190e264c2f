package deploy

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"

	sigsyaml "sigs.k8s.io/yaml"
)

// TestSchema: the schema of the values knows the values there are and no
// others.
func TestSchema(t *testing.T) {
	var values, schema object
	if err := sigsyaml.Unmarshal(read(t, chart+"/values.yaml"), &values); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(read(t, chart+"/values.schema.json"), &schema); err != nil {
		t.Fatal(err)
	}
	// Helm itself hands global down.
	delete(schema.sub("properties"), "global")
	// Files of the exporter, with the keys that it accepts; values.yaml sets none.
	for _, file := range []string{"config", "baseline", "healthCatalogue"} {
		delete(schema.sub("properties"), file)
		delete(values, file)
	}
	sameKeys(t, "", values, schema)
}

func sameKeys(t *testing.T, prefix string, values, schema object) {
	t.Helper()
	properties := schema.sub("properties")
	if properties == nil {
		return
	}
	if schema["additionalProperties"] != false {
		t.Errorf("%s: unknown values are accepted", prefix)
	}
	have, want := slices.Sorted(maps.Keys(properties)), slices.Sorted(maps.Keys(values))
	if !slices.Equal(have, want) {
		t.Errorf("%s: the schema has %q, values.yaml %q", prefix, have, want)
	}
	for key := range properties {
		sameKeys(t, prefix+key+".", values.sub(key), properties.sub(key))
	}
}

// TestVersions: chart, kustomization and image are of the same version.
func TestVersions(t *testing.T) {
	version := strings.TrimSpace(string(read(t, "VERSION")))
	c := load(t, chart+"/Chart.yaml")
	if c.text("appVersion") != version {
		t.Errorf("appVersion is %s, VERSION %s", c.text("appVersion"), version)
	}
	for name, all := range map[string][]object{"chart": objects(t, "default"), "base": build(t, "deploy/kustomize/base")} {
		if image := podSpec(t, all).Containers[0].Image; !strings.HasSuffix(image, ":"+version) {
			t.Errorf("%s: the image is %s, VERSION %s", name, image, version)
		}
	}
	for name, all := range map[string][]object{"chart": objects(t, "remediator"), "kustomization": build(t, "deploy/remediator")} {
		if image := remediatorSpec(t, all).Containers[0].Image; !strings.HasSuffix(image, "/accel-remediator:"+version) {
			t.Errorf("%s: the remediator's image is %s, VERSION %s", name, image, version)
		}
	}
}

// TestMonitor: Prometheus gives a target the labels that the exporter's own
// rules give, so that Alertmanager deduplicates the alerts.
func TestMonitor(t *testing.T) {
	for _, kind := range []string{"PodMonitor", "ServiceMonitor"} {
		all := objects(t, "", "--set=monitor.kind="+kind, "--set=monitor.poolLabel=cloud.google.com/gke-nodepool")
		got := target(t, one(t, all, kind), map[string]string{
			"__meta_kubernetes_pod_node_name": "node1", "__meta_kubernetes_pod_container_port_number": "19400",
			"__meta_kubernetes_node_label_cloud_google_com_gke_nodepool": "h100",
			"namespace": "accel-exporter", "pod": "accel-exporter-x", "container": "exporter", "endpoint": "metrics", "job": "accel-exporter/accel-exporter",
		})
		want := map[string]string{"job": "accel-exporter", "instance": "node1:19400", "node": "node1", "pool": "h100"}
		if !maps.Equal(got, want) {
			t.Errorf("%s: labels are %v, want %v", kind, got, want)
		}
	}
}

// target returns the labels of a monitor's target: it does what Prometheus does with
// the two actions that are in use.
func target(t *testing.T, monitor object, labels map[string]string) map[string]string {
	t.Helper()
	endpoints := map[string]string{"PodMonitor": "podMetricsEndpoints", "ServiceMonitor": "endpoints"}[monitor.kind()]
	endpoint := object(monitor.sub("spec")[endpoints].([]any)[0].(map[string]any))
	if endpoint["honorLabels"] != true {
		t.Errorf("%s: pod, pool and node of the series would become exported_pod and so on", monitor.id())
	}
	for _, s := range endpoint["relabelings"].([]any) {
		step := object(s.(map[string]any))
		if step.text("action") == "labeldrop" {
			for name := range strings.SplitSeq(step.text("regex"), "|") {
				delete(labels, name)
			}
			continue
		}
		value := step.text("replacement")
		var from []string
		list, _ := step["sourceLabels"].([]any)
		for _, name := range list {
			from = append(from, labels[name.(string)])
		}
		if value == "" {
			value = strings.Join(from, step.text("separator"))
		}
		labels[step.text("targetLabel")] = value
	}
	maps.DeleteFunc(labels, func(name, _ string) bool { return strings.HasPrefix(name, "__") })
	return labels
}

// TestStateDirectory: nodes that send alerts remember faults over a roll-out, if the
// container can write to the folder that the kubelet makes.
func TestStateDirectory(t *testing.T) {
	for flags, want := range map[string]string{
		"logLevel=info": "",
		"config.alertmanager.endpoints[0].url=http://a:9093":                 "/var/lib/accel-exporter",
		"nodeRules.alertmanagers={http://a:9093}":                            "/var/lib/accel-exporter",
		"nodeRules.alertmanagers={http://a:9093},stateDirectory=/srv/state":  "/srv/state",
		"nodeRules.alertmanagers={http://a:9093},podResources.enabled=false": "",
		"config=null,networkPolicy.enabled=true":                             "", // as a section of values without content
	} {
		got := ""
		for _, v := range podSpec(t, objects(t, "", "--set="+flags)).Volumes {
			if v.Name == "state" {
				got = v.HostPath.Path
			}
		}
		if got != want {
			t.Errorf("%s: state in %q, want %q", flags, got, want)
		}
	}
}

// TestPlaces: rules and dashboards can be in the namespace where Prometheus and
// Grafana look for them, every object has the common labels, and a Prometheus
// without operator finds the pods by their annotations.
func TestPlaces(t *testing.T) {
	all := objects(t, "everything", "--set=commonLabels.team=gpu,prometheusRule.namespace=monitoring,dashboards.namespace=grafana,monitor.annotations=true,web.port=9999")
	want := map[string]string{"PrometheusRule": "monitoring"}
	for _, o := range all {
		if o.sub("metadata").sub("labels").text("team") != "gpu" {
			t.Errorf("%s lacks the common label", o.id())
		}
		namespace := o.sub("metadata").text("namespace")
		if strings.Contains(o.name(), "-dashboard-") && namespace != "grafana" || want[o.kind()] != "" && namespace != want[o.kind()] {
			t.Errorf("%s is in the namespace %s", o.id(), namespace)
		}
		if o.kind() == "DaemonSet" {
			if got := o.sub("spec").sub("template").sub("metadata").sub("annotations"); got.text("prometheus.io/scrape") != "true" || got.text("prometheus.io/port") != "9999" {
				t.Errorf("annotations of the pods: %v", got)
			}
		}
	}
}

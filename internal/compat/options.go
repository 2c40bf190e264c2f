package compat

import (
	"cmp"
	"embed"

	"github.com/accel-exporter/accel-exporter/internal/compat/counters"
)

// Options select the fields and labels of a View.
type Options struct {
	// Counters are the fields to export; nil means the Default of Release.
	Counters *counters.File
	// Release is the release of dcgm-exporter whose default fields are exported.
	Release counters.Release
	// Hostname is the value of the node label. Without it the label is omitted.
	Hostname string
	// HostnameLabel is the name of the node label: hostname since dcgm-exporter
	// 4.8.3, Hostname before. Empty means hostname.
	HostnameLabel string
	// OldNamespace uses the label names of dcgm-exporter 1: uuid, pod_name,
	// pod_namespace and container_name.
	OldNamespace bool
	// Pods adds the labels of the pod that a device is allocated to.
	Pods bool
	// PodUID adds pod_uid. It requires pods from the API server.
	PodUID bool
	// PodLabels selects the labels of pods to add, by their Kubernetes names; nil
	// adds none.
	PodLabels func(name string) bool
	// Jobs are the jobs of a scheduler such as Slurm; nil without a job
	// directory.
	Jobs *Jobs
	// Dashes replaces blanks in the model name by dashes.
	Dashes bool
}

//go:embed default-4.8.csv default-4.9.csv
var defaults embed.FS

// Default returns the default fields of a release, of 4.8 where it is not stated.
func Default(r counters.Release) *counters.File {
	name := "default-" + string(cmp.Or(r, counters.Release48)) + ".csv"
	data, err := defaults.ReadFile(name)
	if err != nil {
		panic(err)
	}
	c, err := r.Parse(name, data)
	if err != nil {
		panic(err) // the file is embedded
	}
	return c
}

// names are the label names that depend on options.
type names struct{ host, uuid, pod, namespace, container string }

func (o *Options) names() names {
	n := names{host: "hostname", uuid: "UUID", pod: "pod", namespace: "namespace", container: "container"}
	if o.OldNamespace {
		n.uuid, n.pod, n.namespace, n.container = "uuid", "pod_name", "pod_namespace", "container_name"
	}
	if o.HostnameLabel != "" {
		n.host = o.HostnameLabel
	}
	return n
}

package compat

import (
	_ "embed"

	"github.com/accel-exporter/accel-exporter/internal/compat/counters"
)

// Options say what is shown, and under which labels.
type Options struct {
	// Counters are the fields to show; nil stands for Default.
	Counters *counters.File
	// Hostname is the value of the label of the node's name; empty leaves the
	// label out.
	Hostname string
	// HostnameLabel is its name: hostname as since dcgm-exporter 4.8.3, or
	// Hostname as before. Empty stands for hostname.
	HostnameLabel string
	// OldNamespace uses the label names of dcgm-exporter 1: uuid, pod_name,
	// pod_namespace and container_name.
	OldNamespace bool
	// Pods adds the labels of the pod that holds a device, where one does.
	Pods bool
	// PodUID adds pod_uid, where the API server is asked for it.
	PodUID bool
	// PodLabels selects the pod's own labels that are added, by the names that
	// they have in Kubernetes; nil adds none.
	PodLabels func(name string) bool
	// Jobs are those of a scheduler beside Kubernetes; nil where none is named.
	Jobs *Jobs
	// Dashes replaces blanks in the model's name.
	Dashes bool
}

// AllLabels selects every label of a pod.
func AllLabels(string) bool { return true }

//go:embed default.csv
var defaultCSV []byte

// Default are the fields that dcgm-exporter 4.8 shows by default.
func Default() *counters.File {
	c, err := counters.Parse("default.csv", defaultCSV)
	if err != nil {
		panic(err) // it is part of the program
	}
	return c
}

// names are the label names that a choice decides.
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

package kube_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/accel-exporter/accel-exporter/podmap/kube"
)

func TestWorkloads(t *testing.T) {
	// The pods were created on 2000-01-01, minute 15778080 since 1970.
	for _, c := range []struct {
		name, kind, owner string
		labels            object
		want              string
	}{
		{"Deployment", "ReplicaSet", "web-5d4f8c7b9", object{"pod-template-hash": "5d4f8c7b9"}, "Deployment/web"},
		{"Rollout", "ReplicaSet", "web-5d4f8c7b9", object{"rollouts-pod-template-hash": "5d4f8c7b9"}, "Rollout/web"},
		{"ReplicaSet without a Deployment", "ReplicaSet", "web-5d4f8c7b9", nil, "ReplicaSet/web-5d4f8c7b9"},
		{"ReplicaSet with another hash", "ReplicaSet", "web-a", object{"pod-template-hash": "b"}, "ReplicaSet/web-a"},
		{"ReplicaSet with an empty hash", "ReplicaSet", "web-", object{"pod-template-hash": ""}, "ReplicaSet/web-"},
		{"StatefulSet", "StatefulSet", "db", nil, "StatefulSet/db"},
		{"DaemonSet", "DaemonSet", "agent", nil, "DaemonSet/agent"},
		{"Job", "Job", "train", nil, "Job/train"},
		{"CronJob", "Job", "nightly-15778080", nil, "CronJob/nightly"},
		{"CronJob, retried for a week", "Job", "nightly-15768000", nil, "CronJob/nightly"},
		{"Job with a date", "Job", "train-20260101", nil, "Job/train-20260101"},
		{"Job with a longer number", "Job", "train-157780800", nil, "Job/train-157780800"},
		{"Job whose name is a number", "Job", "-15778080", nil, "Job/-15778080"},
		{"an operator's kind", "PyTorchJob", "bert", nil, "PyTorchJob/bert"},
		{"a static pod", "Node", node, nil, "Node/" + node},
		{"no controller", "", "", nil, "/"},
	} {
		subtest(t, c.name, func(t *testing.T, a *api) {
			a.send("ADDED", podsPath, pod("ns", "pod", "u-1", func(meta, _, _ object) {
				meta["labels"] = c.labels
				meta["ownerReferences"] = []object{{"kind": c.kind, "name": c.owner, "controller": true}, {"kind": "Quota", "name": "q", "controller": false}}
			}))
			p, _ := a.run().Latest().Pod("ns", "pod")
			if got := p.Workload.Kind + "/" + p.Workload.Name; got != c.want {
				t.Errorf("%s, want %s", got, c.want)
			}
			if p.Controller.Name != c.owner || len(p.Labels) > 0 {
				t.Errorf("%+v", p)
			}
		})
	}
}

func TestOptions(t *testing.T) {
	good := kube.Options{Server: "https://10.0.0.1:443", TokenFile: "t", CAFile: "c", Node: "node-1.example", Labels: []string{"team", "app.kubernetes.io/*"}}
	for _, c := range []struct {
		name   string
		change func(*kube.Options)
		want   string // part of the error; empty means no error
	}{
		{"good", func(*kube.Options) {}, ""},
		{"no server", func(o *kube.Options) { o.Server = "" }, "no API server"},
		{"no address", func(o *kube.Options) { o.Server = "10.0.0.1" }, "not of the form"},
		{"with a path", func(o *kube.Options) { o.Server += "/api" }, "not of the form"},
		{"with a slash", func(o *kube.Options) { o.Server += "/" }, ""},
		{"with a password", func(o *kube.Options) { o.Server = "https://a:hunter2@b" }, "not of the form"},
		{"token over http", func(o *kube.Options) { o.Server = "http://10.0.0.1" }, `begins with "http"`},
		{"a proxy without a token", func(o *kube.Options) { o.Server, o.TokenFile = "http://127.0.0.1:8001", "" }, ""},
		{"no node", func(o *kube.Options) { o.Node = "" }, `node ""`},
		{"a selector for a node", func(o *kube.Options) { o.Node = "a,spec.nodeName!=b" }, "accepted is the name of a node"},
		{"empty pattern", func(o *kube.Options) { o.Labels = []string{""} }, "of 0 bytes"},
		{"bad pattern", func(o *kube.Options) { o.Labels = []string{"a["} }, "syntax error in pattern"},
		{"many patterns", func(o *kube.Options) { o.Labels = make([]string, 33) }, "33 patterns"},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := good
			c.change(&o)
			_, err := kube.New(o)
			switch {
			case c.want == "" && err != nil:
				t.Error(err)
			case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "hunter2")):
				t.Errorf("%v, want %q", err, c.want)
			}
		})
	}
	w, err := kube.New(good)
	if err != nil {
		t.Fatal(err)
	}
	if m := w.Latest(); m.State != kube.StateStarting || m.SliceState != "" || w.Status().Slices != nil {
		t.Errorf("%+v", m)
	}
	for _, c := range []struct{ host, port, want string }{
		{"10.0.0.1", "443", "https://10.0.0.1:443"},
		{"fd00::1", "6443", "https://[fd00::1]:6443"},
		{"", "", ""},
	} {
		if got := kube.InCluster(c.host, c.port); cmp.Diff(c.want, got.Server) != "" || got.TokenFile == "" || got.CAFile == "" {
			t.Errorf("%+v", got)
		}
	}
}

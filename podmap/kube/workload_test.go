package kube

import (
	"testing"
	"time"
)

func TestWorkload(t *testing.T) {
	created := time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC) // minute 15778080 since 1970
	for _, c := range []struct {
		kind, owner string
		labels      map[string]string
		want        Workload
	}{
		{"ReplicaSet", "web-5d4f8c7b9", map[string]string{"pod-template-hash": "5d4f8c7b9"}, Workload{"Deployment", "web"}},
		{"ReplicaSet", "web-5d4f8c7b9", map[string]string{"rollouts-pod-template-hash": "5d4f8c7b9"}, Workload{"Rollout", "web"}},
		{"ReplicaSet", "web-5d4f8c7b9", nil, Workload{"ReplicaSet", "web-5d4f8c7b9"}},
		{"ReplicaSet", "web-a", map[string]string{"pod-template-hash": "b"}, Workload{"ReplicaSet", "web-a"}},
		{"ReplicaSet", "web-", map[string]string{"pod-template-hash": ""}, Workload{"ReplicaSet", "web-"}},
		{"StatefulSet", "db", nil, Workload{"StatefulSet", "db"}},
		{"Job", "train", nil, Workload{"Job", "train"}},
		{"Job", "nightly-15778080", nil, Workload{"CronJob", "nightly"}},
		{"Job", "nightly-15768000", nil, Workload{"CronJob", "nightly"}}, // retried for a week
		{"Job", "train-20260101", nil, Workload{"Job", "train-20260101"}},
		{"Job", "-15778080", nil, Workload{"Job", "-15778080"}},
		{"", "", nil, Workload{}},
	} {
		if got := workload(Workload{c.kind, c.owner}, c.labels, created); got != c.want {
			t.Errorf("%s %s %v: %v, want %v", c.kind, c.owner, c.labels, got, c.want)
		}
	}
}

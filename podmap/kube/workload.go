package kube

import (
	"strconv"
	"strings"
	"time"
)

// templateLabels are the labels with the hash at the end of a ReplicaSet's
// name, and the kind of object that creates such ReplicaSets. The label of
// Argo Rollouts is from its documentation.
var templateLabels = map[string]string{
	"pod-template-hash":          "Deployment",
	"rollouts-pod-template-hash": "Rollout",
}

// workload returns the owner of a pod's controller if the names reveal it, or
// else the controller.
func workload(controller Workload, labels map[string]string, created time.Time) Workload {
	switch controller.Kind {
	case "ReplicaSet":
		for label, kind := range templateLabels {
			hash := labels[label]
			if name, ok := strings.CutSuffix(controller.Name, "-"+hash); ok && hash != "" && name != "" {
				return Workload{Kind: kind, Name: name}
			}
		}
	case "Job":
		if name, ok := cronJobOf(controller.Name, created); ok {
			return Workload{Kind: "CronJob", Name: name}
		}
	}
	return controller
}

// cronJobOf takes apart the name that the CronJob controller gives to a Job:
// the CronJob's, and the time that it was due in minutes since 1970. A Job
// whose name ends in a date has no CronJob, so the time has to fit the pod's.
func cronJobOf(job string, created time.Time) (string, bool) {
	i := strings.LastIndexByte(job, '-')
	if i <= 0 || len(job)-i-1 != 8 || created.IsZero() {
		return "", false
	}
	minutes, err := strconv.ParseUint(job[i+1:], 10, 32)
	if err != nil {
		return "", false
	}
	ran := created.Sub(time.Unix(int64(minutes)*60, 0))
	return job[:i], ran > -24*time.Hour && ran < 90*24*time.Hour
}

package kube

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Limits on the pods that are kept: a node runs a few hundred, and a job that
// fails at once leaves many behind.
const (
	maxPods = 4096
	maxGone = 1024
)

// pods are the pods of the node.
type pods struct {
	node string
	live map[string]*Pod // by UID
	gone []*Pod          // in the order in which they were deleted
}

func (*pods) kind() string { return "Pod" }

func (p *pods) count() (there, kept int) { return len(p.live), len(p.gone) }

// ours reports whether o is a pod of this node. A pod that has ended is one.
func (p *pods) ours(o *object) bool {
	return o.name != "" && o.namespace != "" && o.uid != "" && o.node == p.node
}

// put takes o in and reports whether there was room.
func (p *pods) put(o *object) bool {
	if p.live[o.uid] == nil && len(p.live) >= maxPods {
		return false
	}
	if p.live == nil {
		p.live = map[string]*Pod{}
	}
	p.live[o.uid] = podOf(o)
	// A pod that was gone by a list from an older state, and is there again.
	p.gone = slices.DeleteFunc(p.gone, func(g *Pod) bool { return g.UID == o.uid })
	return true
}

func (p *pods) remove(o *object, now time.Time) {
	if p.live[o.uid] != nil {
		p.live[o.uid] = podOf(o) // its last state
		p.retire(o.uid, now)
	}
}

func (p *pods) retire(uid string, now time.Time) {
	dead := *p.live[uid]
	dead.Deleted = now
	delete(p.live, uid)
	p.gone = append(p.gone, &dead)
	p.gone = p.gone[max(0, len(p.gone)-maxGone):]
}

// replace takes in a complete list.
func (p *pods) replace(list []*object, now time.Time) (overflow int) {
	listed := make(map[string]bool, len(list))
	for _, o := range list {
		listed[o.uid] = true
	}
	for _, uid := range slices.Sorted(maps.Keys(p.live)) {
		if !listed[uid] {
			p.retire(uid, now)
		}
	}
	for _, o := range list {
		if !p.put(o) {
			overflow++
		}
	}
	return overflow
}

func (p *pods) sweep(before time.Time, all bool) bool {
	if all {
		were := len(p.live)+len(p.gone) > 0
		p.live, p.gone = nil, nil
		return were
	}
	n := 0
	for n < len(p.gone) && p.gone[n].Deleted.Before(before) {
		n++
	}
	p.gone = p.gone[n:]
	return n > 0
}

func (p *pods) list() []Pod {
	list := make([]Pod, 0, len(p.live)+len(p.gone))
	for _, pod := range p.live {
		list = append(list, *pod)
	}
	for _, pod := range p.gone {
		list = append(list, *pod)
	}
	slices.SortFunc(list, comparePods)
	return list
}

// podOf returns the kept fields.
func podOf(o *object) *Pod {
	return &Pod{
		Namespace: o.namespace, Name: o.name, UID: o.uid, Labels: o.labels, Context: o.context,
		Controller: o.controller, Workload: o.workload(), Created: o.created,
	}
}

// templateLabels are the labels with the hash at the end of a ReplicaSet's
// name, and the kind of object that creates such ReplicaSets. The label of
// Argo Rollouts is from its documentation.
var templateLabels = map[string]string{
	"pod-template-hash":          "Deployment",
	"rollouts-pod-template-hash": "Rollout",
}

// workload returns the owner of the pod's controller if the names reveal it,
// or else the controller.
func (o *object) workload() Workload {
	c := o.controller
	switch c.Kind {
	case "ReplicaSet":
		for label, kind := range templateLabels {
			hash := o.templateHashes[label]
			if name, ok := strings.CutSuffix(c.Name, "-"+hash); ok && hash != "" && name != "" {
				return Workload{Kind: kind, Name: name}
			}
		}
	case "Job":
		if name, ok := cronJobOf(c.Name, o.created); ok {
			return Workload{Kind: "CronJob", Name: name}
		}
	}
	return c
}

// cronJobOf takes apart the name that the CronJob controller gives to a Job:
// the CronJob's, and the time that it was due in minutes since 1970. A Job
// whose name ends in a date is none, so the time has to fit the pod's.
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

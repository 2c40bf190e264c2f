package remediation

import (
	"slices"
	"time"
)

// want is what the alerts of a node ask for together.
type want struct {
	// alerts are the names, sorted, without repetition.
	alerts []string
	// since is when the first of them began to fire.
	since             time.Time
	health            string
	taints            []Taint
	cordon, condition bool
	summary           string // of the alert that asks for most
	evict             []Pod
	calls             []string
	inhabits          []Pod    // the pods that alerts name that fire
	devices           []string // that they name, sorted, without repetition
	// firing: one of the alerts is to be acted for.
	firing, hadReason bool
}

// Pod is a pod that an alert names.
type Pod struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	// Alert is the name of the alert, Device the device that it tells of.
	Alert  string `json:"alert"`
	Device string `json:"device"`
	// Before is when the alert began: a pod that started later is another one.
	Before time.Time `json:"before"`
}

// Bounds of what is taken from the alerts of one node. What is beyond them is
// left out; a node has fewer devices, and a kubelet fewer pods.
const (
	maxNames   = 50
	maxPods    = 500
	maxDevices = 200
)

// rank orders what the label can say.
var rank = map[string]int{"": 0, "degraded": 1, "failed": 2}

// wants returns what the alerts ask for, by node.
func (p *Policy) wants(a *Alerts, now time.Time) map[string]*want {
	wants := map[string]*want{}
	for _, s := range a.standing() {
		node := s.Labels[p.NodeLabel]
		r := p.rule(&s.Alert)
		if node == "" || r == nil || now.Sub(s.StartsAt) < r.Wait {
			continue
		}
		w := wants[node]
		if w == nil {
			w = &want{since: s.StartsAt}
			wants[node] = w
		}
		w.add(s, r, a.firing(s))
	}
	return wants
}

func (w *want) add(s *standing, r *Rule, firing bool) {
	w.firing = w.firing || firing
	w.alerts = insert(w.alerts, s.Name(), maxNames)
	w.devices = insert(w.devices, s.Labels["device"], maxDevices)
	if !w.hadReason || rank[r.Health] > rank[w.health] {
		w.summary = s.Summary
	}
	w.hadReason = true
	if rank[r.Health] > rank[w.health] {
		w.health = r.Health
	}
	for _, t := range r.Taints {
		if !slices.ContainsFunc(w.taints, t.same) {
			w.taints = append(w.taints, t)
		}
	}
	w.cordon = w.cordon || r.Cordon
	w.condition = w.condition || r.Condition
	if r.Call != "" && !slices.Contains(w.calls, r.Call) && firing {
		w.calls = append(w.calls, r.Call)
	}
	if name := s.Labels["pod"]; name != "" && s.Labels["namespace"] != "" && len(w.inhabits) < maxPods {
		pod := Pod{Namespace: s.Labels["namespace"], Name: name, Alert: s.Name(), Device: s.Labels["device"], Before: s.StartsAt}
		if firing {
			w.inhabits = append(w.inhabits, pod)
		}
		if r.Evict && firing {
			w.evict = append(w.evict, pod)
		}
	}
}

// marks reports whether anything is to stand on the node.
func (w *want) marks() bool { return w != nil && w.health != "" }

// insert returns a sorted list with a text that it has not yet, where there is
// one and room for it.
func insert(list []string, text string, most int) []string {
	i, found := slices.BinarySearch(list, text)
	if found || text == "" || len(list) == most {
		return list
	}
	return slices.Insert(list, i, text)
}

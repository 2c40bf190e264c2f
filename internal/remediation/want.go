package remediation

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"
)

// want is what the alerts of a node require together.
type want struct {
	node string
	// device is the strongest effect on the device; empty for the node.
	device string
	// alerts are the names, sorted and unique.
	alerts []string
	// since is when the first alert that requires health began to fire.
	since             time.Time
	health            string
	taints            []Taint
	cordon, condition bool
	summary           string // of the worst alert
	evict             []Pod
	calls             []string
	tests             []string // sorted and unique
	hurt              []Pod    // the pods that firing alerts name
	devices           []string // that the alerts name, sorted and unique
	// firing: one of the alerts may cause an action. unknown is what is not known of one of
	// them, such as the answer of an Alertmanager that listed it.
	firing  bool
	unknown string
}

// Pod is a pod that an alert names.
type Pod struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	// Alert is the name of the alert, Device the value of its label device.
	Alert  string `json:"alert"`
	Device string `json:"device"`
	// Before is when the alert began: a pod that started later is another pod.
	Before time.Time `json:"before"`
}

// Bounds of the alerts of one node; the rest is left out. Real nodes have fewer
// devices and pods.
const (
	maxNames   = 50
	maxPods    = 500
	maxDevices = 200
)

// rank orders the values of the label.
var rank = map[string]int{"": 0, "degraded": 1, "failed": 2}

// wants returns what the alerts require, by the keys of the nodes and devices.
func (p *Policy) wants(in *Situation, subjects []Node) map[string]*want {
	wants, out := map[string]*want{}, map[string]bool{}
	for i := range subjects {
		out[subjects[i].key()] = subjects[i].record() != nil
	}
	for _, s := range in.Alerts.sorted() {
		key, id := s.Labels[p.NodeLabel], s.Labels["device"]
		r := p.rule(&s.Alert)
		if key == "" || r == nil || in.Now.Sub(s.StartsAt) < r.Wait {
			continue // Plan.WithoutNode has the first
		}
		unknown := ""
		switch d := in.Devices; {
		case r.Device == "" || d == nil || id == "":
		case d.has(key, id):
			r = &Rule{Health: r.Health, Evict: r.Evict, Call: r.Call, Test: r.Test, Device: r.Device}
			key = deviceKey(key, id)
		case d.unknown(key, in.Now) != "": // whether the node has to be taken out
			r, unknown = &Rule{Health: r.Health}, d.unknown(key, in.Now)
		}
		w := wants[key]
		if w == nil {
			w = &want{node: s.Labels[p.NodeLabel]}
			wants[key] = w
		}
		w.unknown = cmp.Or(w.unknown, unknown)
		w.add(s, r, unknown == "" && in.Alerts.firing(s, out[key]))
	}
	return wants
}

// withoutNode returns the firing alerts that a rule matches and that name no node, each as
// its name.
func (p *Policy) withoutNode(a *Alerts) (names []string) {
	for _, s := range a.sorted() {
		if s.Labels[p.NodeLabel] == "" && s.listed && p.rule(&s.Alert) != nil {
			names = append(names, s.Name())
		}
	}
	slices.Sort(names)
	return names
}

func (w *want) add(s *tracked, r *Rule, firing bool) {
	w.firing = w.firing || firing
	w.alerts = insert(w.alerts, s.Name(), maxNames)
	w.devices = insert(w.devices, s.Labels["device"], maxDevices)
	if !s.listed && len(s.by) > 0 {
		w.unknown = "Alertmanager " + strings.Join(slices.Sorted(maps.Keys(s.by)), ", ") + " listed the alert and does not answer"
	}
	if rank[r.Health] > rank[w.health] {
		w.health, w.summary, w.since = r.Health, s.Summary, s.StartsAt
	}
	if w.device != effectExecute {
		w.device = r.Device
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
	w.tests = insert(w.tests, r.Test, maxNames)
	for _, pod := range s.pods() {
		if firing && len(w.hurt) < maxPods {
			w.hurt = append(w.hurt, pod)
			if r.Evict {
				w.evict = append(w.evict, pod)
			}
		}
	}
}

// pods are the pods that the labels and the annotation of the alert name.
func (a *Alert) pods() []Pod {
	var list []Pod
	for _, name := range append(slices.Clip(a.Pods), a.Labels["namespace"]+"/"+a.Labels["pod"]) {
		pod := Pod{Alert: a.Name(), Device: a.Labels["device"], Before: a.StartsAt}
		pod.Namespace, pod.Name, _ = strings.Cut(name, "/")
		if pod.Namespace != "" && pod.Name != "" && !slices.Contains(list, pod) {
			list = append(list, pod)
		}
	}
	return list
}

// insert adds a text to a sorted list, unless the text is empty or in the list,
// or the list is full.
func insert(list []string, text string, most int) []string {
	i, found := slices.BinarySearch(list, text)
	if found || text == "" || len(list) == most {
		return list
	}
	return slices.Insert(list, i, text)
}

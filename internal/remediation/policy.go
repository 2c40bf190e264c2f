package remediation

import (
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/accel-exporter/accel-exporter/internal/config/strict"
)

// Policy maps alerts to actions, with limits.
type Policy struct {
	// NodeLabel is the label of an alert that names the Kubernetes node.
	NodeLabel string `yaml:"node_label"`
	// PoolLabel is the label of nodes whose value is their pool. Nodes without it
	// are one pool.
	PoolLabel string `yaml:"pool_label"`
	// Alerts are the names of the user's own alerts that rules may name.
	Alerts []string `yaml:"alerts"`
	// Rules are tried in order; the first that matches an alert applies.
	Rules []Rule `yaml:"rules"`
	// Settle is how long an alert must be absent before its actions are reverted,
	// 10s to 24h.
	Settle time.Duration `yaml:"settle" accept:"10s..24h"`
	// Evidence is how long a failed node or device waits until its exporter has saved the
	// evidence, 0s to 10m, from the start of the alert.
	Evidence time.Duration `yaml:"evidence" accept:"0s..10m"`
	Limits   Limits        `yaml:"limits"`
	Breaker  Breaker       `yaml:"breaker"`
	Repeat   Repeat        `yaml:"repeat"`
	// Hooks are external tools that rules may call, by name.
	Hooks map[string]Hook `yaml:"hooks"`

	shipped []string // the names of the alerts of this project
}

// Hook is an external tool that repairs a node. It has a URL or a Job.
type Hook struct {
	// URL receives a POST; see docs/remediator.md for the body.
	URL string `yaml:"url"`
	// Job is a file with a Job, which is created for the node and runs on it.
	Job string `yaml:"job"`
	// Class is the DeviceClass of the claim of a test of a single device.
	Class string `yaml:"class"`
}

// Rule is the actions for some alerts.
type Rule struct {
	// Match has regular expressions by label. An alert must match all of them, each
	// with the whole value.
	Match map[string]Pattern `yaml:"match"`
	// Wait is how long the alert must have fired, 0s to 24h.
	Wait time.Duration `yaml:"wait" accept:"0s..24h"`
	// Health is the value of the node's label, degraded or failed.
	Health string `yaml:"health" accept:"degraded|failed"`
	// Device takes only the device out, by a taint of this effect, where a DRA driver
	// publishes the device. Health, Evict and Call apply to it then, and nothing else.
	Device string `yaml:"device" accept:"NoSchedule|NoExecute"`
	// Taints keep pods off the node.
	Taints []Taint `yaml:"taints"`
	// Cordon makes the node unschedulable for every pod.
	Cordon bool `yaml:"cordon"`
	// Condition sets the node's condition AcceleratorsHealthy to False.
	Condition bool `yaml:"condition"`
	// Evict evicts the pod that the alert names, within its disruption budget.
	Evict bool `yaml:"evict"`
	// Call is the name of a hook that is called once.
	Call string `yaml:"call"`
	// Test is the name of a hook whose Job must pass before the return.
	Test string `yaml:"test"`
}

// Limits bound the number of nodes that are taken out and let in.
type Limits struct {
	// Share is the part of a pool that may be out at the same time, above 0 to 1. Other
	// nodes that are cordoned or not ready count. One node always may.
	Share float64 `yaml:"share" accept:"0.001..1"`
	// PerHour is how many nodes may be taken out within an hour, 1 to 10000.
	PerHour int `yaml:"per_hour" accept:"1..10000"`
	// ReturnsPerHour is how many nodes may be let in within an hour, 1 to 10000.
	ReturnsPerHour int `yaml:"returns_per_hour" accept:"1..10000"`
}

// Breaker stops new actions in a pool of which many nodes fail at once: the cause
// is then hardly in the nodes.
type Breaker struct {
	// Share of the pool, above 0 to 1.
	Share float64 `yaml:"share" accept:"0.001..1"`
	// Window is the time within which the nodes fail, 1m to 24h.
	Window time.Duration `yaml:"window" accept:"1m..24h"`
	// Nodes is the smallest number of nodes that opens the breaker, 2 to 1000.
	Nodes int `yaml:"nodes" accept:"2..1000"`
}

// Repeat identifies a node that fails repeatedly.
type Repeat struct {
	// Count is the number of times, 2 to 100.
	Count int `yaml:"count" accept:"2..100"`
	// Within is the time, 1h to 2160h.
	Within time.Duration `yaml:"within" accept:"1h..2160h"`
}

// DefaultPolicy returns a policy with every default and no rule.
func DefaultPolicy() *Policy {
	return &Policy{
		NodeLabel: "node",
		Settle:    5 * time.Minute,
		Evidence:  90 * time.Second,
		Limits:    Limits{Share: 0.1, PerHour: 10, ReturnsPerHour: 10},
		Breaker:   Breaker{Share: 0.3, Window: 10 * time.Minute, Nodes: 3},
		Repeat:    Repeat{Count: 3, Within: 7 * 24 * time.Hour},
	}
}

// ParsePolicy reads a policy that may name the shipped alerts. Its error names every
// mistake by line and key.
func ParsePolicy(name string, data []byte, shipped []string) (*Policy, error) {
	p := DefaultPolicy()
	p.shipped = shipped
	if err := strict.Decode(name, data, p); err != nil {
		return nil, err
	}
	if len(p.Rules) == 0 { // checked here, because an empty file is not decoded
		return nil, strict.Mistakes{{File: name, Line: 1, Path: "rules", Text: "found no rule; accepted is one or more"}}
	}
	return p, nil
}

// Check implements strict.Checker.
func (p *Policy) Check() error {
	if p.NodeLabel == "" {
		return strict.At(errors.New("found an empty name; accepted is a label of alerts"), "node_label")
	}
	for i, r := range p.Rules {
		if err := r.check(); err != nil {
			return strict.At(err, "rules", i)
		}
		if _, ok := p.Hooks[r.Call]; r.Call != "" && !ok {
			return strict.At(fmt.Errorf("found %q; accepted is the name of a hook", r.Call), "rules", i, "call")
		}
		if h := p.Hooks[r.Test]; r.Test != "" && (h.Job == "" || r.Device != "" && h.Class == "") {
			return strict.At(fmt.Errorf("found %q; accepted is the name of a hook with job, and with class if the rule has device", r.Test), "rules", i, "test")
		}
	}
	for name, h := range p.Hooks {
		if !hookName.MatchString(name) {
			return strict.At(fmt.Errorf("found the name %q; accepted are up to 40 of a-z, 0-9 and -, as for a Job", name), "hooks", name)
		}
		if err := h.check(); err != nil {
			return strict.At(err, "hooks", name)
		}
	}
	return p.checkAlerts()
}

// hookName matches the names that can be part of the name of a Job.
var hookName = regexp.MustCompile("^[a-z0-9]([-a-z0-9]{0,38}[a-z0-9])?$")

func (h *Hook) check() error {
	if (h.URL == "") == (h.Job == "") {
		return errors.New("found url and job both or neither; accepted is one of them")
	}
	if h.URL == "" {
		return nil
	}
	u, err := url.Parse(h.URL)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil {
		return strict.At(errors.New("found no address of that kind; accepted is http://HOST/PATH or https://HOST/PATH without a user"), "url")
	}
	return nil
}

// The keys and values that Kubernetes accepts in a taint.
var (
	taintKey   = regexp.MustCompile("^([a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$")
	taintValue = regexp.MustCompile("^([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?$")
)

func (r *Rule) check() error {
	switch {
	case len(r.Match) == 0:
		return errors.New("found no pattern; accepted is one or more")
	case r.Health == "":
		return errors.New("found no health; accepted: degraded, failed")
	}
	for i, t := range r.Taints {
		switch {
		case t.Key == "":
			return strict.At(errors.New("found no key; accepted is the key of a taint"), "taints", i)
		case !taintKey.MatchString(t.Key):
			return strict.At(fmt.Errorf("found the key %q; accepted is [PREFIX/]NAME, a name of up to 63 letters, digits and . _ -", t.Key), "taints", i)
		case !taintValue.MatchString(t.Value):
			return strict.At(fmt.Errorf("found the value %q; accepted are up to 63 letters, digits and . _ -", t.Value), "taints", i)
		case t.Effect == "":
			return strict.At(errors.New("found no effect; accepted: NoSchedule, PreferNoSchedule, NoExecute"), "taints", i)
		case strings.HasPrefix(t.Key, "node.kubernetes.io/"):
			return strict.At(fmt.Errorf("found the key %s; accepted is one that Kubernetes does not set itself", t.Key), "taints", i)
		}
	}
	return nil
}

// Pattern is a regular expression that matches a whole value.
type Pattern struct{ *regexp.Regexp }

// UnmarshalText implements encoding.TextUnmarshaler.
func (p *Pattern) UnmarshalText(text []byte) error {
	re, err := regexp.Compile("^(?:" + string(text) + ")$")
	if err != nil {
		return fmt.Errorf("found %q, which is no regular expression: %w", text, err)
	}
	p.Regexp = re
	return nil
}

// devices reports whether a rule takes single devices out.
func (p *Policy) devices() bool {
	return slices.ContainsFunc(p.Rules, func(r Rule) bool { return r.Device != "" })
}

// rule returns the first rule that matches the alert, nil if none does.
func (p *Policy) rule(a *Alert) *Rule {
	for i := range p.Rules {
		if p.Rules[i].matches(a) {
			return &p.Rules[i]
		}
	}
	return nil
}

func (r *Rule) matches(a *Alert) bool {
	for label, pattern := range r.Match {
		if !pattern.MatchString(a.Labels[label]) {
			return false
		}
	}
	return true
}

package remediation

import (
	"strings"
	"testing"
	"time"
)

// Mistakes are reported by line and key, with the accepted values.
func TestMistakes(t *testing.T) {
	for text, want := range map[string]string{
		"rules: [{match: {alertname: 'AcceleratorFailed|AcceleratorReplacSoon'}, health: failed}]":                                              `rules[0].match.alertname: found "AcceleratorReplacSoon", which is no alert of this project; did you mean AcceleratorReplaceSoon?`,
		"rules: [{match: {alertname: 'Own.*'}, health: failed}]":                                                                                `rules[0].match.alertname: found "Own.*", which is no alert of this project; list your own in alerts`,
		"rules: [{match: {severity: critical}, health: failed}, {match: {alertname: AcceleratorFailed, severity: critical}, health: degraded}]": "rules[1]: found a rule that never applies, because rules[0] matches each of its alerts",
		"rules: [{match: {alertname: 'Accelerator.*'}, health: failed}, {match: {alertname: 'AcceleratorFailed'}, health: degraded}]":           "rules[1]: found a rule that never applies",
		"rules: []":                                                    "rules: found no rule",
		"rules: [{health: failed}]":                                    "rules[0]: found no pattern",
		"rules: [{match: {alertname: '('}}]":                           `rules[0].match.alertname: found "(", which is no regular expression`,
		"rules: [{match: {a: b}, cordon: true}]":                       "rules[0]: found no health",
		"rules: [{match: {a: b}, health: bad}]":                        "rules[0].health: ",
		"rules: [{match: {a: b}, health: failed, taints: [{key: k}]}]": "rules[0].taints[0]: found no effect",
		"rules: [{match: {a: b}, health: failed, taints: [{key: node.kubernetes.io/x, effect: NoSchedule}]}]": "rules[0].taints[0]: found the key node.kubernetes.io/x",
		"rules: [{match: {a: b}, health: failed, call: reset}]":                                               `rules[0].call: found "reset"; accepted is the name of a hook`,
		"rules: [{match: {a: b}, health: failed, taints: [{key: 'a b', effect: NoSchedule}]}]":                `rules[0].taints[0]: found the key "a b"`,
		"rules: [{match: {a: b}, health: failed, taints: [{key: a, value: 'b c', effect: NoSchedule}]}]":      `rules[0].taints[0]: found the value "b c"`,
		"rules: [{match: {a: b}, health: failed, test: reset}]\nhooks: {reset: {url: 'http://x/'}}":           `rules[0].test: found "reset"; accepted is the name of a hook with job`,
		"rules: [{match: {a: b}, health: failed, device: PreferNoSchedule}]":                                  "rules[0].device: ",
		"hooks: {Reset_GPU: {url: 'http://x/'}}":                                                              `hooks.Reset_GPU: found the name "Reset_GPU"`,
		"hooks: {reset: {}}":                                                                                  "hooks.reset: found url and job both or neither",
		"hooks: {reset: {url: 'ftp://x'}}":                                                                    "hooks.reset.url: found no address",
		"hooks: {reset: {url: 'http://me:secret@x/'}}":                                                        "hooks.reset.url: found no address",
		"limits: {share: 0}":                  "limits.share: ",
		"limit: {share: 0.1}":                 "limit: unknown key",
		"settle: 1s":                          "settle: ",
		"node_label: ''":                      "node_label: found an empty name",
		"rules: [{match: {a: b}, wait: -1s}]": "rules[0].wait: ",
		"breaker: {nodes: 1}":                 "breaker.nodes: ",
	} {
		_, err := ParsePolicy("policy.yml", []byte(text), []string{"AcceleratorFailed", "AcceleratorReplaceSoon"})
		if err == nil || !strings.Contains(err.Error(), "policy.yml:1: "+want) {
			t.Errorf("%s:\n%v\nwant %s", text, err, want)
		}
		if err != nil && strings.Contains(err.Error(), "secret") {
			t.Errorf("the error has a secret: %v", err)
		}
	}
}

func FuzzPolicy(f *testing.F) {
	f.Add([]byte(policyText))
	f.Add([]byte("rules: [{match: {a: '.*'}}]"))
	f.Fuzz(func(t *testing.T, data []byte) {
		p, err := ParsePolicy("policy.yml", data, nil)
		if err != nil {
			return
		}
		r := newRig(t, 3)
		r.policy = p
		r.restart()
		r.pass(t, time.Minute, alert("Lost", 1, noon.Add(-24*time.Hour)))
	})
}

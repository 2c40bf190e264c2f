package differential

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"
)

// TestReload: rules go, change and change places while their alerts are pending
// or firing. None come, because the engine has no past of what no rule read
// before.
func TestReload(t *testing.T) {
	for i := range uint64(*cases / 4) {
		t.Run(fmt.Sprint("seed=", *seed+i), func(t *testing.T) {
			r := random(*seed + i)
			text := newGrammar(r).file()
			if strings.Contains(text, "record: temp\n") {
				t.Skip("a series of the page that rules write to goes with the last rule that reads it")
			}
			p := newPair(t, options{rules: text, target: map[string]string{"job": "accel-exporter", "instance": "n1"}})
			e := newExporter(r)
			start := time.Unix(1_800_000_000, 0).UTC()
			for i := range 80 {
				if i%20 == 19 {
					text = without(t, r, text)
					p.apply(text)
				}
				p.step(start.Add(time.Duration(i)*15*time.Second), e.page(), true)
			}
		})
	}
}

// without returns the rules less some, with others changed, in another order.
func without(t *testing.T, r *rand.Rand, text string) string {
	var set ruleset
	if err := yaml.Unmarshal([]byte(text), &set); err != nil {
		t.Fatal(err)
	}
	for _, g := range set.Groups {
		rules := g["rules"].([]any)
		// Of two rules with one name both stay: if one goes, Prometheus ends the
		// series of both.
		count := map[string]int{}
		name := func(rule any) string {
			m := rule.(map[string]any)
			return fmt.Sprint(m["alert"], m["record"])
		}
		for _, rule := range rules {
			count[name(rule)]++
		}
		rules = slices.DeleteFunc(rules, func(rule any) bool { return chance(r, 20) && count[name(rule)] == 1 })
		for _, rule := range rules {
			rule := rule.(map[string]any)
			if _, alert := rule["alert"]; alert && chance(r, 20) {
				rule["for"] = oneOf(r, "0s", "45s", "2m")
			}
		}
		r.Shuffle(len(rules), func(i, j int) { rules[i], rules[j] = rules[j], rules[i] })
		g["rules"] = rules
	}
	made, err := yaml.Marshal(set)
	if err != nil {
		t.Fatal(err)
	}
	return string(made)
}

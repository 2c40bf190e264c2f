// Package render puts values into the rules of the exporter: those of
// rules/values.yml and those that a user changes. The forms of the rules, in
// which ${name} stands for a value, are generated from rules/templates. The
// Helm chart reads the same forms and does the same with them.
package render

import (
	"cmp"
	"embed"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/common/model"
	"go.yaml.in/yaml/v3"

	"github.com/accel-exporter/accel-exporter/rules"
)

// Source is what rules are made of.
type Source struct {
	// Forms are the rule files, by name, with ${name} in place of values.
	Forms map[string]File
	// Defaults are the values by name.
	Defaults map[string]string
}

// File is a rule file of Prometheus, or the form of one.
type File struct {
	Groups []Group `yaml:"groups"`
}

// Group is a group of rules. One whose name begins with accel-cluster- needs the
// series of more than one node, or of something else than the exporter.
type Group struct {
	Name     string `yaml:"name"`
	Interval string `yaml:"interval,omitempty"`
	Rules    []Rule `yaml:"rules"`
}

// Rule is a rule of Prometheus.
type Rule struct {
	Record        string `yaml:"record,omitempty"`
	Alert         string `yaml:"alert,omitempty"`
	Expr          string `yaml:"expr"`
	For           string `yaml:"for,omitempty"`
	KeepFiringFor string `yaml:"keep_firing_for,omitempty"`
	// Wait exists in forms only: ${wait} in the expression stands for it, because
	// the alert compares recorded times and has no For. An alert with NoWait
	// cannot wait.
	Wait        string            `yaml:"wait,omitempty"`
	Labels      map[string]string `yaml:"labels,omitempty"`
	Annotations map[string]string `yaml:"annotations,omitempty"`
}

// NoWait is the wait of an alert on a device that fires at once. A For would
// restart with each new pod on the device.
const NoWait = "none"

// Since returns the record that only the alert reads: the time since when each
// device has its condition.
func Since(alert string) string { return "device:" + alert + ":since" }

//go:embed rules/*.yaml
var forms embed.FS

// Builtin returns the rules of this build. They are shared.
var Builtin = sync.OnceValue(func() *Source {
	s := &Source{Forms: map[string]File{}}
	err := yaml.Unmarshal(rules.Values, &s.Defaults)
	names, _ := forms.ReadDir("rules")
	for _, f := range names {
		data, _ := forms.ReadFile("rules/" + f.Name())
		var form File
		err = cmp.Or(err, yaml.Unmarshal(data, &form))
		s.Forms[f.Name()] = form
	}
	if err != nil {
		panic(fmt.Sprintf("render: a built-in file is broken: %v", err))
	}
	return s
})

// Reference is how a form mentions a value.
var Reference = regexp.MustCompile(`\$\{([a-z_]*)\}`)

// onceAndAHalf stands, in the rules of a group, for one and a half of its
// intervals: a range of that length has the sample of the previous evaluation.
const onceAndAHalf = "once_and_a_half"

// Render returns the rule files by name. A group that has no rule left is left
// out, and so is a file without groups.
func (s *Source) Render(v *Values) (map[string]File, error) {
	files := map[string]File{}
	for _, name := range slices.Sorted(maps.Keys(s.Forms)) {
		var out File
		for _, g := range s.Forms[name].Groups {
			made, err := v.group(g)
			if err != nil {
				return nil, fmt.Errorf("%s: %s: %w", name, g.Name, err)
			}
			if len(made.Rules) > 0 {
				out.Groups = append(out.Groups, made)
			}
		}
		if len(out.Groups) > 0 {
			files[name] = out
		}
	}
	return files, nil
}

func (v *Values) group(g Group) (Group, error) {
	own := maps.Clone(v.texts)
	out := Group{Name: g.Name}
	var err error
	if out.Interval, err = expand(g.Interval, own); err != nil {
		return out, err
	}
	if out.Interval != "" {
		d, err := model.ParseDuration(out.Interval)
		if err != nil {
			return out, fmt.Errorf("interval: %w", err)
		}
		own[onceAndAHalf] = fmt.Sprintf("%.0fs", time.Duration(d).Seconds()*1.5)
	}
	for _, r := range g.Rules {
		if c, known := v.changes[r.Alert+alertOf(r.Record)]; known && !c.Enabled {
			continue
		}
		made, err := v.rule(r, own)
		if err != nil {
			return out, fmt.Errorf("%s: %w", r.Record+r.Alert, err)
		}
		out.Rules = append(out.Rules, made)
	}
	return out, nil
}

// alertOf returns the alert that alone reads a record, if there is one.
func alertOf(record string) string {
	name, _ := strings.CutPrefix(record, "device:")
	if alert, is := strings.CutSuffix(name, ":since"); is && Since(alert) == record {
		return alert
	}
	return ""
}

func (v *Values) rule(r Rule, own map[string]string) (Rule, error) {
	r.Labels, r.Annotations = maps.Clone(r.Labels), maps.Clone(r.Annotations)
	c := v.changes[r.Alert]
	delete(own, "wait")
	switch wait := cmp.Or(string(c.For), r.Wait); {
	case r.Wait == "":
		r.For = cmp.Or(string(c.For), r.For)
	case r.Wait != NoWait:
		var err error
		if own["wait"], err = expand(wait, own); err != nil {
			return r, err
		}
	}
	r.Wait = ""
	r.KeepFiringFor = cmp.Or(string(c.KeepFiringFor), r.KeepFiringFor)
	var err error
	for _, text := range []*string{&r.Expr, &r.For, &r.KeepFiringFor} {
		if *text, err = expand(*text, own); err != nil {
			return r, err
		}
	}
	for _, texts := range []map[string]string{r.Labels, r.Annotations} {
		for name := range texts {
			if texts[name], err = expand(texts[name], own); err != nil {
				return r, err
			}
		}
	}
	if r.Alert != "" {
		r.Labels["severity"] = cmp.Or(c.Severity, r.Labels["severity"])
		maps.Copy(r.Labels, v.Labels)
		maps.Copy(r.Labels, c.Labels)
		maps.Copy(r.Annotations, v.Annotations)
		maps.Copy(r.Annotations, c.Annotations)
	}
	return r, nil
}

// expand replaces each ${name} in a text of a form.
func expand(text string, values map[string]string) (string, error) {
	var unknown []string
	text = Reference.ReplaceAllStringFunc(text, func(ref string) string {
		value, ok := values[ref[2:len(ref)-1]]
		if !ok {
			unknown = append(unknown, ref)
		}
		return value
	})
	if len(unknown) > 0 {
		return "", fmt.Errorf("no value for %s", strings.Join(unknown, ", "))
	}
	return text, nil
}

package main

import (
	"bytes"
	"cmp"
	"fmt"
	"path/filepath"
	"strings"

	"go.yaml.in/yaml/v3"
)

// file is what one template becomes.
type file struct{ rules, manifest []byte }

type ruleFile struct {
	Groups []group `yaml:"groups"`
}

type group struct {
	Name     string `yaml:"name"`
	Interval string `yaml:"interval,omitempty"`
	Rules    []rule `yaml:"rules"`
}

// rule has the form of Prometheus.
type rule struct {
	Record        string            `yaml:"record,omitempty"`
	Alert         string            `yaml:"alert,omitempty"`
	Expr          string            `yaml:"expr"`
	For           string            `yaml:"for,omitempty"`
	KeepFiringFor string            `yaml:"keep_firing_for,omitempty"`
	Labels        map[string]string `yaml:"labels,omitempty"`
	Annotations   map[string]string `yaml:"annotations,omitempty"`
}

type manifest struct {
	APIVersion string   `yaml:"apiVersion"`
	Kind       string   `yaml:"kind"`
	Metadata   metadata `yaml:"metadata"`
	Spec       ruleFile `yaml:"spec"`
}

type metadata struct {
	Name   string            `yaml:"name"`
	Labels map[string]string `yaml:"labels"`
}

// generate returns the files to write by their base name: one for each
// template, and devices.yaml for the directory devices.
func generate(templates, valuesFile string) (map[string]file, error) {
	var v values
	if err := decode(valuesFile, &v); err != nil {
		return nil, err
	}
	all, err := load(templates)
	if err != nil {
		return nil, err
	}
	used := map[string]bool{}
	files := map[string]file{}
	for name, t := range all {
		out, err := t.make(v, used)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", filepath.Join(templates, name), err)
		}
		if files[name], err = encode(name, out); err != nil {
			return nil, err
		}
	}
	if names := v.unused(used); len(names) > 0 {
		return nil, fmt.Errorf("%s: no rule uses %s", valuesFile, strings.Join(names, ", "))
	}
	return files, nil
}

// load returns the templates by the name of the file that each becomes.
func load(dir string) (map[string]template, error) {
	all := map[string]template{}
	paths, err := filepath.Glob(filepath.Join(dir, "*.yaml"))
	if err != nil {
		return nil, err
	}
	for _, path := range paths {
		var t template
		if err := decode(path, &t); err != nil {
			return nil, err
		}
		if err := t.plain(); err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		all[filepath.Base(path)] = t
	}
	if paths, err = filepath.Glob(filepath.Join(dir, "devices", "*.yaml")); err != nil {
		return nil, err
	}
	var subjects []subject
	for _, path := range paths {
		var s subject
		if err := decode(path, &s); err != nil {
			return nil, err
		}
		subjects = append(subjects, s)
	}
	if len(subjects) > 0 {
		if all["devices.yaml"], err = deviceGroups(subjects); err != nil {
			return nil, fmt.Errorf("%s: %w", filepath.Join(dir, "devices"), err)
		}
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("%s: no templates", dir)
	}
	return all, nil
}

// plain checks that the rules use only the metrics that they declare.
func (t *template) plain() error {
	for _, g := range t.Groups {
		for _, r := range g.Rules {
			if r.Expr == "" || r.Device != "" || r.Reason != "" {
				return fmt.Errorf("%s: %s: a rule here has expr; device and reason belong into the directory devices", g.Name, cmp.Or(r.Alert, r.Record))
			}
		}
	}
	return nil
}

// make returns the rules that the template stands for.
func (t *template) make(v values, used map[string]bool) (ruleFile, error) {
	var out ruleFile
	for _, g := range t.Groups {
		interval, err := v.expand(g.Interval, used)
		if err != nil {
			return ruleFile{}, fmt.Errorf("%s: %w", g.Name, err)
		}
		made := group{Name: g.Name, Interval: interval}
		own, err := v.of(interval)
		if err != nil {
			return ruleFile{}, fmt.Errorf("%s: %w", g.Name, err)
		}
		for _, r := range g.Rules {
			one, err := r.make(own, used)
			if err != nil {
				return ruleFile{}, fmt.Errorf("%s: %s: %w", g.Name, cmp.Or(r.Alert, r.Record), err)
			}
			made.Rules = append(made.Rules, one)
		}
		out.Groups = append(out.Groups, made)
	}
	return out, nil
}

func (r *templateRule) make(v values, used map[string]bool) (rule, error) {
	out := rule{
		Record: r.Record, Alert: r.Alert, Expr: strings.TrimSpace(r.Expr),
		For: r.For, KeepFiringFor: r.KeepFiringFor, Labels: map[string]string{},
	}
	var err error
	for name, value := range r.Labels {
		out.Labels[name] = value
	}
	if r.Alert != "" {
		out.Labels["severity"] = r.Severity
		out.Annotations = map[string]string{
			"summary":     strings.TrimSpace(r.Summary),
			"description": strings.Join(strings.Fields(r.Description), " "),
			"runbook_url": "${runbooks}/" + r.Alert + ".md",
		}
	}
	if r.Reason != "" {
		out.Annotations["reasons"] = verdict("accel_device_health_reason", "reason", `severity!="unknown"`)
		out.Annotations["action"] = verdict("accel_device_action", "action", `action!="none"`)
		out.Annotations["hit"] = hit
	}
	if strings.Contains(r.Summary, "$labels.device") {
		for _, name := range []string{"pci_address", "index", "model", "serial"} {
			out.Annotations[name] = identity(name)
		}
	}
	for _, text := range []*string{&out.Expr, &out.For, &out.KeepFiringFor} {
		if *text, err = v.expand(*text, used); err != nil {
			return rule{}, err
		}
	}
	for _, texts := range []map[string]string{out.Labels, out.Annotations} {
		for name := range texts {
			if texts[name], err = v.expand(texts[name], used); err != nil {
				return rule{}, err
			}
		}
	}
	return out, nil
}

// verdict is the text of an annotation that lists the values of a label of
// the device's series that are 1.
func verdict(family, label, match string) string {
	query := fmt.Sprintf(`%s{device=%%q,instance=%%q,%s} == 1`, family, match)
	return "{{ range query (printf `" + query + "` $labels.device $labels.instance) | sortByLabel \"" + label + "\" }}{{ .Labels." + label + " }} {{ end }}"
}

// identity is the text of an annotation that is a label of the device's
// identity. Nobody can look up the UUID of a GPU that the driver has lost.
func identity(label string) string {
	return "{{ with query (printf `accel_device_info{device=%q,instance=%q}` $labels.device $labels.instance) }}{{ . | first | label \"" + label + "\" }}{{ end }}"
}

// hit is the text of an annotation that names the pods that held the device,
// or a partition of it, when it had a fault within the last hour. They may
// have ended since.
const hit = "{{ range query (printf `accel_allocation_fault_timestamp_seconds{device=%q,instance=%q} or accel_allocation_fault_timestamp_seconds{parent=%q,instance=%q}` $labels.device $labels.instance $labels.device $labels.instance) | sortByLabel \"pod\" }}{{ .Labels.namespace }}/{{ .Labels.pod }} by {{ .Labels.fault }} {{ end }}"

func encode(name string, rules ruleFile) (file, error) {
	head := "# Made from rules/templates/" + source(name) + " and rules/values.yml by make generate; do not edit.\n"
	plain, err := marshal(rules)
	if err != nil {
		return file{}, err
	}
	resource, err := marshal(manifest{
		APIVersion: "monitoring.coreos.com/v1",
		Kind:       "PrometheusRule",
		Metadata: metadata{
			Name:   "accel-exporter-" + strings.TrimSuffix(name, ".yaml"),
			Labels: map[string]string{"app.kubernetes.io/name": "accel-exporter"},
		},
		Spec: rules,
	})
	return file{rules: append([]byte(head), plain...), manifest: append([]byte(head), resource...)}, err
}

// source is what the file is made from.
func source(name string) string {
	if name == "devices.yaml" {
		return "devices"
	}
	return name
}

func marshal(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := yaml.NewEncoder(&b)
	enc.SetIndent(2)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return b.Bytes(), enc.Close()
}

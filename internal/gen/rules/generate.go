package main

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/accel-exporter/accel-exporter/rules/render"
)

// generate returns the forms of the rules and the rules that the values make of
// them: one file for each template, and devices.yaml for the directory devices.
func generate(templates, valuesFile string) (*render.Source, map[string]render.File, error) {
	s := &render.Source{Forms: map[string]render.File{}}
	if err := decode(valuesFile, &s.Defaults); err != nil {
		return nil, nil, err
	}
	if err := load(templates, s.Forms); err != nil {
		return nil, nil, err
	}
	values, err := s.Values(valuesFile, nil)
	if err != nil {
		return nil, nil, err
	}
	files, err := s.Render(values)
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", templates, err)
	}
	text, err := render.Encode("", s.Forms)
	if err != nil {
		return nil, nil, err
	}
	unused := slices.DeleteFunc(slices.Sorted(maps.Keys(s.Defaults)), func(name string) bool { return bytes.Contains(text, []byte("${"+name+"}")) })
	if len(unused) > 0 {
		return nil, nil, fmt.Errorf("%s: no rule uses %s", valuesFile, strings.Join(unused, ", "))
	}
	return s, files, nil
}

// load adds the forms of the templates by the name of the file that each becomes.
func load(dir string, forms map[string]render.File) error {
	paths, err := filepath.Glob(filepath.Join(dir, "*.yaml"))
	if err != nil {
		return err
	}
	for _, path := range paths {
		var t template
		if err := decode(path, &t); err != nil {
			return err
		}
		var f render.File
		for _, g := range t.Groups {
			groups, err := g.forms()
			if err != nil {
				return fmt.Errorf("%s: %w", path, err)
			}
			f.Groups = append(f.Groups, groups...)
		}
		forms[filepath.Base(path)] = f
	}
	if paths, err = filepath.Glob(filepath.Join(dir, "devices", "*.yaml")); err != nil {
		return err
	}
	var subjects []subject
	for _, path := range paths {
		var s subject
		if err := decode(path, &s); err != nil {
			return err
		}
		subjects = append(subjects, s)
	}
	if len(subjects) > 0 {
		groups, err := deviceGroups(subjects)
		if err != nil {
			return fmt.Errorf("%s: %w", filepath.Join(dir, "devices"), err)
		}
		forms["devices.yaml"] = render.File{Groups: groups}
	}
	if len(forms) == 0 {
		return fmt.Errorf("%s: no templates", dir)
	}
	return nil
}

// forms returns the group, or the groups that it is divided into.
func (g *templateGroup) forms() ([]render.Group, error) {
	var chains []chain
	for _, r := range g.Rules {
		if r.Expr == "" || r.Device != "" || r.Reason != "" {
			return nil, fmt.Errorf("%s: %s: a rule here has expr; device and reason belong into the directory devices", g.Name, cmp.Or(r.Alert, r.Record))
		}
		chains = append(chains, chain{r})
	}
	if len(chains) > maxRules {
		chains = joined(chains)
	}
	return kind{name: g.Name, interval: g.Interval}.groupsOf(chains, 0, nil)
}

// form returns the rule with names in place of values.
func (r *templateRule) form() render.Rule {
	out := render.Rule{
		Record: r.Record, Alert: r.Alert, Expr: strings.TrimSpace(r.Expr),
		For: r.For, KeepFiringFor: r.KeepFiringFor, Wait: r.wait, Labels: r.Labels,
	}
	if r.Alert != "" {
		out.Labels = map[string]string{"severity": r.Severity}
		maps.Copy(out.Labels, r.Labels)
		out.Annotations = map[string]string{
			"summary":     strings.TrimSpace(r.Summary),
			"description": strings.Join(strings.Fields(r.Description), " "),
			"runbook_url": "${runbooks}/" + r.Alert + ".md",
		}
	}
	if r.Reason != "" {
		out.Annotations["reasons"] = verdict("accel_device_health_reason", "reason", `severity!="unknown"`) + r.unobserved
		out.Annotations["action"] = verdict("accel_device_action", "action", `action!="none"`)
		out.Annotations["hit"] = hit
	}
	// A device with a node in place of an instance is one of another exporter.
	if strings.Contains(r.Summary, "$labels.device") && !strings.Contains(r.Summary, "$labels.node") {
		for _, name := range []string{"pci_address", "index", "model", "serial"} {
			out.Annotations[name] = identity(name, r.unobserved != "")
		}
	}
	return out
}

// verdict is the text of an annotation that lists the values of a label of
// the device's series that are 1.
func verdict(family, label, match string) string {
	query := fmt.Sprintf(`%s{device=%%q,instance=%%q,%s} == 1`, family, match)
	return "{{ range query (printf `" + query + "` $labels.device $labels.instance) | sortByLabel \"" + label + "\" }}{{ .Labels." + label + " }} {{ end }}"
}

// identity is the text of an annotation that is a label of the device's
// identity. Nobody can look up the UUID of a GPU that the driver has lost. Where
// the alert fires on without its device, it is the identity of the last day.
func identity(label string, unobserved bool) string {
	query := "printf `accel_device_info{device=%q,instance=%q}` $labels.device $labels.instance"
	if unobserved {
		query = "printf `accel_device_info{device=%q,instance=%q} or on (device) last_over_time(accel_device_info{device=%q,instance=%q}[1d])` $labels.device $labels.instance $labels.device $labels.instance"
	}
	return "{{ with query (" + query + ") }}{{ . | first | label \"" + label + "\" }}{{ end }}"
}

// hit is the text of an annotation that names the pods that held the device,
// or a partition of it, when it had a fault within the last hour. They may
// have ended since.
const hit = "{{ range query (printf `accel_allocation_fault_timestamp_seconds{exported_pod=\"\",device=%q,instance=%q} or accel_allocation_fault_timestamp_seconds{exported_pod=\"\",parent=%q,instance=%q}` $labels.device $labels.instance $labels.device $labels.instance) | sortByLabel \"pod\" }}{{ .Labels.namespace }}/{{ .Labels.pod }} by {{ .Labels.fault }} {{ end }}"

// outputs returns what is written, by path: the forms, the rules, and the same as
// manifests with a kustomization.
func outputs(s *render.Source, files map[string]render.File, forms, rules, manifests string) (map[string][]byte, error) {
	am, err := alertmanagerConfig(filepath.Join(manifests, "alertmanager.yml"))
	if err != nil {
		return nil, err
	}
	amPath := filepath.Join(manifests, "alertmanagerconfig.yaml")
	content := map[string]any{filepath.Join(manifests, "kustomization.yaml"): render.Kustomization(files), amPath: am}
	for name, f := range files {
		content[filepath.Join(forms, name)] = s.Forms[name]
		content[filepath.Join(rules, name)] = f
		content[filepath.Join(manifests, name)] = render.Manifest(name, f, nil)
	}
	out := map[string][]byte{}
	for path, c := range content {
		name := filepath.Base(path)
		comment := "Made from rules/templates/" + name + " and rules/values.yml by make generate; do not edit."
		switch {
		case path == amPath:
			comment = operatorRouting
		case name == "kustomization.yaml":
			comment = "Made by make generate; do not edit."
		case name == "devices.yaml":
			comment = strings.Replace(comment, name, "devices", 1)
		}
		if out[path], err = render.Encode(comment, c); err != nil {
			return nil, err
		}
	}
	return out, nil
}

const operatorRouting = `Made from alertmanager.yml by make generate; do not edit. The same routing for the
# Prometheus Operator. Name it in spec.alertmanagerConfiguration of the Alertmanager, or
# set there spec.alertmanagerConfigMatcherStrategy.type to None: otherwise the operator
# adds a matcher by which it applies only to alerts with the namespace of this object.`

// put writes a file, or compares it.
func put(path string, data []byte, check bool) error {
	if !check {
		return os.WriteFile(path, data, 0o644)
	}
	have, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if !bytes.Equal(have, data) {
		return fmt.Errorf("%s is not current: run make generate", path)
	}
	return nil
}

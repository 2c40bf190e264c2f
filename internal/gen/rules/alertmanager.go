package main

import (
	"fmt"
	"regexp"
	"strings"
)

// routing is the part of an Alertmanager configuration that can be written as an
// AlertmanagerConfig.
type routing struct {
	Route   *route `yaml:"route"`
	Inhibit []struct {
		Source []string `yaml:"source_matchers"`
		Target []string `yaml:"target_matchers"`
		Equal  []string `yaml:"equal"`
	} `yaml:"inhibit_rules"`
	Receivers []struct {
		Name string `yaml:"name"`
	} `yaml:"receivers"`
}

type route struct {
	Receiver       string   `yaml:"receiver"`
	GroupBy        []string `yaml:"group_by"`
	GroupWait      string   `yaml:"group_wait"`
	GroupInterval  string   `yaml:"group_interval"`
	RepeatInterval string   `yaml:"repeat_interval"`
	Continue       bool     `yaml:"continue"`
	Matchers       []string `yaml:"matchers"`
	Routes         []route  `yaml:"routes"`
}

// alertmanagerConfig returns the routing of a configuration of Alertmanager as the
// Prometheus Operator reads it, to be encoded.
func alertmanagerConfig(path string) (any, error) {
	var r routing
	if err := decode(path, &r); err != nil {
		return nil, err
	}
	tree, err := r.Route.config()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	var inhibit []any
	for _, i := range r.Inhibit {
		source, err := matchers(i.Source)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		target, err := matchers(i.Target)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		inhibit = append(inhibit, map[string]any{"sourceMatch": source, "targetMatch": target, "equal": i.Equal})
	}
	var receivers []any
	for _, r := range r.Receivers {
		receivers = append(receivers, map[string]any{"name": r.Name})
	}
	return map[string]any{
		"apiVersion": "monitoring.coreos.com/v1alpha1", "kind": "AlertmanagerConfig",
		"metadata": map[string]any{"name": "accel-exporter", "labels": map[string]string{"app.kubernetes.io/name": "accel-exporter"}},
		"spec":     map[string]any{"route": tree, "inhibitRules": inhibit, "receivers": receivers},
	}, nil
}

func (r *route) config() (map[string]any, error) {
	out := map[string]any{"receiver": r.Receiver}
	for key, text := range map[string]string{"groupWait": r.GroupWait, "groupInterval": r.GroupInterval, "repeatInterval": r.RepeatInterval} {
		if text != "" {
			out[key] = text
		}
	}
	if len(r.GroupBy) > 0 {
		out["groupBy"] = r.GroupBy
	}
	if r.Continue {
		out["continue"] = true
	}
	if len(r.Matchers) > 0 {
		all, err := matchers(r.Matchers)
		if err != nil {
			return nil, err
		}
		out["matchers"] = all
	}
	var routes []any
	for i := range r.Routes {
		one, err := r.Routes[i].config()
		if err != nil {
			return nil, err
		}
		routes = append(routes, one)
	}
	if len(routes) > 0 {
		out["routes"] = routes
	}
	return out, nil
}

var matcherText = regexp.MustCompile(`^\s*(\w+)\s*(=~|!~|!=|=)\s*("[^"]*"|[^"\s]+)\s*$`)

func matchers(texts []string) ([]any, error) {
	var all []any
	for _, text := range texts {
		m := matcherText.FindStringSubmatch(text)
		if m == nil {
			return nil, fmt.Errorf("found the matcher %q; accepted is one such as severity = critical", text)
		}
		all = append(all, map[string]any{"name": m[1], "matchType": m[2], "value": strings.Trim(m[3], `"`)})
	}
	return all, nil
}

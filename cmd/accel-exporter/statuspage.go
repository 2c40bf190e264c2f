package main

import (
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/alecthomas/kingpin/v2"
	"go.yaml.in/yaml/v3"

	"github.com/accel-exporter/accel-exporter/internal/config"
	"github.com/accel-exporter/accel-exporter/internal/status"
	"github.com/accel-exporter/accel-exporter/rules/engine"
)

// status returns what the status page shows of the rules, nil without rules.
func (a *alerts) status() *status.Alerts {
	if a == nil {
		return nil
	}
	report := a.engine.Report()
	out := &status.Alerts{Evaluated: report.Time}
	for _, g := range report.Groups {
		out.Rules += len(g.Rules)
		for i := range g.Rules {
			switch g.Rules[i].Health {
			case engine.HealthError:
				out.Failing++
			case engine.HealthSkipped:
				out.Skipped++
			}
		}
	}
	since := func(x *engine.Alert) time.Time {
		if x.State == engine.Firing {
			return x.FiredAt
		}
		return x.ActiveAt
	}
	for _, alert := range newAlertList(&report).Alerts {
		x := &alert
		severity := x.Labels["severity"]
		switch {
		case x.State == engine.Inactive, severity == "none":
			continue // resolved, or the sign of life
		case x.State == engine.Firing:
			out.Firing++
		default:
			out.Pending++
		}
		out.List = append(out.List, status.Alert{
			Name: x.Labels["alertname"], Severity: severity, Device: x.Labels["device"], Firing: x.State == engine.Firing,
			Summary: x.Annotations["summary"], Description: x.Annotations["description"], Runbook: x.Annotations["runbook_url"], Since: since(x),
		})
	}
	return out
}

// flagValues returns the values of the flags, set flags first, without secrets.
func flagValues(app *kingpin.Application) (out []status.Setting) {
	for _, f := range app.Model().Flags {
		if f.Hidden || f.Value == nil || f.Name == "help" || f.Name == "version" {
			continue
		}
		value, normal := f.Value.String(), strings.Join(f.Default, ",")
		if value == "map[]" {
			value = ""
		}
		out = append(out, status.Setting{
			Name: f.Name, Value: masked(f.Name, value),
			Default: value == normal || normal == "" && value == "false",
		})
	}
	slices.SortStableFunc(out, func(a, b status.Setting) int {
		if a.Default == b.Default {
			return 0
		}
		if b.Default {
			return -1
		}
		return 1
	})
	return out
}

// configText returns a configuration as YAML, with the defaults of what its file
// leaves out and without secrets.
func configText(cfg *config.Config) string {
	text, err := yaml.Marshal(cfg)
	if err != nil {
		return err.Error()
	}
	var b strings.Builder
	for line := range strings.Lines(string(text)) {
		name, value, ok := strings.Cut(strings.TrimSuffix(line, "\n"), ": ")
		if ok {
			line = name + ": " + masked(strings.TrimLeft(name, " -"), value) + "\n"
		}
		b.WriteString(line)
	}
	return b.String()
}

var (
	secretName = regexp.MustCompile(`(?i)(passwo?r?d|secret|token|credential|api[-_.]?key|bearer)`)
	inURL      = regexp.MustCompile(`://[^/@\s"']+@`)
)

// masked returns a value without what may be secret: the value of a setting with such
// a name, unless it is a path, and the user and the password in an address.
func masked(name, value string) string {
	if secretName.MatchString(name) && !strings.HasSuffix(name, "file") && value != "" && value != `""` {
		return "***"
	}
	return inURL.ReplaceAllString(value, "://***@")
}

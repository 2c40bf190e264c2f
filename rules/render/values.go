package render

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/prometheus/common/model"

	"github.com/accel-exporter/accel-exporter/internal/strict"
	"github.com/accel-exporter/accel-exporter/internal/strict/wording"
)

// Values are the values of the rules and what a user changes beside them.
type Values struct {
	// Values and Alerts point to structs with a field for each value and each
	// alert that there is.
	Values      any               `yaml:"values"`
	Alerts      any               `yaml:"alerts"`
	Labels      map[string]string `yaml:"labels"`
	Annotations map[string]string `yaml:"annotations"`

	texts   map[string]string
	changes map[string]change
}

// change is what a user may change of an alert.
type change struct {
	Enabled       bool              `yaml:"enabled"`
	Severity      string            `yaml:"severity" accept:"critical|warning|info"`
	For           duration          `yaml:"for"`
	KeepFiringFor duration          `yaml:"keep_firing_for"`
	Labels        map[string]string `yaml:"labels"`
	Annotations   map[string]string `yaml:"annotations"`

	fixed bool // for cannot be changed
}

// Values decodes a file of values; without content the result is the defaults.
// The name stands for the file in errors.
func (s *Source) Values(name string, data []byte) (*Values, error) {
	values, alerts := map[string]any{}, map[string]any{}
	for key, text := range s.Defaults {
		values[key] = typed(key, text)
	}
	for _, form := range s.Forms {
		for _, g := range form.Groups {
			for _, r := range g.Rules {
				if r.Alert != "" {
					alerts[r.Alert] = change{Enabled: true, fixed: r.Wait == NoWait}
				}
			}
		}
	}
	v := &Values{Values: section(values), Alerts: section(alerts), texts: map[string]string{}, changes: map[string]change{}}
	if err := strict.Decode(name, data, v); err != nil {
		return nil, err
	}
	each(v.Values, func(key string, value any) {
		if f, ok := value.(float64); ok {
			value = strconv.FormatFloat(f, 'f', -1, 64)
		}
		v.texts[key] = fmt.Sprint(value)
	})
	each(v.Alerts, func(key string, value any) { v.changes[key] = value.(change) })
	return v, nil
}

// section returns a pointer to a struct with these keys and defaults.
func section(defaults map[string]any) any {
	keys := slices.Sorted(maps.Keys(defaults))
	fields := make([]reflect.StructField, len(keys))
	for i, key := range keys {
		tag := fmt.Sprintf("yaml:%q", key)
		if _, ok := defaults[key].(float64); ok {
			tag += ` accept:"0..1e15"`
		}
		fields[i] = reflect.StructField{Name: "F" + strconv.Itoa(i), Type: reflect.TypeOf(defaults[key]), Tag: reflect.StructTag(tag)}
	}
	s := reflect.New(reflect.StructOf(fields))
	for i, key := range keys {
		s.Elem().Field(i).Set(reflect.ValueOf(defaults[key]))
	}
	return s.Interface()
}

// each calls f with every key of a section.
func each(section any, f func(key string, value any)) {
	v := reflect.ValueOf(section).Elem()
	for i := range v.NumField() {
		f(v.Type().Field(i).Tag.Get("yaml"), v.Field(i).Interface())
	}
}

// Check implements strict.Checker.
func (v *Values) Check() error {
	return errors.Join(checkNames("labels", v.Labels, reserved...), checkNames("annotations", v.Annotations))
}

// Check implements strict.Checker.
func (c *change) Check() error {
	if c.fixed && c.For != "" {
		return strict.At(errors.New("found a wait; accepted is none, because this alert on a device fires at once and a wait would restart with each pod on the device"), "for")
	}
	return errors.Join(checkNames("labels", c.Labels, reserved...), checkNames("annotations", c.Annotations))
}

// reserved are labels that identify an alert or have a key of their own.
var reserved = []string{"alertname", "severity", "instance", "device", "namespace", "pod"}

var labelName = regexp.MustCompile(`^[a-zA-Z_][a-zA-Z0-9_]*$`)

func checkNames(field string, texts map[string]string, banned ...string) error {
	for _, name := range slices.Sorted(maps.Keys(texts)) {
		switch {
		case !labelName.MatchString(name) || name == model.MetricNameLabel:
			return strict.At(fmt.Errorf("found the name %s; accepted are letters, digits and _, not beginning with a digit", wording.Quote(name)), field, name)
		case slices.Contains(banned, name):
			return strict.At(fmt.Errorf("found the label %s, which the rules set; accepted is any other", name), field, name)
		case strings.ContainsFunc(texts[name], func(r rune) bool { return unicode.IsControl(r) && r != '\n' }):
			return strict.At(fmt.Errorf("found %s; accepted are printable characters and line feeds", wording.Quote(texts[name])), field, name)
		}
	}
	return nil
}

// typed returns a default as a value of the type that its key and its form have.
func typed(key, text string) any {
	f, notNumber := strconv.ParseFloat(text, 64)
	_, notDuration := model.ParseDuration(text)
	switch {
	case key == "target":
		return names(text)
	case key == "exempt_label":
		return name(text)
	case key == "runbooks":
		return prefix(text)
	case strings.HasSuffix(key, "_interval"):
		return interval{text, text}
	case notNumber == nil:
		return f
	case notDuration == nil:
		return duration(text)
	}
	return pattern(text)
}

type (
	// duration is a duration in Prometheus' form.
	duration string
	// interval is the interval of a group, which can be shorter than its default.
	interval struct{ text, most string }
	// names are label names.
	names string
	// name is a label name.
	name string
	// prefix is the begin of an address.
	prefix string
	// pattern is a regular expression within the quotes of PromQL.
	pattern string
)

// UnmarshalText implements encoding.TextUnmarshaler.
func (d *duration) UnmarshalText(b []byte) error {
	if _, err := model.ParseDuration(string(b)); err != nil {
		return fmt.Errorf("found %s; accepted is a duration such as 30s, 5m or 1h30m", wording.Quote(string(b)))
	}
	*d = duration(b)
	return nil
}

func (i interval) String() string { return i.text }

var oneUnit = regexp.MustCompile(`^[1-9][0-9]*[smh]$`)

// UnmarshalText implements encoding.TextUnmarshaler.
func (i *interval) UnmarshalText(b []byte) error {
	d, err := model.ParseDuration(string(b))
	most, _ := model.ParseDuration(i.most)
	if err != nil || !oneUnit.Match(b) || time.Duration(d) < 10*time.Second || d > most {
		return fmt.Errorf("found %s; accepted is a duration such as 30s or 4m, from 10s to %s: other rules read what the group records", wording.Quote(string(b)), i.most)
	}
	i.text = string(b)
	return nil
}

// UnmarshalText implements encoding.TextUnmarshaler.
func (n *names) UnmarshalText(b []byte) error {
	all := strings.Split(string(b), ", ")
	if !slices.Contains(all, "instance") || slices.ContainsFunc(all, func(s string) bool { return !labelName.MatchString(s) }) {
		return fmt.Errorf("found %s; accepted are label names such as job, instance, divided by a comma and a space, with instance among them", wording.Quote(string(b)))
	}
	*n = names(b)
	return nil
}

// UnmarshalText implements encoding.TextUnmarshaler.
func (n *name) UnmarshalText(b []byte) error {
	if !labelName.Match(b) {
		return fmt.Errorf("found %s; accepted is the name of a label", wording.Quote(string(b)))
	}
	*n = name(b)
	return nil
}

// UnmarshalText implements encoding.TextUnmarshaler.
func (p *prefix) UnmarshalText(b []byte) error {
	if !regexp.MustCompile(`^https?://[^\s"\\{}]+[^\s"\\{}/]$`).Match(b) {
		return fmt.Errorf("found %s; accepted is an address such as https://wiki.example/runbooks, without a slash at its end", wording.Quote(string(b)))
	}
	*p = prefix(b)
	return nil
}

// UnmarshalText implements encoding.TextUnmarshaler.
func (p *pattern) UnmarshalText(b []byte) error {
	_, err := regexp.Compile(string(b))
	if err != nil || strings.ContainsAny(string(b), "\"\\$'") || strings.ContainsFunc(string(b), unicode.IsControl) {
		return fmt.Errorf("found %s; accepted is a regular expression without quotes, backslashes, dollar signs and line feeds; [.] is a dot", wording.Quote(string(b)))
	}
	*p = pattern(b)
	return nil
}

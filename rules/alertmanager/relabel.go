package alertmanager

import (
	"fmt"
	"slices"
	"strings"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/relabel"
)

// Relabel is one step of Prometheus' relabelling, as documented for
// alert_relabel_configs. Label names are letters, digits and _, which every
// Alertmanager accepts.
type Relabel struct {
	SourceLabels []string `yaml:"source_labels"`
	// Separator is ; by default.
	Separator Text `yaml:"separator"`
	// Regex must match the whole text; (.*) by default.
	Regex       Text   `yaml:"regex"`
	Modulus     int    `yaml:"modulus" accept:"1..2147483647"`
	TargetLabel string `yaml:"target_label"`
	// Replacement is $1 by default. An empty one removes the label.
	Replacement Text `yaml:"replacement"`
	// Action is replace by default.
	Action string `yaml:"action"`
}

// Text is an optional text; unset differs from empty.
type Text struct {
	Value string
	Set   bool
}

// UnmarshalText implements encoding.TextUnmarshaler.
func (t *Text) UnmarshalText(data []byte) error {
	*t = Text{Value: string(data), Set: true}
	return nil
}

func (t Text) or(other string) string {
	if t.Set {
		return t.Value
	}
	return other
}

var actions = []relabel.Action{
	relabel.Replace, relabel.Keep, relabel.Drop, relabel.KeepEqual, relabel.DropEqual, relabel.HashMod,
	relabel.LabelMap, relabel.LabelDrop, relabel.LabelKeep, relabel.Lowercase, relabel.Uppercase,
}

// Check implements strict.Checker.
func (r *Relabel) Check() error {
	_, err := r.config()
	return err
}

func (r *Relabel) config() (*relabel.Config, error) {
	c := relabel.DefaultRelabelConfig
	if r.Action != "" {
		c.Action = relabel.Action(strings.ToLower(r.Action))
	}
	if !slices.Contains(actions, c.Action) {
		return nil, fmt.Errorf("found the action %.40q; accepted are %s", r.Action, joined(actions))
	}
	for _, name := range r.SourceLabels {
		if !model.LegacyValidation.IsValidLabelName(name) {
			return nil, fmt.Errorf("found the source label %.60q; accepted are letters, digits and _, no digit first", name)
		}
		c.SourceLabels = append(c.SourceLabels, model.LabelName(name))
	}
	if r.Regex.Set {
		regex, err := relabel.NewRegexp(r.Regex.Value)
		if err != nil || len(r.Regex.Value) > maxText {
			return nil, fmt.Errorf("found the regex %.60q; accepted is a regular expression as Go has them, of up to %d bytes", r.Regex.Value, maxText)
		}
		c.Regex = regex
	}
	c.Separator = r.Separator.or(c.Separator)
	c.Replacement = r.Replacement.or(c.Replacement)
	c.TargetLabel = r.TargetLabel
	c.Modulus = uint64(max(r.Modulus, 0))
	if err := c.Validate(model.LegacyValidation); err != nil {
		return nil, err
	}
	return &c, nil
}

func joined(actions []relabel.Action) string {
	names := make([]string, len(actions))
	for i, a := range actions {
		names[i] = string(a)
	}
	return strings.Join(names, ", ")
}

// relabelling turns the labels of an alert into its identity.
type relabelling struct {
	external map[string]string
	steps    []*relabel.Config
}

func newRelabelling(s *Settings) (*relabelling, error) {
	r := &relabelling{external: s.ExternalLabels}
	for i := range s.Relabel {
		c, err := s.Relabel[i].config()
		if err != nil {
			return nil, fmt.Errorf("alert_relabel_configs[%d]: %w", i, err)
		}
		r.steps = append(r.steps, c)
	}
	return r, nil
}

// apply returns the labels of a notification, and false if relabelling drops
// the alert or leaves no label.
func (r *relabelling) apply(from map[string]string) (ls labels.Labels, keep bool) {
	b := labels.NewBuilder(labels.EmptyLabels())
	for name, value := range from {
		b.Set(name, value) // an empty label is no label
	}
	for name, value := range r.external {
		if from[name] == "" {
			b.Set(name, value)
		}
	}
	keep = relabel.ProcessBuilder(b, r.steps...)
	ls = b.Labels()
	return ls, keep && !ls.IsEmpty()
}

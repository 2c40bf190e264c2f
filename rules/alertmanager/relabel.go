package alertmanager

import (
	"fmt"
	"slices"
	"strings"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/relabel"
)

// Relabel is one step of Prometheus' relabelling; its documentation of
// alert_relabel_configs applies. Names of labels are letters, digits and _,
// which every Alertmanager takes.
type Relabel struct {
	SourceLabels []string `yaml:"source_labels"`
	// Separator is ; where it is left out.
	Separator Text `yaml:"separator"`
	// Regex must match the whole text, and is (.*) where it is left out.
	Regex       Text   `yaml:"regex"`
	Modulus     int    `yaml:"modulus" accept:"1..2147483647"`
	TargetLabel string `yaml:"target_label"`
	// Replacement is $1 where it is left out. An empty one removes the label.
	Replacement Text `yaml:"replacement"`
	// Action is replace where it is left out.
	Action string `yaml:"action"`
}

// Text is one that may be left out, which is not the same as empty.
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

// relabelling is what becomes of labels before they are an identity.
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

// apply returns the labels under which an alert is sent, and false where it is
// not to be sent, or no label is left.
func (r *relabelling) apply(from map[string]string) (ls labels.Labels, keep bool) {
	b := labels.NewBuilder(labels.EmptyLabels())
	for name, value := range from {
		b.Set(name, value) // without those that are empty, which are none
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

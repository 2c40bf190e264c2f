package strict_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/accel-exporter/accel-exporter/internal/config/strict"
	"github.com/accel-exporter/accel-exporter/internal/config/strict/wording"
)

// form has a field of every kind that a file can have.
type form struct {
	Mode    string              `yaml:"mode" accept:"fast|slow"`
	Title   string              `yaml:"title"`
	Share   float64             `yaml:"share" accept:"0..1"`
	Offset  float64             `yaml:"offset"`
	Count   int                 `yaml:"count" accept:"1..9"`
	On      bool                `yaml:"on"`
	Wait    time.Duration       `yaml:"wait" accept:"1s..1m"`
	Long    time.Duration       `yaml:"long" accept:"1s..2d"`
	Code    code                `yaml:"code"`
	Codes   []code              `yaml:"codes"`
	Modes   []string            `yaml:"modes" accept:"fast|slow"`
	Weights map[string]float64  `yaml:"weights" accept:"0..10"`
	Groups  map[string][]string `yaml:"groups"`
	Limits  map[string]limit    `yaml:"limits"`
	Layers  []map[string]int    `yaml:"layers" accept:"1..7"`
	Limit   limit               `yaml:"limit"`
	Inner   struct {
		Limits []limit `yaml:"limits"`
	} `yaml:"inner"`
}

// code is a text with its own syntax.
type code string

func (c *code) UnmarshalText(b []byte) error {
	if len(b) != 3 {
		return fmt.Errorf("found %s; accepted are three letters", wording.Quote(string(b)))
	}
	*c = code(strings.ToUpper(string(b)))
	return nil
}

// limit is a section whose fields must fit each other.
type limit struct {
	Low  int `yaml:"low" accept:"0..100"`
	High int `yaml:"high" accept:"0..100"`
}

func (l *limit) Check() error {
	switch {
	case l.Low == 13:
		return strict.At(errors.New("found an unlucky number; accepted is any other"), "low")
	case l.High == 13:
		return fmt.Errorf("in high: %w", strict.At(errors.New("found an unlucky number; accepted is any other"), "high", "digits", 1))
	case l.Low > l.High:
		return fmt.Errorf("found low %d above high %d; accepted is low up to high", l.Low, l.High)
	}
	return nil
}

// Check refuses an order that only the whole file shows.
func (f *form) Check() error {
	for i := range f.Inner.Limits {
		if i > 0 && f.Inner.Limits[i].Low < f.Inner.Limits[i-1].Low {
			return strict.At(errors.New("found a lower one; accepted are limits in order"), "inner", "limits", i)
		}
	}
	return nil
}

var _ strict.Checker = (*limit)(nil)

func TestDecode(t *testing.T) {
	for name, c := range map[string]struct {
		data string
		want form
	}{
		"nothing":                              {"", form{Title: "default"}},
		"null":                                 {"~", form{Title: "default"}},
		"enumeration":                          {"mode: slow", form{Title: "default", Mode: "slow"}},
		"quoted enumeration":                   {`mode: "fast"`, form{Title: "default", Mode: "fast"}},
		"default replaced":                     {"title: other", form{Title: "other"}},
		"float":                                {"share: 0.25", form{Title: "default", Share: 0.25}},
		"float without fraction, at both ends": {"{share: 1, offset: -3}", form{Title: "default", Share: 1, Offset: -3}},
		"float with digits in groups":          {"offset: 1_000", form{Title: "default", Offset: 1000}},
		"float with an exponent":               {"offset: -1.5e-3", form{Title: "default", Offset: -0.0015}},
		"boolean":                              {"on: true", form{Title: "default", On: true}},
		"duration":                             {"wait: 1m", form{Title: "default", Wait: time.Minute}},
		"duration in days":                     {"long: 1d12h", form{Title: "default", Long: 36 * time.Hour}},
		"text of its own":                      {"{code: abc, codes: [def, ghi]}", form{Title: "default", Code: "ABC", Codes: []code{"DEF", "GHI"}}},
		"list of an enumeration":               {"modes: [slow, fast]", form{Title: "default", Modes: []string{"slow", "fast"}}},
		"map":                                  {"weights: {a: 0, \"b c\": 10, 7: 2.5}", form{Title: "default", Weights: map[string]float64{"a": 0, "b c": 10, "7": 2.5}}},
		"empty map":                            {"weights: {}", form{Title: "default", Weights: map[string]float64{}}},
		"map whose content is commented out":   {"weights:\n#  a: 1\n", form{Title: "default"}},
		"map of lists":                         {"groups: {a: [x, y], b: []}", form{Title: "default", Groups: map[string][]string{"a": {"x", "y"}, "b": {}}}},
		"map of sections":                      {"limits: {a: {low: 1, high: 2}, b: {high: 3}}", form{Title: "default", Limits: map[string]limit{"a": {1, 2}, "b": {0, 3}}}},
		"list of maps":                         {"layers: [{x: 1, y: 2}, {}]", form{Title: "default", Layers: []map[string]int{{"x": 1, "y": 2}, {}}}},
		"alias of a map":                       {"weights: &w {a: 1}\n", form{Title: "default", Weights: map[string]float64{"a": 1}}},
		"section that fits":                    {"limit: {low: 5, high: 5}", form{Title: "default", Limit: limit{5, 5}}},
	} {
		t.Run(name, func(t *testing.T) {
			got := form{Title: "default"}
			if err := strict.Decode("f.yml", []byte(c.data), &got); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("decoded (-want +got):\n%s", diff)
			}
		})
	}
}

// TestInterface checks that a field of an interface type decodes into the
// struct behind it, and that a nil one accepts any section.
func TestInterface(t *testing.T) {
	type file struct {
		Limit any `yaml:"limit"`
	}
	const text = "limit: {low: 1, high: 2}\n"
	var l limit
	if err := strict.Decode("f", []byte(text), &file{&l}); err != nil || l != (limit{1, 2}) {
		t.Errorf("%+v, %v", l, err)
	}
	if err := strict.Decode("f", []byte("limit: {low: 1, hgh: 2}\n"), &file{&l}); err == nil || !strings.Contains(err.Error(), "f:1: limit.hgh: unknown key") {
		t.Errorf("a mistake in the section: %v", err)
	}
	if err := strict.Decode("f", []byte("limit: [a, b]\n"), new(file)); err != nil {
		t.Errorf("nil: %v", err)
	}
}

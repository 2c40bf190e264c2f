package strict_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/accel-exporter/accel-exporter/internal/config/strict"
)

// TestSchema checks the schema of a section, a list, ranges, an enumeration and a
// text with its own syntax.
func TestSchema(t *testing.T) {
	var f form
	got, err := json.Marshal(strict.Schema(&f))
	if err != nil {
		t.Fatal(err)
	}
	var s struct {
		Type       []string
		Additional bool `json:"additionalProperties"`
		Properties map[string]json.RawMessage
	}
	if err := json.Unmarshal(got, &s); err != nil {
		t.Fatal(err)
	}
	if s.Additional || !cmp.Equal(s.Type, []string{"object", "null"}) {
		t.Errorf("%s", got)
	}
	for key, want := range map[string]string{
		"mode":    `{"enum":["fast","slow"]}`,
		"share":   `{"maximum":1,"minimum":0,"type":"number"}`,
		"code":    `{"type":"string"}`,
		"weights": `{"additionalProperties":{"maximum":10,"minimum":0,"type":"number"},"type":["object","null"]}`,
		"modes":   `{"items":{"enum":["fast","slow"]},"type":["array","null"]}`,
	} {
		if diff := cmp.Diff(want, string(s.Properties[key])); diff != "" {
			t.Errorf("%s:\n%s", key, diff)
		}
	}
}

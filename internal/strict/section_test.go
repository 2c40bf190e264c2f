package strict_test

import (
	"errors"
	"io/fs"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/accel-exporter/accel-exporter/internal/strict"
)

// shared is a file of which a section is another program's.
type shared struct {
	Mine  limit      `yaml:"mine"`
	Other strict.Raw `yaml:"other"`
}

// TestDecodeSection: two programs that read one file say together what one
// would say of it.
func TestDecodeSection(t *testing.T) {
	type whole struct {
		Mine  limit `yaml:"mine"`
		Other limit `yaml:"other"`
	}
	for _, text := range []string{
		"", "mine: {low: 1, high: 2}\n", "other: {low: 1, high: 2}\n", "other:\n", "other: ~\n", "[a]\n", "other: [1]\n",
		"other: {low: 1, high: 2, middle: 3}\nmine: {low: 500}\n", "mine: {low: x}\nother:\n  low: y\n  hi: 2\n",
		"mine: &m {low: 1, high: 2}\nother: *m\n", "other: {low: 9, high: 1}\n", "other: {}\nother: {low: 1}\n",
		"nothing: 1\nother: {low: 200}\n", "other: {", "a: {}\n--- {}\n", strings.Repeat("#", strict.MaxSize+1),
	} {
		var want whole
		wanted := strict.Decode("f", []byte(text), &want)
		var got shared
		section := limit{}
		err := strict.Join(strict.Decode("f", []byte(text), &got), strict.DecodeSection("f", []byte(text), "other", &section))
		if (err == nil) != (wanted == nil) || err != nil && err.Error() != wanted.Error() {
			t.Errorf("%.60q is said to be\n%v\nnot\n%v", text, err, wanted)
		}
		if wanted != nil {
			continue
		}
		if diff := cmp.Diff(want, whole{got.Mine, section}); diff != "" {
			t.Errorf("%q (-whole +parts):\n%s", text, diff)
		}
		if given := strings.Contains(text, "other: ") && !strings.Contains(text, "~"); got.Other.Given != given {
			t.Errorf("%q has the section: %v", text, got.Other.Given)
		}
	}
}

func TestJoin(t *testing.T) {
	one, two := strict.Mistake{File: "f", Line: 1, Text: "x"}, strict.Mistake{File: "f", Line: 2, Text: "y"}
	if err := strict.Join(nil, nil); err != nil {
		t.Errorf("nothing is %v", err)
	}
	err := strict.Join(strict.Mistakes{two}, nil, strict.Mistakes{one, two})
	if m, ok := errors.AsType[strict.Mistakes](err); !ok || len(m) != 2 || m[0] != one {
		t.Errorf("joined: %v", err)
	}
	err = strict.Join(fs.ErrNotExist, strict.Mistakes{one})
	if !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), one.Error()) {
		t.Errorf("joined with another: %v", err)
	}
}

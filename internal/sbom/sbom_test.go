package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"testing"
)

func TestMaterials(t *testing.T) {
	b := materials(&debug.BuildInfo{
		GoVersion: "go1.26.8",
		Main:      debug.Module{Path: "example.org/a", Version: "v1.0.0+dirty"},
		Settings:  []debug.BuildSetting{{Key: "GOARCH", Value: "arm64"}, {Key: "-ldflags", Value: "secret"}},
		Deps: []*debug.Module{
			{Path: "example.org/b", Version: "v2.0.0", Sum: "h1:abc="},
			{Path: "example.org/c", Version: "v3.0.0", Replace: &debug.Module{Path: "example.org/d", Version: "v4.0.0"}},
			{Path: "example.org/e", Version: "v0.0.0", Replace: &debug.Module{Path: "../..", Version: "(devel)"}},
		},
	})
	out, err := json.Marshal(b)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		`"bomFormat":"CycloneDX","specVersion":"1.5","serialNumber":"urn:uuid:`,
		`"purl":"pkg:golang/example.org/a@v1.0.0%2Bdirty","properties":[{"name":"go:GOARCH","value":"arm64"}]`,
		`"purl":"pkg:golang/example.org/b@v2.0.0","properties":[{"name":"go:sum","value":"h1:abc="}]`,
		`"dependsOn":["pkg:golang/std@1.26.8","pkg:golang/example.org/b@v2.0.0","pkg:golang/example.org/d@v4.0.0","pkg:golang/example.org/e@v1.0.0%2Bdirty"]`,
	} {
		if !strings.Contains(string(out), want) {
			t.Errorf("%s is not in\n%s", want, out)
		}
	}
}

// TestSame: the same program gives the same bytes, and a file that is no Go
// program an error.
func TestSame(t *testing.T) {
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	var one, two bytes.Buffer
	if err := run([]string{program}, &one); err != nil {
		t.Fatal(err)
	}
	if err := run([]string{program}, &two); err != nil {
		t.Fatal(err)
	}
	if one.Len() == 0 || !bytes.Equal(one.Bytes(), two.Bytes()) {
		t.Errorf("%s\n%s", &one, &two)
	}
	text := filepath.Join(t.TempDir(), "text")
	if err := os.WriteFile(text, []byte("no program"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{nil, {text}, {filepath.Join(t.TempDir(), "none")}} {
		if err := run(args, &one); err == nil {
			t.Errorf("%q: no error", args)
		}
	}
}

package main

import (
	"crypto/sha256"
	"encoding/hex"
	"runtime/debug"
	"strings"
)

// The parts of CycloneDX 1.5 that are filled in.
type bill struct {
	Format       string       `json:"bomFormat"`
	SpecVersion  string       `json:"specVersion"`
	SerialNumber string       `json:"serialNumber"`
	Version      int          `json:"version"`
	Metadata     metadata     `json:"metadata"`
	Components   []component  `json:"components"`
	Dependencies []dependency `json:"dependencies"`
}

type metadata struct {
	Component component `json:"component"`
}

type component struct {
	Type       string     `json:"type"`
	Ref        string     `json:"bom-ref"`
	Name       string     `json:"name"`
	Version    string     `json:"version,omitempty"`
	PURL       string     `json:"purl"`
	Properties []property `json:"properties,omitempty"`
}

type property struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

type dependency struct {
	Ref       string   `json:"ref"`
	DependsOn []string `json:"dependsOn"`
}

// materials are the modules of a program, in the order of their paths.
func materials(info *debug.BuildInfo) bill {
	main := module("application", &info.Main)
	for _, s := range info.Settings {
		// What decides about what is linked, and nothing of the machine.
		switch s.Key {
		case "GOOS", "GOARCH", "CGO_ENABLED", "-tags", "vcs.revision":
			main.Properties = append(main.Properties, property{"go:" + s.Key, s.Value})
		}
	}
	b := bill{Format: "CycloneDX", SpecVersion: "1.5", Version: 1, Metadata: metadata{main}}
	toolchain := strings.TrimPrefix(info.GoVersion, "go")
	b.Components = []component{{
		Type: "library", Ref: "pkg:golang/std@" + toolchain, Name: "std", Version: toolchain, PURL: "pkg:golang/std@" + toolchain,
	}}
	for _, d := range info.Deps {
		if d.Replace != nil && local(d.Replace) {
			// Of this repository, so of the program's own version.
			d = &debug.Module{Path: d.Path, Version: info.Main.Version}
		} else if d.Replace != nil {
			d = d.Replace
		}
		b.Components = append(b.Components, module("library", d))
	}
	refs := make([]string, len(b.Components))
	for i := range b.Components {
		refs[i] = b.Components[i].Ref
	}
	b.Dependencies = []dependency{{Ref: main.Ref, DependsOn: refs}}
	b.SerialNumber = serial(info.String())
	return b
}

// local reports whether a module is a folder, which has no version.
func local(m *debug.Module) bool {
	return strings.HasPrefix(m.Path, "./") || strings.HasPrefix(m.Path, "../") || strings.HasPrefix(m.Path, "/")
}

func module(kind string, m *debug.Module) component {
	purl := "pkg:golang/" + m.Path
	if m.Version != "" {
		purl += "@" + strings.ReplaceAll(m.Version, "+", "%2B")
	}
	c := component{Type: kind, Ref: purl, Name: m.Path, Version: m.Version, PURL: purl}
	if m.Sum != "" {
		// The checksum of Go's database: of the module, not of one file.
		c.Properties = []property{{"go:sum", m.Sum}}
	}
	return c
}

// serial is a UUID of version 8, made from what the bill is about.
func serial(of string) string {
	sum := sha256.Sum256([]byte(of))
	sum[6] = sum[6]&0x0f | 0x80
	sum[8] = sum[8]&0x3f | 0x80
	h := hex.EncodeToString(sum[:16])
	return "urn:uuid:" + strings.Join([]string{h[:8], h[8:12], h[12:16], h[16:20], h[20:]}, "-")
}

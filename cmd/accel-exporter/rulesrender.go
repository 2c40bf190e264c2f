package main

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/alecthomas/kingpin/v2"

	"github.com/accel-exporter/accel-exporter/internal/strict"
	"github.com/accel-exporter/accel-exporter/rules/engine"
	"github.com/accel-exporter/accel-exporter/rules/render"
)

// renderFlags is the command line of `accel-exporter rules render`.
type renderFlags struct {
	values, output string
	manifests      bool
	labels         map[string]string
}

func (f *renderFlags) add(app *kingpin.Application) *kingpin.CmdClause {
	f.labels = map[string]string{}
	c := app.Command("render", "Write the built-in rules with your thresholds, waits, severities and labels, for Prometheus and what reads its rules.")
	c.Flag("values", "File with the changes, in the form that rules/README.md describes. The file of --rules.values.").PlaceHolder("FILE").StringVar(&f.values)
	c.Flag("output", "Directory for one file per subject. Without it everything is printed, as one file.").PlaceHolder("DIR").StringVar(&f.output)
	c.Flag("manifests", "Write PrometheusRule manifests for the Prometheus Operator, and into a directory their kustomization.").BoolVar(&f.manifests)
	c.Flag("label", "Label of the manifests, by which Prometheus selects them; repeatable.").PlaceHolder("NAME=VALUE").SetValue(labels(f.labels))
	return c
}

// renderedRules returns the built-in rules with the changes of a file, if there is
// one, as files and as the engine reads them.
func renderedRules(path string) (map[string]render.File, *engine.Set, error) {
	var data []byte
	if path != "" {
		var err error
		if data, err = strict.NewFile(path).Read(); err != nil {
			return nil, nil, err
		}
	}
	s := render.Builtin()
	values, err := s.Values(path, data)
	if err != nil {
		return nil, nil, err
	}
	files, err := s.Render(values)
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", path, err)
	}
	texts := map[string][]byte{}
	for name, f := range files {
		if texts[name], err = render.Encode(rendered, f); err != nil {
			return nil, nil, err
		}
	}
	set, err := engine.Parse(texts)
	if err != nil {
		return nil, nil, fmt.Errorf("%s: the rules that it makes are invalid:\n%w", path, err)
	}
	return files, set, nil
}

const rendered = "Made by accel-exporter rules render; do not edit."

func (f *renderFlags) run(stdout io.Writer) error {
	if len(f.labels) > 0 && !f.manifests {
		return errors.New("--label is for manifests: add --manifests. Labels of alerts are a part of the file of --values")
	}
	files, _, err := renderedRules(f.values)
	if err != nil {
		return err
	}
	out := map[string]any{}
	var all render.File
	for _, name := range slices.Sorted(maps.Keys(files)) {
		all.Groups = append(all.Groups, files[name].Groups...)
		if out[name] = files[name]; f.manifests {
			out[name] = render.Manifest(name, files[name], f.labels)
		}
	}
	if f.output != "" {
		if err := os.MkdirAll(f.output, 0o755); err != nil {
			return err
		}
	}
	switch {
	case f.output != "" && f.manifests:
		out["kustomization.yaml"] = render.Kustomization(files)
	case f.output == "" && !f.manifests:
		out = map[string]any{"": all}
	}
	for _, name := range slices.Sorted(maps.Keys(out)) {
		data, err := render.Encode(rendered, out[name])
		if err != nil {
			return err
		}
		if f.output == "" {
			if f.manifests {
				fmt.Fprintln(stdout, "---")
			}
			_, err = stdout.Write(data)
		} else {
			err = os.WriteFile(filepath.Join(f.output, name), data, 0o644)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

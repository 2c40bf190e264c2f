package incidents

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql/parser"
	"go.yaml.in/yaml/v3"

	"github.com/accel-exporter/accel-exporter/rules/render"
)

// Settings are the programs and options of a play. Paths are absolute.
type Settings struct {
	// Root is the root of the repository; templates and values of the rules,
	// the catalogue of health and the fixtures are taken from there.
	Root string
	// Exporter, Simulator and Library are the programs and the simulated
	// library that make build makes.
	Exporter, Simulator, Library string
	Alertmanager                 string
	Prometheus                   string // needed by incidents with one
	// Dir is where plays have their files.
	Dir string
	// Factor is what times are divided by; 1 leaves them.
	Factor int

	rules, catalogue string // files that all plays share
}

// Fixtures is the folder of all fixtures.
func (s *Settings) Fixtures() string { return filepath.Join(s.Root, "fixtures") }

// Prepare writes the rules and the catalogue with their times divided, and
// returns the alerts that the rules have as they are.
func (s *Settings) Prepare() (map[string]Alert, error) {
	alerts, err := Alerts(filepath.Join(s.Root, "rules"))
	if err != nil {
		return nil, err
	}
	if s.catalogue, err = s.shortCatalogue(); err != nil {
		return nil, err
	}
	s.rules, err = s.shortRules()
	return alerts, err
}

func (s *Settings) shortCatalogue() (string, error) {
	from := filepath.Join(s.Root, "internal", "judge", "health", "catalogue.yaml")
	data, err := os.ReadFile(from)
	if err != nil {
		return "", err
	}
	if data, err = ShortenCatalogue(from, data, s.Factor); err != nil {
		return "", err
	}
	path := filepath.Join(s.Dir, "catalogue.yml")
	return path, os.WriteFile(path, data, 0o644)
}

// watchdog is the name of an alert that always fires in a play: silence then
// says something.
const watchdog = "PlayWatchdog"

const watchdogRule = `groups:
  - name: play
    rules:
      - {alert: ` + watchdog + `, expr: vector(1), labels: {severity: info}}
`

// shortRules renders the rules with shorter thresholds, shortens the rest of their
// durations, and returns the pattern of the files.
func (s *Settings) shortRules() (string, error) {
	templates, err := s.templates()
	if err != nil {
		return "", err
	}
	from := filepath.Join(s.Root, "rules", "values.yml")
	data, err := os.ReadFile(from)
	if err != nil {
		return "", err
	}
	if data, err = ShortenValues(from, data, templates, s.Factor); err != nil {
		return "", err
	}
	short := &render.Source{Forms: render.Builtin().Forms}
	if err := yaml.Unmarshal(data, &short.Defaults); err != nil {
		return "", err
	}
	values, err := short.Values(from, nil)
	if err != nil {
		return "", err
	}
	files, err := short.Render(values)
	if err != nil {
		return "", err
	}
	rules := filepath.Join(s.Dir, "rules")
	if err := os.MkdirAll(rules, 0o755); err != nil {
		return "", err
	}
	for name, f := range files {
		data, err := render.Encode("shortened", f)
		if err != nil {
			return "", err
		}
		if data, err = ShortenRules(name, data, s.Factor); err != nil {
			return "", err
		}
		if err := os.WriteFile(filepath.Join(rules, name), data, 0o644); err != nil {
			return "", err
		}
	}
	return filepath.Join(rules, "*.yaml"), os.WriteFile(filepath.Join(rules, "play.yaml"), []byte(watchdogRule), 0o644)
}

// templates returns the text of all templates of rules.
func (s *Settings) templates() (string, error) {
	var all strings.Builder
	err := filepath.WalkDir(filepath.Join(s.Root, "rules", "templates"), func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		all.Write(data)
		return err
	})
	return all.String(), err
}

// Alerts returns the alerts of the rule files in a directory, by name.
func Alerts(dir string) (map[string]Alert, error) {
	paths, err := filepath.Glob(filepath.Join(dir, "*.yaml"))
	if err != nil {
		return nil, err
	}
	all := map[string]Alert{}
	for _, path := range paths {
		data, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		var file rulefmt.RuleGroups
		if err := yaml.Unmarshal(data, &file); err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		for _, g := range file.Groups {
			for _, r := range g.Rules {
				if r.Alert == "" {
					continue
				}
				wait, err := waits(time.Duration(r.For), r.Expr)
				if err != nil {
					return nil, fmt.Errorf("%s: %s: %w", path, r.Alert, err)
				}
				all[r.Alert] = Alert{Group: g.Name, For: wait}
			}
		}
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("%s: no alerts", dir)
	}
	return all, nil
}

// waits is how long an alert waits: by its for, or by
// the time since when the device has been active.
func waits(own time.Duration, expr string) (time.Duration, error) {
	if own != 0 {
		return own, nil
	}
	e, err := parser.ParseExpr(expr)
	if err != nil {
		return 0, err
	}
	var wait time.Duration
	parser.Inspect(e, func(n parser.Node, _ []parser.Node) error {
		if s, ok := n.(*parser.VectorSelector); ok && strings.HasSuffix(s.Name, ":since") {
			wait = max(wait, s.OriginalOffset)
		}
		return nil
	})
	return wait, nil
}

package incidents

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/promql/parser"
	"go.yaml.in/yaml/v3"
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
	// Dir is where plays have their files.
	Dir string
	// Factor is what times are divided by; 1 leaves them.
	Factor int

	// prepared are the files that all plays share.
	prepared prepared
}

type prepared struct{ rules, catalogue string }

// Fixtures is the folder of all fixtures.
func (s *Settings) Fixtures() string { return filepath.Join(s.Root, "fixtures") }

// Prepare writes the rules and the catalogue with their times divided, and
// returns the alerts that the rules have as they are.
func (s *Settings) Prepare(ctx context.Context) (map[string]Alert, error) {
	alerts, err := Alerts(filepath.Join(s.Root, "rules"))
	if err != nil {
		return nil, err
	}
	if s.prepared.catalogue, err = s.shortCatalogue(); err != nil {
		return nil, err
	}
	s.prepared.rules, err = s.shortRules(ctx)
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

// shortRules generates the rules with shorter thresholds, shortens what was
// made, and returns the pattern of the files.
func (s *Settings) shortRules(ctx context.Context) (string, error) {
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
	values, rules, manifests := filepath.Join(s.Dir, "values.yml"), filepath.Join(s.Dir, "rules"), filepath.Join(s.Dir, "manifests")
	if err := os.WriteFile(values, data, 0o644); err != nil {
		return "", err
	}
	for _, dir := range []string{rules, manifests} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return "", err
		}
	}
	cmd := exec.CommandContext(ctx, "go", "run", "./internal/gen/rules", "-values", values, "-rules", rules, "-manifests", manifests)
	cmd.Dir = s.Root
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("rulegen: %w: %s", err, out)
	}
	pattern := filepath.Join(rules, "*.yaml")
	paths, err := filepath.Glob(pattern)
	if err != nil {
		return "", err
	}
	for _, path := range paths {
		data, err := os.ReadFile(path)
		if err != nil {
			return "", err
		}
		if data, err = ShortenRules(path, data, s.Factor); err != nil {
			return "", err
		}
		if err := os.WriteFile(path, data, 0o644); err != nil {
			return "", err
		}
	}
	return pattern, os.WriteFile(filepath.Join(rules, "play.yaml"), []byte(watchdogRule), 0o644)
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
		var file struct {
			Groups []struct {
				Name  string `yaml:"name"`
				Rules []struct {
					Alert  string            `yaml:"alert"`
					Expr   string            `yaml:"expr"`
					For    string            `yaml:"for"`
					Labels map[string]string `yaml:"labels"`
				} `yaml:"rules"`
			} `yaml:"groups"`
		}
		if err := yaml.Unmarshal(data, &file); err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		for _, g := range file.Groups {
			for _, r := range g.Rules {
				if r.Alert == "" {
					continue
				}
				wait, err := waits(r.For, r.Expr)
				if err != nil {
					return nil, fmt.Errorf("%s: %s: %w", path, r.Alert, err)
				}
				all[r.Alert] = Alert{Severity: r.Labels["severity"], Group: g.Name, For: wait}
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
func waits(own, expr string) (time.Duration, error) {
	if own != "" {
		d, err := model.ParseDuration(own)
		return time.Duration(d), err
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

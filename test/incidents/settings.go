package incidents

import (
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/prometheus/prometheus/model/rulefmt"
	"go.yaml.in/yaml/v3"
)

// Settings are the programs and options of a play. Paths are absolute.
type Settings struct {
	// Root is the root of the repository; the rules, the catalogue of health and
	// the fixtures are taken from there.
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

// shortRules writes the rule files with their durations divided, and returns the
// pattern of the files.
func (s *Settings) shortRules() (string, error) {
	paths, err := filepath.Glob(filepath.Join(s.Root, "rules", "*.yaml"))
	if err != nil {
		return "", err
	}
	rules := filepath.Join(s.Dir, "rules")
	if err := os.MkdirAll(rules, 0o755); err != nil {
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
		if err := os.WriteFile(filepath.Join(rules, filepath.Base(path)), data, 0o644); err != nil {
			return "", err
		}
	}
	return filepath.Join(rules, "*.yaml"), os.WriteFile(filepath.Join(rules, "play.yaml"), []byte(watchdogRule), 0o644)
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
				all[r.Alert] = Alert{Group: g.Name, For: time.Duration(r.For), Severity: r.Labels["severity"]}
			}
		}
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("%s: no alerts", dir)
	}
	return all, nil
}

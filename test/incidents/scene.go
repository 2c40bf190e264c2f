package incidents

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/accel-exporter/accel-exporter/internal/sim"
)

// scene finds the scenario that an incident names, in the folder of all
// fixtures.
func scene(fixtures, name string) (*sim.Scenario, error) {
	own := filepath.Join(fixtures, "incidents", "nodes", name+".yaml")
	if _, err := os.Stat(own); err == nil {
		name = own
	}
	return sim.LoadScenario(os.DirFS(fixtures), name)
}

// compile makes the state that the incident begins with.
func (i *Incident) compile(fixtures string) (*sim.State, *sim.Scenario, error) {
	sc, err := scene(fixtures, i.Scenario)
	if err != nil {
		return nil, nil, fmt.Errorf("%s: scenario: %w", i.Name, err)
	}
	s, err := sc.Compile(os.DirFS(fixtures), sim.Options{})
	if err != nil {
		return nil, nil, fmt.Errorf("%s: scenario: %w", i.Name, err)
	}
	if i.DeviceFiles {
		s.WithDeviceFiles()
	}
	return s, sc, nil
}

// Rehearse does every step to the simulation in memory, without its times, and
// looks up every device that an expectation names: the error names the step
// cannot be done, or which device there is not.
func (i *Incident) Rehearse(fixtures string) error {
	s, _, err := i.compile(fixtures)
	if err != nil {
		return err
	}
	if _, err := i.resolve(s); err != nil {
		return err
	}
	for n, step := range i.Timeline {
		switch {
		case step.Inject != "":
			err = step.inject(s)
		case step.Clear != "":
			err = s.Clear(step.Clear)
		}
		if err != nil {
			return fmt.Errorf("%s: timeline[%d]: %s: %w", i.Name, n, &step, err)
		}
	}
	return nil
}

// resolve returns the incident with the devices of its patterns as labels have
// them.
func (i *Incident) resolve(s *sim.State) (*Incident, error) {
	out := *i
	var err error
	labels := func(given map[string]string) map[string]string {
		resolved := map[string]string{}
		for name, value := range given {
			if index, ok := strings.CutPrefix(value, "gpu "); ok && name == "device" {
				if value = s.SeenAs(index); value == index {
					err = fmt.Errorf("%s: %w: scenario %s has no gpu %s", i.Name, fs.ErrNotExist, i.Scenario, index)
				}
			}
			resolved[name] = value
		}
		return resolved
	}
	patterns := func(given []Pattern) (resolved []Pattern) {
		for _, p := range given {
			resolved = append(resolved, Pattern{p.Alert, labels(p.Labels)})
		}
		return resolved
	}
	out.Expect = nil
	for _, e := range i.Expect {
		e.Labels = labels(e.Labels)
		out.Expect = append(out.Expect, e)
	}
	out.Never, out.Allow = patterns(i.Never), patterns(i.Allow)
	return &out, err
}

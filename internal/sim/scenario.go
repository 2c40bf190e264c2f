package sim

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// Scenario is a parsed scenario file.
type Scenario struct {
	Name        string
	Description string
	// Missing names functions that NVML does not export, MissingDCGM those of
	// DCGM.
	Missing, MissingDCGM []string

	driver map[string]string
	cc     map[string]int
	gpus   []gpuEntry
	parts  map[string][]partEntry // by kind
	trees  []line                 // line and name
	inject []line                 // line and fault

	kubelet     bool // the key pods is present, possibly empty
	pods        []podEntry
	allocatable []deviceEntry
	cgroups     map[string]string
}

type gpuEntry struct {
	board     string
	count     int
	values    []line
	mig       []string
	migValues []line
	processes []process
	at        node
}

type process struct {
	pid, mib, mig, share int
	kind, name           string
}

// maxTrees is the most trees of one machine.
const maxTrees = 32

var driverStates = []string{"loaded", "unloaded", "mismatch"}

// ParseScenario parses a scenario strictly; every error has file, line and key.
func ParseScenario(file string, data []byte) (*Scenario, error) {
	root, err := parseYAML(file, data)
	if err != nil {
		return nil, err
	}
	sc := &Scenario{
		Name:   strings.TrimSuffix(filepath.Base(file), ".yaml"),
		driver: map[string]string{},
		cc:     map[string]int{},
	}
	var switches, cpus []partEntry
	err = root.fields(map[string]func(node) error{
		"switches":               parseParts("switch", "links", 256, &switches),
		"cpus":                   parseParts("cpu", "cores", 128, &cpus),
		"description":            toText(&sc.Description),
		"driver":                 sc.parseDriver,
		"confidential_computing": sc.parseCC,
		"missing_symbols":        sc.parseMissing,
		"gpus":                   func(n node) error { return n.items(sc.parseGPU) },
		"trees": func(n node) error {
			if len(n.Content) > maxTrees {
				return n.errorf("%d trees; a machine holds %d", len(n.Content), maxTrees)
			}
			return toPlaced(&sc.trees)(n)
		},
		"inject": toPlaced(&sc.inject),
		"pods":   sc.parsePods,
		"allocatable": func(n node) error {
			sc.kubelet = true
			return toDevices(&sc.allocatable)(n)
		},
		"cgroups": sc.parseCgroups,
	})
	sc.parts = map[string][]partEntry{"switch": switches, "cpu": cpus}
	if err == nil && sc.Description == "" {
		err = root.errorf("the key description is missing")
	}
	return sc, err
}

func (sc *Scenario) parseDriver(n node) error {
	known := map[string]func(node) error{}
	known["quirks"] = func(c node) error {
		return c.items(func(_ int, q node) error {
			if !slices.Contains(quirks, q.Value) {
				return q.errorf("want one of %s, found %q", strings.Join(quirks, ", "), q.Value)
			}
			sc.driver["quirks"] = strings.TrimSpace(sc.driver["quirks"] + " " + q.Value)
			return nil
		})
	}
	for _, key := range []string{"version", "branch", "nvml", "cuda", "state"} {
		known[key] = func(c node) error {
			var s string
			if err := toText(&s)(c); err != nil {
				return err
			}
			if key == "state" && !slices.Contains(driverStates, s) {
				return c.errorf("want one of %s, found %q", strings.Join(driverStates, ", "), s)
			}
			if key == "cuda" {
				version, err := cudaNumber(s)
				if err != nil {
					return c.errorf("%w", err)
				}
				s = version
			}
			sc.driver[key] = s
			return nil
		}
	}
	return n.fields(known)
}

// cudaNumber returns 13010 for 13.1, as nvmlSystemGetCudaDriverVersion does.
func cudaNumber(s string) (string, error) {
	major, minor, _ := strings.Cut(s, ".")
	a, err := strconv.Atoi(major)
	b, err2 := strconv.Atoi(minor)
	if err != nil || err2 != nil || a < 0 || b < 0 || a > 99 || b > 99 {
		return "", fmt.Errorf("want a CUDA version such as 13.0, found %q", s)
	}
	return strconv.Itoa(a*1000 + b*10), nil
}

func (sc *Scenario) parseCC(n node) error {
	known := map[string]func(node) error{}
	for _, key := range []string{"environment", "feature", "devtools"} {
		known[key] = func(c node) error {
			var v int
			err := toInt(&v, 0, 2)(c)
			sc.cc[key] = v
			return err
		}
	}
	return n.fields(known)
}

func (sc *Scenario) parseMissing(n node) error {
	return n.items(func(_ int, c node) error {
		var s string
		if err := toText(&s)(c); err != nil {
			return err
		}
		switch {
		case strings.HasPrefix(s, "nvml"):
			sc.Missing = append(sc.Missing, s)
		case strings.HasPrefix(s, "dcgm"):
			sc.MissingDCGM = append(sc.MissingDCGM, s)
		default:
			return c.errorf("want the name of a function of NVML or DCGM, found %q", s)
		}
		return nil
	})
}

func (sc *Scenario) parseGPU(_ int, n node) error {
	g := gpuEntry{count: 1, at: n}
	var load string
	err := n.fields(map[string]func(node) error{
		"board":  toText(&g.board),
		"count":  toInt(&g.count, 1, 64),
		"load":   func(c node) error { return parseLoad(&load, c) },
		"values": toValues(&g.values),
		"mig":    toTexts(&g.mig),
		"mig_load": func(c node) error {
			return c.items(func(i int, v node) error {
				var s string
				err := parseLoad(&s, v)
				g.migValues = append(g.migValues, line{strconv.Itoa(i), s})
				return err
			})
		},
		"processes": func(c node) error { return c.items(g.parseProcess) },
	})
	if load != "" {
		g.values = append(g.values, line{"load", load})
	}
	if err == nil && g.board == "" {
		err = n.errorf("the key board is missing")
	}
	sc.gpus = append(sc.gpus, g)
	return err
}

func parseLoad(to *string, n node) error {
	if err := toText(to)(n); err != nil {
		return err
	}
	if _, err := checkValue("load", *to); err != nil || strings.HasPrefix(*to, "error:") || *to == "model" {
		return n.errorf("want a load from 0 to 1 (%s), found %q", SignalHelp, *to)
	}
	return nil
}

func (g *gpuEntry) parseProcess(_ int, n node) error {
	p := process{mig: -1, share: 100, kind: "compute"}
	err := n.fields(map[string]func(node) error{
		"pid":        toInt(&p.pid, 1, 1<<22),
		"memory_mib": toInt(&p.mib, 0, 1<<22),
		"mig":        toInt(&p.mig, 0, 7),
		"share":      toInt(&p.share, 0, 100),
		"name":       toText(&p.name),
		"type": func(c node) error {
			if !slices.Contains([]string{"compute", "graphics", "mps"}, c.Value) {
				return c.errorf("want compute, graphics or mps, found %s", describe(c.Node))
			}
			p.kind = c.Value
			return nil
		},
	})
	if err == nil && p.pid == 0 {
		err = n.errorf("the key pid is missing")
	}
	g.processes = append(g.processes, p)
	return err
}

// LoadScenario loads a scenario by name from the fixtures folder, or by path.
func LoadScenario(fixtures fs.FS, name string) (*Scenario, error) {
	if strings.ContainsRune(name, '/') || strings.HasSuffix(name, ".yaml") {
		data, err := os.ReadFile(name)
		if err != nil {
			return nil, err
		}
		return ParseScenario(name, data)
	}
	file := "scenarios/" + name + ".yaml"
	data, err := fs.ReadFile(fixtures, file)
	if errors.Is(err, fs.ErrNotExist) {
		names, _ := ScenarioNames(fixtures)
		return nil, fmt.Errorf("no scenario %q; want a path or one of %s", name, strings.Join(names, ", "))
	}
	if err != nil {
		return nil, err
	}
	return ParseScenario(file, data)
}

// ScenarioNames lists the scenarios of the fixtures folder.
func ScenarioNames(fixtures fs.FS) ([]string, error) {
	files, err := fs.Glob(fixtures, "scenarios/*.yaml")
	for i, f := range files {
		files[i] = strings.TrimSuffix(filepath.Base(f), ".yaml")
	}
	return files, err
}

package sim

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// Scenario is a parsed scenario file.
type Scenario struct {
	Name        string `yaml:"-"`
	Description string
	// Missing names functions that NVML does not export, MissingDCGM functions
	// that DCGM does not export.
	Missing     []string `yaml:"-"`
	MissingDCGM []string `yaml:"-"`

	MissingSymbols []string `yaml:"missing_symbols"`
	Driver         struct {
		Version, Branch, NVML, CUDA, State string
		Quirks                             []string
	}
	GPUs   []gpuEntry
	Trees  []string
	Inject []string
	parts  `yaml:",inline"`

	Pods        []podEntry
	Allocatable map[string][]string

	root node
}

type gpuEntry struct {
	Board     string
	Count     *int
	Load      *string
	Values    map[string]string
	MIG       []string
	MIGLoad   []string `yaml:"mig_load"`
	Processes []process

	values []line // checked, with the load
}

type process struct {
	PID        int
	MemoryMiB  int `yaml:"memory_mib"`
	MIG, Share *int
	Type, Name string
}

// Bounds of a machine: of its trees, and of the GPUs that the libraries hold.
const (
	maxTrees = 32
	maxGPUs  = 64
)

var driverStates = []string{"loaded", "unloaded", "mismatch"}

// ParseScenario parses a scenario strictly; every error has file, line and key.
func ParseScenario(file string, data []byte) (*Scenario, error) {
	sc := &Scenario{Name: strings.TrimSuffix(filepath.Base(file), ".yaml")}
	var err error
	if sc.root, err = decode(file, data, sc); err != nil {
		return nil, err
	}
	return sc, sc.check()
}

func (sc *Scenario) check() error {
	var all []error
	if sc.Description == "" {
		all = append(all, sc.root.errorf("the key description is missing"))
	}
	all = append(all, sc.checkDriver())
	for i, name := range sc.MissingSymbols {
		switch {
		case strings.HasPrefix(name, "nvml"):
			sc.Missing = append(sc.Missing, name)
		case strings.HasPrefix(name, "dcgm"):
			sc.MissingDCGM = append(sc.MissingDCGM, name)
		default:
			all = append(all, sc.root.at("missing_symbols", i).errorf("want the name of a function of NVML or DCGM, found %q", name))
		}
	}
	total := 0
	for i := range sc.GPUs {
		all = append(all, sc.GPUs[i].check(sc.root.at("gpus", i)))
		total += or(sc.GPUs[i].Count, 1)
	}
	if total > maxGPUs {
		all = append(all, sc.root.at("gpus").errorf("%d GPUs; the libraries hold %d", total, maxGPUs))
	}
	if n := len(sc.Trees); n > maxTrees {
		all = append(all, sc.root.at("trees").errorf("%d trees; a machine holds %d", n, maxTrees))
	}
	return errors.Join(append(all, sc.parts.check(sc.root), checkPods(sc.root.at("pods"), sc.Pods, sc.Name), checkResources(sc.root.at("allocatable"), sc.Allocatable))...)
}

func (sc *Scenario) checkDriver() error {
	d, at := &sc.Driver, sc.root.at("driver")
	var all []error
	for i, q := range d.Quirks {
		all = append(all, at.at("quirks", i).oneOf(q, quirks))
	}
	all = append(all, at.at("state").oneOf(cmp.Or(d.State, "loaded"), driverStates))
	if d.CUDA != "" {
		// 13010 for 13.1, as nvmlSystemGetCudaDriverVersion returns it.
		major, minor, _ := strings.Cut(d.CUDA, ".")
		a, err := strconv.ParseUint(major, 10, 7)
		b, err2 := strconv.ParseUint(minor, 10, 7)
		if err != nil || err2 != nil {
			all = append(all, at.at("cuda").errorf("want a CUDA version such as 13.0, found %q", d.CUDA))
		}
		d.CUDA = strconv.FormatUint(a*1000+b*10, 10)
	}
	return errors.Join(all...)
}

func (g *gpuEntry) check(at node) error {
	all := []error{at.at("count").within(or(g.Count, 1), 1, maxGPUs)}
	if g.Board == "" {
		all = append(all, at.errorf("the key board is missing"))
	}
	values, err := checkValues(at.at("values"), g.Values)
	g.values, all = values, append(all, err)
	if g.Load != nil {
		g.values, all = append(g.values, line{"load", *g.Load}), append(all, checkLoad(at.at("load"), *g.Load))
	}
	for i, load := range g.MIGLoad {
		all = append(all, checkLoad(at.at("mig_load", i), load))
	}
	for i, p := range g.Processes {
		at := at.at("processes", i)
		all = append(all, at.at("pid").within(p.PID, 1, maxPID), at.at("memory_mib").within(p.MemoryMiB, 0, 1<<22), at.at("mig").within(or(p.MIG, 0), 0, 7),
			at.at("share").within(or(p.Share, 0), 0, 100), at.at("type").oneOf(cmp.Or(p.Type, "compute"), processTypes))
	}
	return errors.Join(all...)
}

func checkLoad(at node, load string) error {
	if !isLoad(load) {
		return at.errorf("want a load from 0 to 1 (%s), found %q", SignalHelp, load)
	}
	return nil
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
		return nil, fmt.Errorf("no scenario %q; want a path or one of %s", name, strings.Join(fixtureNames(fixtures, "scenarios/*.yaml"), ", "))
	}
	if err != nil {
		return nil, err
	}
	return ParseScenario(file, data)
}

// ScenarioNames lists the scenarios of the fixtures folder.
func ScenarioNames(fixtures fs.FS) []string { return fixtureNames(fixtures, "scenarios/*.yaml") }

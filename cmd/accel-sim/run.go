package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/alecthomas/kingpin/v2"

	"github.com/accel-exporter/accel-exporter/internal/sim"
)

func (c *command) addRun(app *kingpin.Application, actions map[string]func() error) {
	cmd := app.Command("run", "Set up a scenario and execute COMMAND with the flags appended that point an exporter to it: "+
		"--nvml.library, --path.sysfs, --path.procfs, --kernel-log.path, --podresources.socket and --path.pod-logs.")
	c.scenarioFlags(cmd)
	cmd.Flag("fuse", "Mount /sys and /proc of the simulation instead of writing them to files: reads fail and block as on a real machine. Needs root and /dev/fuse.").BoolVar(&c.fuse)
	c.podsFlag(cmd, "Serve the kubelet of a scenario that has pods; accel-sim stays for that until COMMAND ends. --no-pods: neither that nor the last two flags.")
	cmd.Flag("library", "Simulated library; `make -C fixtures/nvml` builds it.").Default("bin/sim/libnvidia-ml.so.1").StringVar(&c.library)
	cmd.Arg("command", "Command and its arguments, after --.").Required().StringsVar(&c.argv)
	actions[cmd.FullCommand()] = c.run

	cmd = app.Command("compile", "Set up a scenario and print the library to load.")
	c.scenarioFlags(cmd)
	c.podsFlag(cmd, "With --flags: also print those of the kubelet, which `accel-sim kubelet` serves.")
	flags := cmd.Flag("flags", "Print all flags that an exporter needs, one per line, instead of the library.").Bool()
	cmd.Flag("library", "Simulated library.").Default("bin/sim/libnvidia-ml.so.1").StringVar(&c.library)
	actions[cmd.FullCommand()] = func() error {
		if err := sim.Unclaim(c.state); err != nil {
			return err
		}
		library, err := c.setUp()
		if err != nil {
			return err
		}
		if *flags {
			library = strings.Join(c.exporterFlags(library, true), "\n")
		}
		fmt.Println(library)
		return nil
	}

	cmd = app.Command("scenarios", "List the scenarios.")
	actions[cmd.FullCommand()] = c.scenarios
	cmd = app.Command("state", "Print the state file.")
	actions[cmd.FullCommand()] = func() error {
		s, err := sim.Read(c.state)
		if err == nil {
			_, err = os.Stdout.Write(s.Bytes())
		}
		return err
	}
}

func (c *command) scenarioFlags(cmd *kingpin.CmdClause) {
	cmd.Flag("scenario", "Name of a scenario, or a path to one.").Default("h100-8").StringVar(&c.scenario)
	cmd.Flag("dev", "Also make device files, and point the exporter to them by --path.devfs. Needs CAP_MKNOD.").BoolVar(&c.dev)
	cmd.Flag("frozen", "Stop the simulated clock at this second: every value is constant.").PlaceHolder("SECONDS").StringVar(&c.frozen)
}

func (c *command) podsFlag(cmd *kingpin.CmdClause, help string) {
	cmd.Flag("pods", help).Default("true").BoolVar(&c.pods)
}

// exporterFlags are the flags that point an exporter to the simulation. Without a
// kubelet they turn off the search for pods: an exporter reports a path that does not
// exist as a mistake, and the default is the kubelet of the real machine.
func (c *command) exporterFlags(library string, kubelet bool) []string {
	flags := sim.ExporterFlags(c.state, library)
	switch {
	case !c.pods:
		return flags
	case !kubelet:
		return append(flags, "--podresources.socket=", "--path.pod-logs=")
	}
	return append(flags, sim.PodFlags(c.state)...)
}

// setUp writes the state and returns the library for the scenario.
func (c *command) setUp() (string, error) {
	fixtures, err := c.fixturesFS()
	if err != nil {
		return "", err
	}
	if c.state, err = filepath.Abs(c.state); err != nil {
		return "", err
	}
	sc, err := sim.LoadScenario(fixtures, c.scenario)
	if err != nil {
		return "", err
	}
	var o sim.Options
	if c.frozen != "" {
		t, err := strconv.ParseFloat(c.frozen, 64)
		if err != nil || t < 0 {
			return "", fmt.Errorf("--frozen: want seconds, found %q", c.frozen)
		}
		o.Frozen = &t
	}
	s, err := sc.Compile(fixtures, o)
	if err != nil {
		return "", err
	}
	library, err := filepath.Abs(c.library)
	if err != nil {
		return "", err
	}
	if c.fuse {
		s.MountedTree()
	}
	if c.dev {
		s.WithDeviceFiles()
	}
	if err := s.Install(c.state); err != nil {
		return "", err
	}
	if len(sc.MissingDCGM) > 0 {
		c.dcgm = c.state + ".lib"
		if err := sim.WithoutSymbolsIn(filepath.Join(filepath.Dir(library), dcgmLibrary), c.dcgm, sc.MissingDCGM); err != nil {
			return "", err
		}
	}
	if len(sc.Missing) == 0 {
		return library, nil
	}
	patched := c.state + ".libnvidia-ml.so.1"
	return patched, sim.WithoutSymbols(library, patched, sc.Missing)
}

func (c *command) run() error {
	if _, err := os.Stat(c.library); err != nil {
		return fmt.Errorf("%w; build it with `make -C fixtures/nvml OUT=$PWD/bin/sim`", err)
	}
	if err := sim.Claim(c.state); err != nil {
		return err
	}
	library, err := c.setUp()
	if err != nil {
		return err
	}
	program, err := exec.LookPath(c.argv[0])
	if err != nil && !errors.Is(err, exec.ErrDot) {
		return err
	}
	kubelet, err := sim.HasKubelet(c.state)
	if err != nil {
		return err
	}
	argv := append(c.argv, c.exporterFlags(library, kubelet)...)
	if err := c.setEnvironment(); err != nil {
		return err
	}
	fmt.Fprintf(os.Stderr, "accel-sim: scenario %s, state %s: %s\n", c.scenario, c.state, strings.Join(argv, " "))
	var services []service
	if c.fuse {
		services = append(services, sim.MountTree)
	}
	if kubelet && c.pods {
		services = append(services, sim.ServeKubelet)
	}
	return c.supervise(program, argv, services...)
}

// dcgmLibrary is the name by which programs load DCGM.
const dcgmLibrary = "libdcgm.so.4"

// setEnvironment sets the path of the state for the libraries, and the loader's
// search path. An NVML that is given by path is not searched.
func (c *command) setEnvironment() error {
	folder, err := filepath.Abs(filepath.Dir(c.library))
	if err != nil {
		return err
	}
	path := folder
	if c.dcgm != "" {
		path = c.dcgm + ":" + folder
	}
	if old := os.Getenv("LD_LIBRARY_PATH"); old != "" {
		path += ":" + old
	}
	return errors.Join(os.Setenv("ACCEL_SIM_STATE", c.state), os.Setenv("LD_LIBRARY_PATH", path))
}

func (c *command) scenarios() error {
	fixtures, err := c.fixturesFS()
	if err != nil {
		return err
	}
	for _, name := range sim.ScenarioNames(fixtures) {
		sc, err := sim.LoadScenario(fixtures, name)
		if err != nil {
			return err
		}
		fmt.Printf("%-17s %s\n", name, sc.Description)
	}
	return nil
}

// Command accel-sim runs a program against simulated accelerators and injects
// faults into them while it runs.
package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/alecthomas/kingpin/v2"

	"github.com/accel-exporter/accel-exporter/internal/config/strict/wording"
	"github.com/accel-exporter/accel-exporter/internal/sim"
)

func main() {
	err := run(os.Args[1:])
	if ended, ok := errors.AsType[*exec.ExitError](err); ok && ended.Exited() {
		os.Exit(ended.ExitCode()) // the program has reported the error
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "accel-sim: error:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	app := kingpin.New("accel-sim", "Simulated accelerators: run a program against them, inject faults.")
	app.HelpFlag.Short('h')
	app.UsageTemplate(kingpin.CompactUsageTemplate)
	app.UsageWriter(os.Stdout)
	c := command{}
	app.Flag("state", "State file of a simulation, which one run uses at a time.").Default(sim.DefaultPath()).StringVar(&c.state)
	app.Flag("fixtures", "Folder with scenarios and boards. By default searched from the working directory and the program upwards.").StringVar(&c.fixtures)
	actions := map[string]func() error{}
	c.addRun(app, actions)
	c.addInject(app, actions)
	c.addTree(app, actions)
	c.addKubelet(app, actions)
	args = guardNegative(args)
	name, err := app.Parse(args)
	if err != nil {
		return withAccepted(app, args, err)
	}
	return actions[name]()
}

// withAccepted adds to the error about an unknown command or fault which are accepted.
func withAccepted(app *kingpin.Application, args []string, err error) error {
	_, found, unknown := strings.Cut(err.Error(), "expected command but got ")
	if !unknown {
		return err
	}
	word, commands := "command", app.Model().Commands
	if context, _ := app.ParseContext(args); context != nil && context.SelectedCommand != nil {
		word, commands = "fault", context.SelectedCommand.Model().Commands
	}
	var names []string
	for _, c := range commands {
		names = append(names, c.Name)
	}
	meant := ""
	if near := wording.Nearest(strings.Trim(found, `"`), names, 1); len(near) > 0 {
		meant = " (did you mean " + near[0] + "?)"
	}
	return fmt.Errorf("unknown %s %s%s; accepted are %s", word, found, meant, strings.Join(names, ", "))
}

type command struct {
	state, fixtures, library, scenario string
	frozen                             string
	dcgm                               string // folder of a libdcgm without some functions
	argv                               []string
	fuse, dev, pods                    bool
}

// guardNegative allows `inject set temperature -1 0`: a number with a minus
// sign is an argument, not a flag.
func guardNegative(args []string) []string {
	inject := false
	for i, a := range args {
		inject = inject || a == "inject"
		if a == "--" {
			return args
		}
		if inject && len(a) > 1 && a[0] == '-' && a[1] >= '0' && a[1] <= '9' {
			return append(append(append([]string{}, args[:i]...), "--"), args[i:]...)
		}
	}
	return args
}

// fixturesFS searches the folder upwards from here, then from the program.
func (c *command) fixturesFS() (fs.FS, error) {
	if c.fixtures != "" {
		return os.DirFS(c.fixtures), nil
	}
	var starts []string
	if d, err := os.Getwd(); err == nil {
		starts = append(starts, d)
	}
	if exe, err := os.Executable(); err == nil {
		starts = append(starts, filepath.Dir(exe))
	}
	for _, d := range starts {
		for {
			at := filepath.Join(d, "fixtures")
			if _, err := os.Stat(filepath.Join(at, "scenarios")); err == nil {
				return os.DirFS(at), nil
			}
			up := filepath.Dir(d)
			if up == d {
				break
			}
			d = up
		}
	}
	return nil, errors.New("no fixtures folder here or above; give --fixtures=DIR")
}

package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"strings"

	"github.com/alecthomas/kingpin/v2"

	"github.com/accel-exporter/accel-exporter/internal/sim"
)

func (c *command) addInject(app *kingpin.Application, actions map[string]func() error) {
	inject := app.Command("inject", "Inject a fault into the simulated hardware while a program uses it.\n\n"+faultList())
	for i := range sim.Faults {
		c.addFault(inject, &sim.Faults[i], actions)
	}
	undo := app.Command("clear", "Clear the faults of one device or of all. For all, MIG layouts, pods and processes are those of the start again, and the driver is loaded again. A verdict with a duration remains: an AER error degrades a device for an hour.")
	device := undo.Arg("device", "Index, UUID or PCI address of a GPU, name or address of an FPGA card, or all.").Default("all").String()
	actions[undo.FullCommand()] = func() error {
		if err := sim.Running(c.state); err != nil {
			return err
		}
		return sim.Update(c.state, func(s *sim.State) error { return s.Clear(*device) })
	}
}

func (c *command) addFault(inject *kingpin.CmdClause, f *sim.Fault, actions map[string]func() error) {
	cmd := inject.Command(f.Name, sentence(f.Help))
	given := map[string]*string{}
	switches := map[string]*bool{}
	words := map[string]*[]string{}
	for _, a := range f.Args {
		arg := cmd.Arg(a.Name, sentence(a.Help))
		if !a.Optional {
			arg.Required()
		}
		if a.Rest {
			words[a.Name] = arg.Strings()
			continue
		}
		given[a.Name] = arg.String()
	}
	for _, fl := range f.Flags {
		flag := cmd.Flag(fl.Name, sentence(fl.Help))
		if fl.Switch() {
			switches[fl.Name] = flag.Default(fl.Default).Bool()
			continue
		}
		if fl.Default != "" {
			flag.Default(fl.Default)
		}
		given[fl.Name] = flag.String()
	}
	actions[cmd.FullCommand()] = func() error {
		values := map[string]string{}
		for name, v := range given {
			values[name] = *v
		}
		for name, v := range words {
			values[name] = strings.Join(*v, " ")
		}
		for name, v := range switches {
			values[name] = strconv.FormatBool(*v)
		}
		ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
		defer stop()
		if err := sim.Running(c.state); err != nil {
			return err
		}
		s, err := sim.Read(c.state)
		if err != nil {
			return err
		}
		line, within := s.Expect(f.Name, values) // of the device, which may be gone after the fault
		if err := f.Play(ctx, c.state, values); err != nil {
			return err
		}
		if line != "" {
			fmt.Printf("Within %s: %s\n", within, line)
		} else {
			fmt.Println("Done. accel-exporter who and the status page show what follows.")
		}
		return nil
	}
}

// faultList has one fault per line; the indent keeps kingpin from wrapping it.
func faultList() string {
	var b strings.Builder
	for _, f := range sim.Faults {
		fmt.Fprintf(&b, "    %-17s %s\n", f.Name, f.Help)
	}
	return b.String()
}

// sentence makes a help text from a line of the fault table.
func sentence(s string) string {
	if strings.HasPrefix(s, "nvml") {
		return s + "."
	}
	return strings.ToUpper(s[:1]) + s[1:] + "."
}

package sim

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Arg is a positional argument of a fault.
type Arg struct {
	Name, Help string
	Optional   bool
	Rest       bool // the last one, with all remaining words
	Default    string
}

// Flag is an option of a fault. One with the default true or false is a switch:
// --NAME and --no-NAME.
type Flag struct{ Name, Help, Default string }

// Switch reports whether the flag takes no value.
func (f Flag) Switch() bool { return f.Default == "true" || f.Default == "false" }

// Fault is a change of the simulated hardware.
type Fault struct {
	Name, Help string
	Args       []Arg
	Flags      []Flag
	apply      func(*State, input) error
}

// input has arguments and flags by name.
type input map[string]string

// on returns a switch; a switch that a fault does not have is on.
func (in input) on(name string) bool { return in[name] != "false" }

func (in input) whole(name string) (uint64, error) {
	v, err := strconv.ParseUint(in[name], 0, 64)
	if err != nil {
		return 0, fmt.Errorf("%s: want a whole number, found %q", name, in[name])
	}
	return v, nil
}

func (in input) duration(name string) (time.Duration, error) {
	if in[name] == "" {
		return 0, nil
	}
	d, err := time.ParseDuration(in[name])
	if err != nil || d < 0 {
		return 0, fmt.Errorf("%s: want a duration such as 30s, found %q", name, in[name])
	}
	return d, nil
}

// one looks up a word in a table; the error lists the accepted ones.
func (in input) one(name string, table []string) (int, error) {
	for i, w := range table {
		if w == in[name] {
			return i, nil
		}
	}
	if n, err := strconv.Atoi(in[name]); err == nil && n >= 0 && n < len(table) {
		return n, nil
	}
	return 0, fmt.Errorf("%s: want one of %s, found %q", name, strings.Join(table, ", "), in[name])
}

// Arguments and flags that several kinds of faults have.
var (
	deviceArg = Arg{Name: "device", Help: "index, UUID, PCI address, 4/0 for a MIG device, or all"}
	countFlag = Flag{Name: "count", Help: "how many", Default: "1"}
	logFlag   = Flag{Name: "log", Help: "also write it to the kernel log", Default: "true"}
)

// onGPUs applies f to each GPU of the argument device.
func (s *State) onGPUs(in input, f func(device) error) error {
	ds, err := s.devices(in["device"])
	if err != nil {
		return err
	}
	for _, d := range ds {
		if err := f(d); err != nil {
			return err
		}
	}
	return nil
}

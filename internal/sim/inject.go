package sim

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Faults are all faults of `accel-sim inject`, in the order of its help.
var Faults = slices.Concat(eventFaults, callFaults, valueFaults, driverFaults, busFaults, fpgaFaults, podFaults, kubeletFaults, amdFaults, dcgmFaults)

// Apply applies the fault with arguments and flags by name, with all its steps
// at once: see Play.
func (f *Fault) Apply(s *State, given map[string]string) error {
	if err := f.begin(s, given); err != nil {
		return err
	}
	return s.finish()
}

func (f *Fault) begin(s *State, given map[string]string) error {
	if f.nvidia() && s.gpus() == 0 && len(s.keys("card.")) > 0 {
		return fmt.Errorf("%s is a fault of NVIDIA GPUs, and this machine has none", f.Name)
	}
	in := input{}
	for _, a := range f.Args {
		in[a.Name] = a.Default
	}
	for _, fl := range f.Flags {
		in[fl.Name] = fl.Default
	}
	for k, v := range given {
		if _, ok := in[k]; ok && v != "" {
			in[k] = v
		}
	}
	for _, a := range f.Args {
		if in[a.Name] == "" && !a.Optional {
			return fmt.Errorf("%s: the argument %s is missing", f.Name, strings.ToUpper(a.Name))
		}
	}
	return f.apply(s, in)
}

// nvidia reports whether the fault is one of NVIDIA's GPUs, driver or libraries.
func (f *Fault) nvidia() bool {
	for _, prefix := range []string{"driver-", "quirk", "dcgm-"} {
		if strings.HasPrefix(f.Name, prefix) {
			return true
		}
	}
	return slices.Contains(f.Args, deviceArg) || slices.Contains(f.Args, anyDevice)
}

// Inject applies a fault given as words: its name, arguments and --flag=value.
func (s *State) Inject(words []string) error {
	if len(words) == 0 {
		return fmt.Errorf("no fault given; want one of %s", strings.Join(faultNames(), ", "))
	}
	f := findFault(words[0])
	if f == nil {
		return fmt.Errorf("unknown fault %q; want one of %s", words[0], strings.Join(faultNames(), ", "))
	}
	given, n := map[string]string{}, 0
	for _, w := range words[1:] {
		if flag, ok := strings.CutPrefix(w, "--"); ok {
			name, value, err := f.flag(flag)
			if err != nil {
				return err
			}
			given[name] = value
			continue
		}
		if n == len(f.Args) && n > 0 && f.Args[n-1].Rest {
			given[f.Args[n-1].Name] += " " + w
			continue
		}
		if n >= len(f.Args) {
			return fmt.Errorf("%s: too many arguments at %q", f.Name, w)
		}
		given[f.Args[n].Name] = w
		n++
	}
	return f.Apply(s, given)
}

// flag parses NAME=VALUE, or NAME and no-NAME of a switch.
func (f *Fault) flag(text string) (name, value string, err error) {
	name, value, valued := strings.Cut(text, "=")
	for _, fl := range f.Flags {
		switch {
		case fl.Name == name && fl.Switch() && !valued:
			return name, "true", nil
		case "no-"+fl.Name == name && fl.Switch() && !valued:
			return fl.Name, "false", nil
		case fl.Name == name:
			return name, value, nil
		}
	}
	return "", "", fmt.Errorf("%s has no flag --%s", f.Name, name)
}

func findFault(name string) *Fault {
	for i := range Faults {
		if Faults[i].Name == name {
			return &Faults[i]
		}
	}
	return nil
}

func faultNames() []string {
	var out []string
	for _, f := range Faults {
		out = append(out, f.Name)
	}
	return out
}

// Play applies a fault to the simulation at a state file, with arguments and
// flags by name, and returns when it is over: a reconfiguration takes its time.
// Where ctx ends first, the fault stays as it is.
func (f *Fault) Play(ctx context.Context, path string, given map[string]string) error {
	steps := []later{{0, func(s *State) error { return f.begin(s, given) }}}
	for len(steps) > 0 {
		next := steps[0]
		timer := time.NewTimer(next.after)
		select {
		case <-ctx.Done():
			timer.Stop()
			return ctx.Err()
		case <-timer.C:
		}
		err := Update(path, func(s *State) error {
			err := next.do(s)
			steps = append(steps[1:], s.later...)
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

package sim

import (
	"fmt"
	"os"
	"slices"
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

// on returns a switch; one that a fault does not have is on.
func (in input) on(name string) bool { return in[name] != "false" }

func (in input) integer(name string) (uint64, error) {
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

// Clear removes faults and lets values follow the scenario, for one GPU or FPGA
// card, or all. A MIG layout is restored. For all, pods and processes are those
// of the start, and the driver is loaded again, which ends the faults that
// persist until a reset. The kernel log remains.
func (s *State) Clear(deviceArg string) error {
	begun, err := s.beginning()
	if err != nil {
		return err
	}
	if deviceArg == "" || deviceArg == "all" {
		if begun != nil {
			for _, key := range s.keys("life.") {
				s.Set("touched."+strings.TrimPrefix(key, "life."), "1")
				s.Delete(key)
			}
		}
		for _, key := range s.keys("fault.") {
			s.Delete(key)
		}
		s.restore("")
		s.Set("driver.state", "loaded")
		for i := range s.gpus() {
			s.heal(i)
		}
		s.healKubelet()
		s.healDCGM()
		if begun != nil {
			for i := range s.gpus() {
				s.restoreMIG(begun, i)
			}
			for _, prefix := range []string{"gpu.", "pod.", "proc.", "allocatable.", "dra.", "driver.quirks", "driver.version", "driver.nvml", "dcgm."} {
				s.like(begun, prefix)
			}
		}
		if err := s.clearMachine(); err != nil {
			return err
		}
		if s.machine != nil {
			for _, c := range amdCards(s.machine.tree) {
				s.loadedAMD(c)
			}
		}
		if s.gpus() == 0 {
			return nil
		}
		s.log("NVRM: loading %s", s.driverBanner())
		return s.showDriver()
	}
	ds, err := s.devices(deviceArg)
	if err != nil {
		if card, clearErr := s.clearFunction(deviceArg); card || clearErr != nil {
			return clearErr
		}
		return err
	}
	for _, d := range ds {
		s.Delete("unhealthy." + s.deviceUUID(d))
		s.Delete("healthy." + s.deviceUUID(d))
		for _, key := range s.keys("fault.") {
			rec := s.Get(key)
			if attr(rec, "gpu") == strconv.Itoa(d.gpu) && (d.mig < 0 || attr(rec, "mig") == strconv.Itoa(d.mig)) {
				s.Delete(key)
			}
		}
		s.restore(d.prefix())
		if d.mig < 0 {
			s.restoreMIG(begun, d.gpu)
			s.heal(d.gpu)
			s.healDCGMFields(d.gpu)
		}
	}
	_, err = s.clearFunction(deviceArg)
	return err
}

// beginning returns the state of the start of the scenario, nil where no file
// has it.
func (s *State) beginning() (*State, error) {
	if s.path == "" {
		return nil, nil
	}
	data, err := os.ReadFile(beginningFile(s.path))
	if err != nil {
		return nil, err
	}
	return ParseState(data)
}

// restoreMIG restores the MIG layout of a GPU, if it has changed.
func (s *State) restoreMIG(begun *State, gpu int) {
	if begun == nil {
		return
	}
	prefix := fmt.Sprintf("gpu.%d.mig.", gpu)
	layout := func(s *State) (records []string) {
		for _, key := range s.keys(prefix) {
			if strings.Count(key, ".") == 3 {
				records = append(records, key+" "+s.Get(key))
			}
		}
		return records
	}
	if slices.Equal(layout(s), layout(begun)) {
		return
	}
	for _, key := range slices.Concat(s.keys(prefix), s.keys("touched."+prefix)) {
		s.Delete(key)
	}
	for _, key := range begun.keys(prefix) {
		s.Set(key, begun.Get(key))
	}
	s.addEvent(gpu, eventTypes["mig-config"], 0, "", "")
}

// like makes the keys with a prefix those of another state, except faults and
// values with a past, which must remain.
func (s *State) like(begun *State, prefix string) {
	kept := func(key string) bool {
		return strings.HasPrefix(s.Get(key), "@") || strings.HasSuffix(key, ".generation") || strings.HasSuffix(key, "_seq") ||
			slices.ContainsFunc(deviceFaults, func(f string) bool { return strings.HasSuffix(key, "."+f) })
	}
	for _, key := range s.keys(prefix) {
		if !begun.Has(key) && !kept(key) {
			s.Delete(key)
		}
	}
	for _, key := range begun.keys(prefix) {
		if !kept(key) {
			s.Set(key, begun.Get(key))
		}
	}
}

// deviceFaults are the keys of a GPU that are faults.
var deviceFaults = []string{"lost", "unnamed", "gone", "reset_required", "device_file"}

func (s *State) heal(gpu int) {
	for _, flag := range deviceFaults {
		s.Delete(fmt.Sprintf("gpu.%d.%s", gpu, flag))
	}
}

package main

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
)

// compatFlag turns on the families, flags and variables of dcgm-exporter.
const compatFlag = "compat.dcgm-exporter"

// foreignOptions are the options that only flags and variables of dcgm-exporter set.
type foreignOptions struct {
	noPods    bool
	podUID    bool
	podLabels []string // regular expressions
	oldNames  bool
	dashes    bool
	jobs      string // a directory
	// ignored are flags of dcgm-exporter without effect, each with the reason.
	ignored []string
}

// foreignFlag is one flag of dcgm-exporter, up to 4.8.4.
type foreignFlag struct {
	name    string
	short   []string
	env     string
	boolean bool
	// usual is the value without effect: dcgm-exporter's default, where this
	// exporter behaves the same.
	usual string
	// to translates the value into flags of this exporter. It is nil where
	// there is none; why is the reason.
	to  func(c *translation, value string) ([]string, error)
	why string
}

// fromDCGMExporter translates the flags and environment variables of
// dcgm-exporter into flags of this exporter, where args have compatFlag. A flag
// of this exporter overrides a flag of dcgm-exporter, which overrides a variable.
func fromDCGMExporter(args []string, table []foreignFlag, lookup func(string) (string, bool), exists func(string) bool) (translated []string, o foreignOptions, err error) {
	if !wantsCompat(args) {
		return args, o, nil
	}
	c := &translation{table: table, exists: exists, given: map[*foreignFlag]bool{}}
	var wrong []error
	own := c.split(args, &wrong)
	for i := range table {
		f := &table[i]
		if v, ok := lookup(f.env); f.env != "" && ok && v != "" && !c.given[f] {
			if err := c.take(f, f.env, v); err != nil {
				wrong = append(wrong, err)
			}
		}
	}
	if !c.podLabels {
		c.options.podLabels = nil
	} else if len(c.options.podLabels) == 0 {
		c.options.podLabels = []string{".*"}
	}
	for _, flag := range c.made {
		if name, _, _ := strings.Cut(flag, "="); !hasFlag(own, name) || repeatable[name] {
			own = append(own, flag)
		}
	}
	return own, c.options, errors.Join(wrong...)
}

// wantsCompat reports whether args have compatFlag, before they are parsed.
func wantsCompat(args []string) bool {
	on := false
	for _, a := range args {
		switch a {
		case "--" + compatFlag, "--" + compatFlag + "=true":
			on = true
		case "--no-" + compatFlag, "--" + compatFlag + "=false":
			on = false
		case "--":
			return on
		}
	}
	return on
}

// hasFlag reports whether args have a flag, or its opposite.
func hasFlag(args []string, name string) bool {
	name = "--" + strings.TrimPrefix(strings.TrimPrefix(name, "--"), "no-")
	return slices.ContainsFunc(args, func(a string) bool {
		a, _, _ = strings.Cut(a, "=")
		return a == name || a == "--no-"+name[2:]
	})
}

// repeatable are the flags that can be given several times.
var repeatable = map[string]bool{"--kubernetes.pod-label": true}

// translation is the state of translating one command line.
type translation struct {
	table   []foreignFlag
	exists  func(string) bool
	given   map[*foreignFlag]bool
	made    []string // flags of this exporter
	options foreignOptions
	// podLabels adds the labels of pods that options.podLabels selects, or all where
	// it is empty.
	podLabels bool
}

// split removes dcgm-exporter's flags from args and returns the rest. Like
// dcgm-exporter it accepts one dash or two, and values after = or a space.
func (c *translation) split(args []string, wrong *[]error) (own []string) {
	for i := 0; i < len(args); i++ {
		name, value, assigned := strings.Cut(args[i], "=")
		f := c.foreign(name)
		if f == nil {
			own = append(own, args[i])
			continue
		}
		switch {
		case assigned:
		case f.boolean:
			value = "true"
		case i+1 == len(args):
			*wrong = append(*wrong, fmt.Errorf("%s has no value", name))
			continue
		default:
			i++
			value = args[i]
		}
		c.given[f] = true
		if err := c.take(f, name, value); err != nil {
			*wrong = append(*wrong, err)
		}
	}
	return own
}

// foreign returns the flag of dcgm-exporter of that name, or nil.
func (c *translation) foreign(arg string) *foreignFlag {
	name := strings.TrimPrefix(strings.TrimPrefix(arg, "-"), "-")
	if name == arg || name == "" {
		return nil
	}
	for i := range c.table {
		if f := &c.table[i]; f.name == name || slices.Contains(f.short, name) {
			return f
		}
	}
	return nil
}

// take translates one flag; what is how it was given.
func (c *translation) take(f *foreignFlag, what, value string) error {
	if f.boolean {
		on, err := strconv.ParseBool(value)
		if err != nil {
			return fmt.Errorf("%s is %q; true or false is accepted", what, value)
		}
		value = strconv.FormatBool(on)
	}
	if value == f.usual {
		return nil
	}
	if f.to == nil {
		c.options.ignored = append(c.options.ignored, what+": "+f.why)
		return nil
	}
	flags, err := f.to(c, value)
	if err != nil {
		return fmt.Errorf("%s is %q; %w", what, value, err)
	}
	for _, flag := range flags {
		name, _, _ := strings.Cut(flag, "=")
		c.made = slices.DeleteFunc(c.made, func(was string) bool {
			before, _, _ := strings.Cut(was, "=")
			return was == flag || before == name && !repeatable[name] // the last one counts
		})
		c.made = append(c.made, flag)
	}
	return nil
}

// isFile reports whether there is a file to read.
func isFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}

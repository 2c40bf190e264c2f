package main

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/alecthomas/kingpin/v2"
	"github.com/prometheus/common/model"

	"github.com/accel-exporter/accel-exporter/internal/strict"
	"github.com/accel-exporter/accel-exporter/internal/strict/wording"
)

// duration is the value of a flag; it may be in days.
type duration time.Duration

// Set implements kingpin.Value.
func (d *duration) Set(s string) error {
	v, err := strict.ParseDuration(s)
	*d = duration(v)
	return err
}

// String implements kingpin.Value.
func (d *duration) String() string { return time.Duration(*d).String() }

// Get implements kingpin.Getter.
func (d *duration) Get() any { return time.Duration(*d) }

// within returns an error where the value of a flag is out of its range.
func within(flag string, value, low, high time.Duration) error {
	if value < low || value > high {
		return fmt.Errorf("--%s is %s; %s to %s is accepted", flag, value, model.Duration(low), model.Duration(high))
	}
	return nil
}

// labels is the value of a repeatable flag NAME=VALUE.
type labels map[string]string

// Set implements kingpin.Value.
func (l labels) Set(s string) error {
	name, value, found := strings.Cut(s, "=")
	switch _, again := l[name]; {
	case !found || name == "":
		return errors.New("NAME=VALUE is accepted")
	case again:
		return fmt.Errorf("each name is accepted once, and there is %s=%s already", name, l[name])
	}
	l[name] = value
	return nil
}

// String implements kingpin.Value.
func (l labels) String() string { return "" }

// IsCumulative makes the flag repeatable.
func (l labels) IsCumulative() bool { return true }

// given returns the last value of each flag in args, by name.
func given(app *kingpin.Application, args []string) map[string]string {
	values := map[string]string{}
	if context, err := app.ParseContext(args); err == nil {
		for _, e := range context.Elements {
			if flag, ok := e.Clause.(*kingpin.FlagClause); ok {
				values[flag.Model().Name] = *e.Value
			}
		}
	}
	return values
}

var (
	unknownFlag = regexp.MustCompile(`^unknown long flag '--(.*)'$`)
	unexpected  = regexp.MustCompile(`^(?:unexpected|expected command but got) (?:argument )?["']?(.*?)["']?$`)
	oneOf       = regexp.MustCompile(`(?i)one of:? \[?([^]']*?)\]?(?:, got .*)?$`)
)

// explain returns a mistake of the command line with the flag, its value, what is
// accepted, and the flag or command that resembles an unknown one.
func explain(app *kingpin.Application, args []string, err error) error {
	context, unparsed := app.ParseContext(args)
	all := app.Model()
	if m := unknownFlag.FindStringSubmatch(err.Error()); m != nil {
		return fmt.Errorf("there is no flag --%s%s", m[1], didYouMean("--", m[1], longFlags(all, context)))
	}
	if m := unexpected.FindStringSubmatch(err.Error()); m != nil {
		for _, f := range all.Flags {
			if slices.Contains(args, "--"+f.Name+"="+m[1]) {
				return fmt.Errorf("--%s is %q; --%[1]s and --no-%[1]s are accepted", f.Name, m[1])
			}
		}
		names := commandNames()
		for _, c := range all.Commands {
			names = append(names, c.Name)
		}
		return fmt.Errorf("unexpected argument %q%s", m[1], didYouMean("", m[1], names))
	}
	if unparsed != nil {
		return err
	}
	for _, e := range context.Elements {
		if flag, ok := e.Clause.(*kingpin.FlagClause); ok {
			if l, ok := flag.Model().Value.(labels); ok {
				clear(l)
			}
		}
	}
	for _, e := range context.Elements {
		flag, ok := e.Clause.(*kingpin.FlagClause)
		if !ok {
			continue
		}
		f := flag.Model()
		refused := f.Value.Set(*e.Value)
		if refused == nil {
			continue
		}
		return fmt.Errorf("--%s is %q; %s", f.Name, *e.Value, accepted(f, refused))
	}
	return err
}

// accepted describes the values of a flag that refused one.
func accepted(f *kingpin.FlagModel, refused error) string {
	if v, ok := f.Value.(kingpin.Getter); ok {
		switch v.Get().(type) {
		case time.Duration:
			return strict.Durations + " is accepted"
		case int, uint16:
			return "a whole number is accepted"
		}
	}
	for _, text := range []string{refused.Error(), f.Help} {
		if m := oneOf.FindStringSubmatch(text); m != nil {
			return strings.Join(strings.FieldsFunc(m[1], func(r rune) bool { return r == ',' || r == ' ' }), ", ") + " are accepted"
		}
	}
	return refused.Error()
}

func longFlags(app *kingpin.ApplicationModel, context *kingpin.ParseContext) []string {
	flags := slices.Clone(app.Flags)
	if context != nil && context.SelectedCommand != nil {
		flags = append(flags, context.SelectedCommand.Model().Flags...)
	}
	var names []string
	for _, f := range flags {
		if names = append(names, f.Name); f.IsBoolFlag() {
			names = append(names, "no-"+f.Name)
		}
	}
	return names
}

func didYouMean(prefix, found string, names []string) string {
	if near := wording.Nearest(found, names, 1); len(near) > 0 {
		return "; did you mean " + prefix + near[0] + "?"
	}
	return ""
}

package main

import (
	"errors"
	"fmt"
	"os"
	"regexp"
	"strings"
	"time"

	"github.com/alecthomas/kingpin/v2"
	"github.com/prometheus/common/model"

	"github.com/accel-exporter/accel-exporter/internal/config/strict"
	"github.com/accel-exporter/accel-exporter/internal/config/strict/wording"
)

// duration is the value of a flag; it may be in days.
type duration time.Duration

// Set implements kingpin.Value.
func (d *duration) Set(s string) error {
	v, err := strict.ParseDuration(s)
	if err != nil {
		return errors.New(strict.Durations + " is accepted")
	}
	*d = duration(v)
	return nil
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
	if !found || name == "" {
		return errors.New("NAME=VALUE is accepted")
	}
	l[name] = value // of a name that is given twice, the last
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

// explain returns a mistake of the command line with the flag and its value.
func explain(app *kingpin.Application, args []string, err error) error {
	context, unparsed := app.ParseContext(args)
	if unparsed != nil {
		return fmt.Errorf("%w%s", err, suggestion(app, err))
	}
	for _, e := range context.Elements {
		flag, ok := e.Clause.(*kingpin.FlagClause)
		if !ok {
			continue
		}
		f := flag.Model()
		if refused := f.Value.Set(*e.Value); refused != nil {
			if list, isEnum := strings.CutPrefix(refused.Error(), "enum value must be one of "); isEnum {
				list, _, _ = strings.Cut(list, ", got ")
				values := strings.Split(list, ",")
				return fmt.Errorf("--%s is %q; accepted are %s%s", f.Name, *e.Value, strings.Join(values, ", "), didYouMean("", *e.Value, values))
			}
			return fmt.Errorf("--%s is %q; %w", f.Name, *e.Value, refused)
		}
	}
	return err
}

// unknown matches kingpin's errors about an unknown flag and about an unknown command.
var unknown = regexp.MustCompile(`^(?:unknown long flag '--(no-)?(.+)'|expected command but got "(.+)")$`)

// suggestion names the flag or the command that an unknown one resembles.
func suggestion(app *kingpin.Application, err error) string {
	m := unknown.FindStringSubmatch(err.Error())
	if m == nil {
		return ""
	}
	model := app.Model()
	if flag := m[2]; flag != "" {
		var names []string
		for _, f := range model.Flags {
			names = append(names, f.Name)
		}
		return didYouMean("--"+m[1], flag, names)
	}
	var names []string
	for _, c := range model.Commands {
		names = append(names, c.Name)
	}
	return didYouMean("", m[3], names)
}

func didYouMean(prefix, found string, names []string) string {
	if near := wording.Nearest(found, names, 1); len(near) > 0 {
		return "; did you mean " + prefix + near[0] + "?"
	}
	return ""
}

// directory returns an error where the path of a flag is not a directory. A path
// that is not set is none.
func directory(flag, path string) error {
	if path == "" {
		return nil
	}
	info, err := os.Stat(path)
	if err != nil {
		return fmt.Errorf("--%s: %w", flag, err)
	}
	if !info.IsDir() {
		return fmt.Errorf("--%s: %s is not a directory", flag, path)
	}
	return nil
}

package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"text/template"

	"github.com/alecthomas/kingpin/v2"
	"github.com/prometheus/common/promslog"
	slogflag "github.com/prometheus/common/promslog/flag"
	"github.com/prometheus/common/version"

	"github.com/accel-exporter/accel-exporter/collector/dcgm"
)

// defaultAddress is the default of --web.listen-address.
const defaultAddress = ":19400"

// Values of --metrics.detail.
const (
	standardDetail = "standard"
	fullDetail     = "full"
)

// flags is the command line of the exporter.
type flags struct {
	webFlags
	sampleFlags
	stateDir    string
	configFile  string
	configCheck bool
	log         *promslog.Config
	judges      judgeFlags
	alerts      alertFlags
	traces      traceFlags
	bundles     bundleFlags
	compat      compatFlags
	given       map[string]string // values on the command line, by flag
}

// parseArgs returns the command that args choose.
func parseArgs(app *kingpin.Application, args []string, stdout, stderr io.Writer) (string, error) {
	done := false
	app.UsageWriter(stdout).ErrorWriter(stderr).Terminate(func(int) {
		done = true
		app.UsageWriter(io.Discard) // it goes on, and would print the help after a man page
	})
	app.HelpFlag.Short('h')
	chosen, err := app.Parse(args)
	if done {
		return "", errDone
	}
	if err != nil {
		return "", badUse{fmt.Errorf("%w, try --help", explain(app, args, err))}
	}
	return chosen, nil
}

func parseFlags(args []string, stdout, stderr io.Writer) (*flags, error) {
	app := kingpin.New("accel-exporter", `Exports the health and use of the accelerators of this node to Prometheus.

Commands, each with its own --help:

  who             devices, with their pods and processes
  top             the same, live
  alerts          alerts of the node's rules
  doctor          what this node needs and lacks
  bundle          evidence of a failed device
  rules check     check rule files
  baseline print  the installed configuration as a baseline
`)
	app.UsageTemplate(summaryTemplate).UsageFuncs(template.FuncMap{"Main": mainFlags})
	f := &flags{}
	return f, f.parse(app, args, stdout, stderr)
}

// summaryTemplate is --help, of one screen; --help-long has all flags.
const summaryTemplate = `usage: accel-exporter [<flags>] [<command>]

{{.App.Help|Wrap 0}}
Main flags; --help-long has all:
{{.Context.Flags|Main|FlagsToTwoColumns|FormatTwoColumns}}`

// mainFlags returns the flags of --help.
func mainFlags(all []*kingpin.FlagModel) []*kingpin.FlagModel {
	main := []string{
		"web.listen-address", "web.config.file", "config.file", "config.check", "baseline.file",
		"metrics.detail", "rules.builtin", "alertmanager.url", "version",
	}
	return slices.DeleteFunc(slices.Clone(all), func(f *kingpin.FlagModel) bool { return !slices.Contains(main, f.Name) })
}

// parse adds the flags of the exporter to app, and sets and checks them.
func (f *flags) parse(app *kingpin.Application, args []string, stdout, stderr io.Writer) (err error) {
	f.log = &promslog.Config{Writer: stderr}
	f.webFlags.add(app)
	f.sampleFlags.add(app)
	app.Flag("path.state", "Directory of a file with the identity of each device and the faults that only an event reported, so that a device keeps its name, its pod and its verdict after a restart of the exporter. By default nothing is written.").PlaceHolder("DIR").StringVar(&f.stateDir)
	app.Flag("config.file", "Configuration file (YAML). Reloaded on SIGHUP and when it changes.").PlaceHolder("FILE").StringVar(&f.configFile)
	app.Flag("config.check", "Check the configuration files and exit.").BoolVar(&f.configCheck)
	f.judges.add(app)
	f.alerts.add(app)
	f.traces.add(app)
	f.bundles.add(app)
	f.compat.add(app)
	slogflag.AddFlags(app, f.log)

	args, f.compat.foreign, err = fromDCGMExporter(args, foreignFlags, os.LookupEnv, isFile)
	if err != nil {
		return badUse{err}
	}
	app.Version(version.Print("accel-exporter")).VersionFlag.Short('V')
	if _, err := parseArgs(app, args, stdout, stderr); err != nil {
		return err
	}
	f.given = given(app, args)
	if err := f.check(); err != nil {
		return badUse{err}
	}
	return nil
}

// asked reports whether a flag is on the command line.
func (f *flags) asked(flag string) bool {
	_, given := f.given[flag]
	return given
}

// check returns every mistake in the values.
func (f *flags) check() error {
	var errs []error
	if f.asked("collector.dcgm") && *f.sources.enabled[dcgm.Name] && !f.sources.dcgm.on() {
		errs = append(errs, errors.New("--collector.dcgm needs --dcgm.address or --dcgm.embedded"))
	}
	errs = append(errs, f.webFlags.check(), f.sampleFlags.check(), f.alerts.check(), f.traces.check(), f.bundles.check(), f.compat.check())
	f.pods.contexts = f.traces.contexts()
	f.sources.nvmlRecords = f.bundles.directory != ""
	return errors.Join(errs...)
}

// warnings returns what flags ask for in vain: files that do not exist and may
// appear later, and flags that need another.
func (f *flags) warnings() []string {
	var all []string
	warn := func(format string, args ...any) { all = append(all, fmt.Sprintf(format, args...)) }
	for flag, path := range map[string]string{
		"nvml.library":        f.sources.nvmlLibrary,
		"kernel-log.path":     f.sources.kernelLog,
		"path.devicetree":     f.sources.deviceTree,
		"path.pod-logs":       f.pods.logs,
		"podresources.socket": f.pods.socket,
	} {
		if _, err := os.Stat(path); f.asked(flag) && path != "" && errors.Is(err, fs.ErrNotExist) {
			warn("--%s: %s does not exist yet", flag, path)
		}
	}
	slices.Sort(all)
	return all
}

package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/alecthomas/kingpin/v2"
	"github.com/prometheus/common/promslog"
	slogflag "github.com/prometheus/common/promslog/flag"
	"github.com/prometheus/common/version"
	"github.com/prometheus/exporter-toolkit/web"
	webflag "github.com/prometheus/exporter-toolkit/web/kingpinflag"

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
	all           *kingpin.Application
	web           *web.FlagConfig
	telemetryPath string
	maxRequests   int
	lifecycle     bool
	statusPage    bool
	release       bool
	releaseDir    string
	stateDir      string
	configFile    string
	configCheck   bool
	interval      time.Duration
	detail        string
	log           *promslog.Config
	sources       sourceFlags
	judges        judgeFlags
	pods          podFlags
	alerts        alertFlags
	traces        traceFlags
	compat        compatFlags
	given         map[string]string // values on the command line, by flag
}

// errDone is returned after --help or --version, which are printed already.
var errDone = fmt.Errorf("done")

// parseArgs returns the command that args choose.
func parseArgs(app *kingpin.Application, args []string, stdout, stderr io.Writer) (string, error) {
	done := false
	app.UsageWriter(stdout).ErrorWriter(stderr).UsageFuncs(manFuncs()).Terminate(func(int) {
		done = true
		app.UsageWriter(io.Discard) // it goes on, and would print the help after a man page
	})
	app.HelpFlag.Short('h')
	chosen, err := app.Parse(args)
	if done {
		return "", errDone
	}
	if err != nil {
		return "", fmt.Errorf("%w, try --help", explain(app, args, err))
	}
	return chosen, nil
}

func parseFlags(args []string, stdout, stderr io.Writer) (*flags, error) {
	app := kingpin.New("accel-exporter", `Exports the health and use of the accelerators of this node to Prometheus.

Other commands, each with its own --help: "who" prints the pods and processes on each device, "top" shows them live, "doctor" what this node needs and lacks, "series" the number of series of each metric family, "alerts" the alerts of its rules, "rules" checks rule files and prints alerts with their expressions, "baseline print" writes the installed configuration as a baseline.`)
	f := &flags{}
	return f, f.parse(app, args, stdout, stderr)
}

// parse adds the flags of the exporter to app, and sets and checks them.
func (f *flags) parse(app *kingpin.Application, args []string, stdout, stderr io.Writer) (err error) {
	f.all, f.log = app, &promslog.Config{Writer: stderr}
	f.web = webflag.AddFlags(app, defaultAddress)
	app.Flag("web.telemetry-path", "Path under which metrics are served.").Default("/metrics").StringVar(&f.telemetryPath)
	app.Flag("web.max-requests", "Largest number of concurrent scrapes; further ones get status 503.").Default("8").IntVar(&f.maxRequests)
	app.Flag("web.status-page", "Serve a page for people at /, with the state of sources, devices, alerts, events and allocations, and the flags and the configuration without secrets.").Default("true").BoolVar(&f.statusPage)
	app.Flag("web.enable-lifecycle", "Allow a reload of the configuration by POST /-/reload.").BoolVar(&f.lifecycle)
	app.Flag("web.enable-release", "Allow POST /-/release and /-/attach, which close and reopen every handle to a source's hardware.").BoolVar(&f.release)
	app.Flag("release.directory", "A file in this directory, named after a source, releases that source while it exists, or for the duration in it (\"10m\").").PlaceHolder("DIR").StringVar(&f.releaseDir)
	app.Flag("path.state", "Directory of a file with the identity of each device, so that one that does not answer keeps its name and its pod after a restart of the exporter. By default nothing is written.").PlaceHolder("DIR").StringVar(&f.stateDir)
	app.Flag("config.file", "Configuration file (YAML). Reloaded on SIGHUP and when it changes.").PlaceHolder("FILE").StringVar(&f.configFile)
	app.Flag("config.check", "Check the configuration files and exit.").BoolVar(&f.configCheck)
	app.Flag("collect.interval", "Time between two samples of a device.").Default("1s").SetValue((*duration)(&f.interval))
	app.Flag("metrics.detail", "How much of each metric family is served: standard, with all series of a device that needs attention, or full. docs/metrics.md has the part of each family.").Default(standardDetail).EnumVar(&f.detail, standardDetail, fullDetail)
	f.sources.add(app)
	f.judges.add(app)
	f.pods.add(app)
	f.alerts.add(app)
	f.traces.add(app)
	f.compat.add(app)
	slogflag.AddFlags(app, f.log)

	args, f.compat.ignored, err = fromDCGMExporter(args, os.LookupEnv, isFile)
	if err != nil {
		return err
	}
	app.Version(version.Print("accel-exporter")).VersionFlag.Short('V')
	if _, err := parseArgs(app, args, stdout, stderr); err != nil {
		return err
	}
	f.given = given(app, args)
	return f.check()
}

// asked reports whether a flag is on the command line.
func (f *flags) asked(flag string) bool {
	_, given := f.given[flag]
	return given
}

// check returns every mistake in the values.
func (f *flags) check() error {
	var errs []error
	bad := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if f.telemetryPath == "" || f.telemetryPath[0] != '/' || reservedPath(f.telemetryPath) {
		bad("--web.telemetry-path is %q; a path that begins with / and is not /, /device, /-/… or /debug/… is accepted", f.telemetryPath)
	}
	if strings.ContainsAny(f.telemetryPath, "{} ") {
		bad("--web.telemetry-path is %q; a path without braces and blanks is accepted", f.telemetryPath)
	}
	if f.maxRequests < 1 {
		bad("--web.max-requests is %d; 1 or more is accepted", f.maxRequests)
	}
	if f.asked("collector.dcgm") && *f.sources.enabled[dcgm.Name] && !f.sources.dcgm.on() {
		bad("--collector.dcgm needs --dcgm.address or --dcgm.embedded")
	}
	errs = append(errs, within("collect.interval", f.interval, 100*time.Millisecond, 10*time.Minute), f.sources.check(), f.pods.check(), f.alerts.check(), f.traces.check(), f.compat.check(&f.pods), directory("release.directory", f.releaseDir))
	f.pods.contexts = f.traces.contexts()
	return errors.Join(errs...)
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

// warnings returns what flags ask for in vain: files that do not exist and may
// appear later, and flags that need another.
func (f *flags) warnings() []string {
	var all []string
	warn := func(format string, args ...any) { all = append(all, fmt.Sprintf(format, args...)) }
	for flag, paths := range map[string][]string{
		"nvml.library":          {f.sources.nvmlLibrary},
		"kernel-log.path":       {f.sources.kernelLog},
		"kernel-log.fallback":   f.sources.kernelLogs,
		"path.devicetree":       {f.sources.deviceTree},
		"path.pod-logs":         {f.pods.logs},
		"podresources.socket":   {f.pods.socket},
		"kubernetes.token-file": {f.pods.tokenFile},
		"kubernetes.ca-file":    {f.pods.caFile},
		"compat.hpc-jobs":       {f.compat.jobs},
	} {
		for _, path := range paths {
			if _, err := os.Stat(path); f.asked(flag) && path != "" && errors.Is(err, fs.ErrNotExist) {
				warn("--%s: %s does not exist yet", flag, path)
			}
		}
	}
	switch asked := f.asked("otlp.pod-annotation"); {
	case asked && f.traces.endpoint == "":
		warn("--otlp.pod-annotation has no effect without --otlp.endpoint")
	case asked && !f.pods.api:
		warn("--otlp.pod-annotation has no effect without --kubernetes.pods")
	}
	slices.Sort(all)
	return all
}

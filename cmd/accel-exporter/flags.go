package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/alecthomas/kingpin/v2"
	"github.com/prometheus/common/promslog"
	slogflag "github.com/prometheus/common/promslog/flag"
	"github.com/prometheus/common/version"
	"github.com/prometheus/exporter-toolkit/web"
	webflag "github.com/prometheus/exporter-toolkit/web/kingpinflag"
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
	web           *web.FlagConfig
	telemetryPath string
	maxRequests   int
	lifecycle     bool
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
}

// errDone is returned after --help or --version, which are printed already.
var errDone = fmt.Errorf("done")

// parseArgs returns the command that args choose.
func parseArgs(app *kingpin.Application, args []string, stdout, stderr io.Writer) (string, error) {
	done := false
	app.UsageWriter(stdout).ErrorWriter(stderr).Terminate(func(int) { done = true })
	app.HelpFlag.Short('h')
	chosen, err := app.Parse(args)
	if done {
		return "", errDone
	}
	if err != nil {
		return "", fmt.Errorf("%w, try --help", err)
	}
	return chosen, nil
}

func parseFlags(args []string, stdout, stderr io.Writer) (_ *flags, err error) {
	app := kingpin.New("accel-exporter", `Exports the health and use of the accelerators of this node to Prometheus.

Other commands, each with its own --help: "who" prints the pods and processes on each device, "series" the number of series of each metric family, "rules" checks rule files and prints alerts with their causes, "baseline print" writes the installed configuration as a baseline.`)
	f := &flags{log: &promslog.Config{Writer: stderr}}

	f.web = webflag.AddFlags(app, defaultAddress)
	app.Flag("web.telemetry-path", "Path under which metrics are served.").Default("/metrics").StringVar(&f.telemetryPath)
	app.Flag("web.max-requests", "Largest number of concurrent scrapes; further ones get status 503.").Default("8").IntVar(&f.maxRequests)
	app.Flag("web.enable-lifecycle", "Allow a reload of the configuration by POST /-/reload.").BoolVar(&f.lifecycle)
	app.Flag("web.enable-release", "Allow POST /-/release and /-/attach, which close and reopen every handle to a source's hardware.").BoolVar(&f.release)
	app.Flag("release.directory", "A file in this directory, named after a source, releases that source while it exists, or for the duration in it (\"10m\").").PlaceHolder("DIR").StringVar(&f.releaseDir)
	app.Flag("path.state", "Directory of a file with the identity of each device, so that one that does not answer keeps its name and its pod after a restart of the exporter. By default nothing is written.").PlaceHolder("DIR").StringVar(&f.stateDir)
	app.Flag("config.file", "Configuration file (YAML). Reloaded on SIGHUP and when it changes.").PlaceHolder("FILE").StringVar(&f.configFile)
	app.Flag("config.check", "Check the configuration files and exit.").BoolVar(&f.configCheck)
	app.Flag("collect.interval", "Time between two samples of a device.").Default("1s").DurationVar(&f.interval)
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
		return nil, err
	}
	app.Version(version.Print("accel-exporter")).VersionFlag.Short('V')
	if _, err := parseArgs(app, args, stdout, stderr); err != nil {
		return nil, err
	}
	if f.interval < 100*time.Millisecond || f.interval > 10*time.Minute {
		return nil, fmt.Errorf("--collect.interval is %s; 100ms to 10m is accepted", f.interval)
	}
	if f.telemetryPath == "" || f.telemetryPath[0] != '/' || reservedPath(f.telemetryPath) {
		return nil, fmt.Errorf("--web.telemetry-path is %q; a path that begins with / and is not /, /-/… or /debug/… is accepted", f.telemetryPath)
	}
	if strings.ContainsAny(f.telemetryPath, "{} ") {
		return nil, fmt.Errorf("--web.telemetry-path is %q; a path without braces and blanks is accepted", f.telemetryPath)
	}
	if err := errors.Join(f.sources.check(), f.pods.check(), f.alerts.check(), f.traces.check(), f.compat.check(&f.pods)); err != nil {
		return nil, err
	}
	f.pods.contexts = f.traces.contexts()
	if f.releaseDir != "" {
		if info, err := os.Stat(f.releaseDir); err != nil {
			return nil, fmt.Errorf("--release.directory: %w", err)
		} else if !info.IsDir() {
			return nil, fmt.Errorf("--release.directory: %s is not a directory", f.releaseDir)
		}
	}
	if f.maxRequests < 1 {
		return nil, fmt.Errorf("--web.max-requests is %d; 1 or more is accepted", f.maxRequests)
	}
	return f, nil
}

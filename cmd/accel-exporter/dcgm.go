package main

import (
	"cmp"
	"errors"
	"fmt"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/alecthomas/kingpin/v2"

	"github.com/accel-exporter/accel-exporter/collector"
	"github.com/accel-exporter/accel-exporter/collector/dcgm"
	"github.com/accel-exporter/accel-exporter/internal/config"
)

// dcgmFlags are the flags of the source dcgm, which is disabled unless one of
// the first two is set.
type dcgmFlags struct {
	address        string
	embedded       bool
	watchInterval  time.Duration
	healthInterval time.Duration
	profiling      string
	// fields are the field ids of the last valid counters file, sorted.
	fields *atomic.Pointer[[]uint16]
}

func (f *dcgmFlags) add(app *kingpin.Application) {
	f.fields = &atomic.Pointer[[]uint16]{}
	f.fields.Store(new([]uint16))
	app.Flag("dcgm.address", "DCGM host engine to connect to: HOST:PORT, tcp://HOST:PORT, unix:///PATH or /PATH. It must be this node's.").PlaceHolder("ADDR").StringVar(&f.address)
	app.Flag("dcgm.embedded", "Run a host engine of DCGM in a worker process.").BoolVar(&f.embedded)
	f.addWorker(app)
}

// addWorker adds the flags that the exporter and its worker share.
func (f *dcgmFlags) addWorker(app *kingpin.Application) {
	app.Flag("dcgm.watch-interval", "Time between two updates of a field in the host engine.").Default("1s").SetValue((*duration)(&f.watchInterval))
	app.Flag("dcgm.health-interval", "Time between two health checks of DCGM.").Default("1m").SetValue((*duration)(&f.healthInterval))
	app.Flag("dcgm.profiling", "Read profiling counters: auto (on boards whose counters NVML does not have), on or off.").Default(dcgm.ProfilingAuto).EnumVar(&f.profiling, dcgm.ProfilingAuto, dcgm.ProfilingOn, dcgm.ProfilingOff)
}

// on reports whether the source is enabled.
func (f *dcgmFlags) on() bool { return f.address != "" || f.embedded }

// check rejects contradictory flags.
func (f *dcgmFlags) check() error {
	if f.address != "" && f.embedded {
		return errors.New("--dcgm.address and --dcgm.embedded are both set; one of them is accepted")
	}
	if f.address != "" {
		if _, err := dcgm.ParseAddress(f.address); err != nil {
			return fmt.Errorf("--dcgm.address: %w", err)
		}
	}
	return cmp.Or(
		within("dcgm.watch-interval", f.watchInterval, 100*time.Millisecond, 5*time.Minute),
		within("dcgm.health-interval", f.healthInterval, 10*time.Second, time.Hour),
	)
}

// dcgmArgs are the arguments of the worker.
func dcgmArgs(s *sourceFlags, _ *config.Config) []string {
	f := &s.dcgm
	args := []string{
		"--dcgm.watch-interval=" + f.watchInterval.String(),
		"--dcgm.health-interval=" + f.healthInterval.String(),
		"--dcgm.profiling=" + f.profiling,
	}
	if f.embedded {
		args = append(args, "--dcgm.embedded")
	} else {
		args = append(args, "--dcgm.address="+f.address)
	}
	if !*s.enabled["nvidia"] {
		args = append(args, "--alone")
	}
	for _, id := range *f.fields.Load() {
		args = append(args, "--field="+strconv.Itoa(int(id)))
	}
	return args
}

// workDCGM returns the source inside its worker.
func workDCGM(args []string, emit func(collector.Event)) (collector.Source, error) {
	var f dcgmFlags
	var o dcgm.Options
	app := kingpin.New("accel-exporter worker dcgm", "Reads DCGM for the exporter that started it.")
	f.addWorker(app)
	app.Flag("dcgm.address", "Host engine to read.").StringVar(&f.address)
	app.Flag("dcgm.embedded", "Run the host engine here.").BoolVar(&o.Embedded)
	app.Flag("alone", "No other source reads the node's GPUs.").BoolVar(&o.Alone)
	app.Flag("field", "Id of a field to read; repeatable.").Uint16ListVar(&o.Fields)
	if _, err := app.Parse(args); err != nil {
		return nil, err
	}
	if f.address != "" {
		var err error
		if o.Address, err = dcgm.ParseAddress(f.address); err != nil {
			return nil, err
		}
	}
	o.WatchInterval, o.HealthInterval, o.Profiling = f.watchInterval, f.healthInterval, f.profiling
	return dcgm.New(o, emit)
}

//go:build linux && cgo

package dcgm

import (
	"fmt"
	"io"
	"log"
	"time"

	"github.com/NVIDIA/go-dcgm/pkg/dcgm"

	"github.com/accel-exporter/accel-exporter/collector"
)

// engine is one connection to a host engine, with everything that depends on
// it.
type engine struct {
	options *Options
	lib     *library
	reader  reader
	emit    func(collector.Event)
	version string // the host engine's, empty where it reports none
	stop    func() // ends go-dcgm's connection
	calls   tally

	nextLook time.Time
	last     time.Time // of the latest round
	set      bool      // the clock was set since the round before
	there    inventory
	devices  map[entity]*device
	watches  []*watch       // whose rows are read each round
	taken    map[place]bool // values of this round
	profiler profiler
	health   health
	asked    map[uint16]*asked // the configured fields
}

// connect connects to a host engine, or starts the embedded one.
func connect(o *Options, emit func(collector.Event)) (*engine, error) {
	lib, err := loadLibrary()
	if err != nil {
		return nil, err
	}
	log.SetOutput(io.Discard) // go-dcgm's messages about itself
	e := &engine{options: o, lib: lib, emit: emit, taken: map[place]bool{}}
	e.asked = ask(o.Fields, &e.calls)
	if err := e.open(); err != nil {
		return nil, err
	}
	if has("dcgmHostengineVersionInfo") {
		info, err := dcgm.GetHostengineVersionInfo()
		switch c := lib.code(err); c {
		case ok:
			e.version = parseVersion(info.RawBuildInfoString)
		case versionMismatch:
			e.close()
			return nil, fmt.Errorf("%w: dcgmHostengineVersionInfo: %s: %s is DCGM %s, the host engine has another version", collector.ErrMismatch, c, soname, lib.version)
		default:
			e.calls.count("dcgmHostengineVersionInfo", c)
		}
	}
	return e, nil
}

// open starts the embedded host engine or connects to a remote one.
func (e *engine) open() error {
	if e.options.Embedded {
		stop, err := dcgm.Init(dcgm.Embedded)
		e.stop = stop
		return e.opened("dcgmStartEmbedded", err)
	}
	a := e.options.Address
	socket := "0"
	if a.network == unix {
		socket = "1"
	}
	stop, err := dcgm.Init(dcgm.Standalone, a.target, socket)
	e.stop = stop
	return e.opened("dcgmConnect_v2 "+a.String(), err)
}

// opened returns the error of a call that connects.
func (e *engine) opened(call string, err error) error {
	switch c := e.lib.code(err); {
	case c == versionMismatch:
		return fmt.Errorf("%w: %s: %s: %s is DCGM %s, the host engine has another version", collector.ErrMismatch, call, c, soname, e.lib.version)
	case c != ok:
		return fmt.Errorf("%w: %s: %s", collector.ErrEngine, call, c)
	case handle == 0:
		return fmt.Errorf("%w: go-dcgm has no handle", collector.ErrEngine)
	}
	return nil
}

// close destroys everything made at the host engine and ends the connection.
func (e *engine) close() {
	e.dropWatches()
	e.health.close(e)
	e.reader.close()
	if e.stop != nil {
		e.stop()
	}
}

// info is the reading of accel_dcgm_info.
func (e *engine) info() collector.Reading {
	mode := "standalone"
	if e.options.Embedded {
		mode = "embedded"
	}
	return collector.Reading{Metric: collector.DCGMInfo, Labels: []string{mode, e.lib.version, e.version}, Value: 1}
}

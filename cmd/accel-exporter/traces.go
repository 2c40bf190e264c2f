package main

import (
	"errors"

	"github.com/alecthomas/kingpin/v2"
)

// traceFlags is the command line of the traces of allocations.
type traceFlags struct {
	endpoint    string
	headersFile string
	caFile      string
	program     string
}

func (f *traceFlags) add(app *kingpin.Application) {
	app.Flag("otlp.endpoint", "Where traces of allocations are sent by OTLP: http://HOST:4318, https://…, grpc://HOST:4317 or grpcs://…. By default there are none.").PlaceHolder("URL").StringVar(&f.endpoint)
	app.Flag("otlp.headers-file", "Headers to send with them, as to log in (YAML: name: value).").PlaceHolder("FILE").StringVar(&f.headersFile)
	app.Flag("otlp.ca-file", "Certificates that may sign the receiver's. By default those of the system.").PlaceHolder("FILE").StringVar(&f.caFile)
	app.Flag("otlp.program", "The program that sends them, accel-traces. By default the one beside this executable.").PlaceHolder("PATH").StringVar(&f.program)
}

func (f *traceFlags) check() error {
	if f.endpoint != "" {
		return errors.New("--otlp.endpoint: this build sends no traces yet")
	}
	return nil
}

package main

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/alecthomas/kingpin/v2"

	"github.com/accel-exporter/accel-exporter/internal/config"
	"github.com/accel-exporter/accel-exporter/internal/judge/baseline"
)

// printPatience is how long `baseline print` waits for the slowest source.
const printPatience = time.Minute

// baselineCommand is `accel-exporter baseline print`: it samples this node as
// the exporter would and writes the result as a baseline.
func baselineCommand(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	f := &sampleFlags{interval: onceInterval}
	app := kingpin.New("accel-exporter baseline", "Baselines: approved configurations by hardware class.")
	app.Command("print", "Sample this node and write a baseline of its accelerators as they are.")
	f.sources.add(app)
	if _, err := parseArgs(app, args, stdout, stderr); err != nil {
		return err
	}
	if err := f.sources.check(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, printPatience)
	defer cancel()
	snap, err := newSampling(f, config.Default(), &pods{}, discardedLog).once(ctx)
	if err != nil {
		return err
	}
	text, err := baseline.Print(snap)
	if err != nil {
		return fmt.Errorf("%w: the hardware is read here, no running exporter is asked; give the flags of the exporter that point to it, such as --nvml.library and --path.sysfs", err)
	}
	_, err = stdout.Write(text)
	return err
}

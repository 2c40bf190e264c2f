package main

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"sync"
	"time"

	"github.com/alecthomas/kingpin/v2"

	"github.com/accel-exporter/accel-exporter/collector"
	"github.com/accel-exporter/accel-exporter/internal/config"
	"github.com/accel-exporter/accel-exporter/internal/judge/baseline"
)

// printPatience is how long `baseline print` waits for the slowest source.
const printPatience = time.Minute

// baselineCommand is `accel-exporter baseline print`: it samples this node as
// the exporter would and writes what it found as a baseline.
func baselineCommand(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	f := &flags{interval: time.Second}
	app := kingpin.New("accel-exporter baseline", "Baselines: approved configurations by hardware class.")
	app.Command("print", "Sample this node and write a baseline of its accelerators as they are.")
	f.sources.add(app)
	if _, err := parseArgs(app, args, stdout, stderr); err != nil {
		return err
	}
	if err := f.sources.check(); err != nil {
		return err
	}
	snap, err := sampleOnce(ctx, f)
	if err != nil {
		return err
	}
	text, err := baseline.Print(snap)
	if err != nil {
		return err
	}
	_, err = stdout.Write(text)
	return err
}

// sampleOnce samples until the Snapshot is settled.
func sampleOnce(ctx context.Context, f *flags) (*collector.Snapshot, error) {
	ctx, cancel := context.WithTimeout(ctx, printPatience)
	defer cancel()
	p := sampling(f, config.Default(), &pods{})
	p.addSources()
	defer p.begin()()
	return settled(ctx, p.sampler, p.pods)
}

// sampling returns a program that samples this node and serves nothing. Sources are
// added last, because they start goroutines.
func sampling(f *flags, cfg *config.Config, allocs *pods) *program {
	p := &program{flags: f, log: slog.New(slog.DiscardHandler), pods: allocs, workers: map[string]*collector.Process{}}
	p.config.Store(cfg)
	p.sampler = collector.NewSampler(settings(f, cfg))
	return p
}

// begin starts to sample. The function that it returns ends that.
func (p *program) begin() (end func()) {
	ctx, stop := context.WithCancel(context.Background())
	var loops sync.WaitGroup
	loops.Go(func() { _ = p.sampler.Run(ctx) }) // nobody reads its log
	loops.Go(func() { p.pods.run(ctx, func() { p.sampler.Wake("") }) })
	if p.page != nil {
		loops.Go(func() { p.page.Run(ctx) })
	}
	return func() { stop(); loops.Wait() }
}

// settled returns the Snapshot once every source has an outcome, and sources that
// are up have also read their slowly changing values.
func settled(ctx context.Context, s *collector.Sampler, allocs *pods) (*collector.Snapshot, error) {
	for seen := 0; ; {
		next := s.Next()
		snap := s.Latest()
		waiting := waitingFor(snap)
		if waiting == "" {
			waiting = allocs.waitingFor()
		}
		if waiting == "" {
			if seen++; seen > 3*len(specs) {
				return snap, nil
			}
		}
		select {
		case <-next:
		case <-ctx.Done():
			return nil, errors.New("not all sources answered: " + waiting)
		}
	}
}

// waitingFor names the first source without an outcome, or "".
func waitingFor(snap *collector.Snapshot) string {
	if snap == nil {
		return "nothing was sampled"
	}
	for _, s := range snap.Sources {
		if s.Reason == collector.SourceStarting {
			return s.Source
		}
	}
	return ""
}

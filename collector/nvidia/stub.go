//go:build !linux || !cgo

package nvidia

import (
	"context"
	"fmt"

	"github.com/accel-exporter/accel-exporter/collector"
)

// Source is the Source of a binary that cannot load NVML.
type Source struct{}

// New returns a Source that reads nothing.
func New(Options, func(collector.Event)) *Source { return &Source{} }

// Name implements collector.Source.
func (*Source) Name() string { return Name }

// Sample implements collector.Source.
func (*Source) Sample(context.Context) (collector.Round, error) {
	return collector.Round{}, fmt.Errorf("%w: this binary was built without cgo and cannot load NVML", collector.ErrAbsent)
}

// Close implements collector.Source.
func (*Source) Close() error { return nil }

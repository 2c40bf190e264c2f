//go:build linux && cgo

package nvidia

import (
	"fmt"
	"time"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"github.com/accel-exporter/accel-exporter/collector"
)

// maxErrors bounds how many devices the error of a Sample names.
const maxErrors = 8

// tally gathers the answers of one Sample.
type tally struct {
	devices []collector.Device
	counts  []collector.CallError
	errors  []error
	restart nvml.Return
}

// calls adds counts; there are few, so a list is searched.
func (t *tally) calls(list []collector.CallError) {
next:
	for _, e := range list {
		for i := range t.counts {
			if t.counts[i].Call == e.Call && t.counts[i].Code == e.Code {
				t.counts[i].Count += e.Count
				continue next
			}
		}
		t.counts = append(t.counts, e)
	}
}

func (t *tally) stale(ret nvml.Return) {
	if stale(ret) {
		t.restart = ret
	}
}

// fail adds why id could not be read; err may be nil.
func (t *tally) fail(id string, err error) {
	switch {
	case err == nil || len(t.errors) > maxErrors:
	case len(t.errors) == maxErrors:
		t.errors = append(t.errors, fmt.Errorf("and more devices"))
	default:
		t.errors = append(t.errors, fmt.Errorf("%s: %w", id, err))
	}
}

func idOf(known []collector.Device) string {
	if len(known) == 0 {
		return "GPU not yet identified"
	}
	return known[0].ID
}

// down adds devices that did not answer, by their last known identity.
func down(devices, known []collector.Device, reason string, sampled time.Time) []collector.Device {
	for _, d := range known {
		d.Down, d.Sampled = reason, sampled
		d.Readings = append([]collector.Reading(nil), d.Readings...)
		devices = append(devices, d)
	}
	return devices
}

// distinct keeps one device per ID: while the enumeration shifts, two places
// may name the same GPU. The one that answered wins.
func distinct(devices []collector.Device) []collector.Device {
	kept := devices[:0]
next:
	for _, d := range devices {
		for i := range kept {
			if kept[i].ID == d.ID {
				if kept[i].Down != "" && d.Down == "" {
					kept[i] = d
				}
				continue next
			}
		}
		kept = append(kept, d)
	}
	return kept
}

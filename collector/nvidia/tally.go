//go:build linux && cgo

package nvidia

import (
	"fmt"
	"slices"
	"time"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"github.com/accel-exporter/accel-exporter/collector"
)

// maxErrors bounds the number of devices that the error of a Sample names.
const maxErrors = 8

// tally collects the answers of one Sample.
type tally struct {
	devices []collector.Device
	// mig: a GPU is in MIG mode. direct are the positions in devices of GPUs with
	// an NVLink that is down and may lead to that GPU.
	mig    bool
	direct []int
	counts []collector.CallError
	errors []error
	// restart is the return code by which the driver goroutine found the driver
	// gone.
	restart nvml.Return
	// unlisted is a GPU that only another process will list.
	unlisted string
	// answers is the number of GPUs that have answered. doubts of them report
	// that the driver is gone, by the return code doubt.
	answers, doubts int
	doubt           nvml.Return
}

// calls adds counts. They are few, so a linear search is enough.
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

// stale counts the report of one GPU that the driver is gone.
func (t *tally) stale(a gpuAnswer) {
	if len(a.devices) == 0 && a.down == "" {
		return // no GPU has this index
	}
	t.answers++
	if a.stale != nvml.SUCCESS {
		t.doubts, t.doubt = t.doubts+1, a.stale
	}
}

// gone is why the library must be loaded again, or SUCCESS. The driver
// goroutine or every GPU that answers must report it; one GPU is not enough.
func (t *tally) gone() nvml.Return {
	if t.restart == nvml.SUCCESS && t.doubts == t.answers {
		return t.doubt
	}
	return t.restart
}

// fail adds the reason why id could not be read; err may be nil.
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

// down adds devices that did not answer, with their last known identity.
func down(devices, known []collector.Device, reason string, sampled time.Time) []collector.Device {
	for _, d := range known {
		d.Down, d.Sampled = reason, sampled
		d.Readings = append([]collector.Reading(nil), d.Readings...)
		devices = append(devices, d)
	}
	return devices
}

// distinct keeps one device per ID. While the enumeration shifts, two indexes
// may name the same GPU; the device that answered is kept.
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

// dropLinksToMIG drops links that are down and may lead to a GPU in MIG mode: NVML
// returns a working one as down (NVIDIA bug 200682374; DCGM ignores them too).
func (t *tally) dropLinksToMIG() {
	if !t.mig {
		return
	}
	for _, i := range t.direct {
		d := &t.devices[i]
		// The readings are shared with later rounds, in which MIG may be off.
		d.Readings = slices.DeleteFunc(slices.Clone(d.Readings), func(r collector.Reading) bool {
			return r.Metric == collector.NVLinkUp && r.Value == 0
		})
	}
}

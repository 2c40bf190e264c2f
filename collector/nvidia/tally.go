//go:build linux && cgo

package nvidia

import (
	"fmt"

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

//go:build linux && cgo

package nvidia

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"github.com/accel-exporter/accel-exporter/collector"
)

// callRecords reads Common Platform Error Records (CPER), which drivers from R615 have. The
// position in them belongs to the caller, so no other program loses a record.
var callRecords = function("nvmlSystemGetCPER_v1")

// maxRecords bounds the records of a GPU that are read at once; more are read later.
const maxRecords = 16

// recordPause is the shortest time between two reads of a GPU.
const recordPause = time.Second

// records reads the error records of GPUs on its own goroutine: a call that does not
// return costs only them.
type records struct {
	*events
	gpus map[string]*recordsOf // by UUID
}

// recordsOf are the records of a GPU that were read. A GPU without records is no reason
// not to read the records of another one.
type recordsOf struct {
	asker
	cursor nvml.CPERCursor_v1
	asked  time.Time
	begun  bool // the records from before the exporter are read
}

// readRecords requests the records of a GPU: after an event, and with its slow readings,
// so that a suspended GPU is not woken.
func (e *events) readRecords(gpu string) {
	if !strings.HasPrefix(gpu, "GPU-") {
		return // a name for a GPU that was never identified
	}
	select {
	case e.recorded <- gpu:
	default: // it is requested again
	}
}

func (r *records) run() {
	for {
		select {
		case gpu := <-r.recorded:
			of := r.of(gpu)
			r.read(gpu, of)
			r.publish(&of.asker)
		case <-r.quit:
			return
		}
	}
}

// of returns what was read of a GPU.
func (r *records) of(gpu string) *recordsOf {
	of := r.gpus[gpu]
	if of == nil {
		of = &recordsOf{
			asker:  newAsker(r.lib, new(round)),
			cursor: nvml.CPERCursor_v1{CperTypeMask: uint32(nvml.CPER_ACCESS_TYPE_GPU), Handle: uint64(nvml.CPER_CURSOR_HANDLE_INIT)},
		}
		for i := range min(len(gpu), len(of.cursor.Uuid)-1) {
			of.cursor.Uuid[i] = int8(gpu[i])
		}
		r.gpus[gpu] = of
	}
	return of
}

// read emits the records of a GPU since the previous read.
func (r *records) read(gpu string, of *recordsOf) {
	of.now = time.Now()
	if of.now.Sub(of.asked) < recordPause {
		return // many events at once
	}
	of.asked = of.now
	buffer := make([]byte, collector.MaxRecord)
	var pin runtime.Pinner
	pin.Pin(&buffer[0])
	defer pin.Unpin()
	for range maxRecords {
		answer := &nvml.GetCPER_v1{Cursor: of.cursor, Buffer: &buffer[0], BufferSize: uint32(len(buffer))}
		if !do(&of.asker, callRecords, func() nvml.Return { return r.lib.api.SystemGetCPER_v1(answer) }) {
			return
		}
		of.cursor = answer.Cursor
		size := min(int(answer.BufferSize), len(buffer))
		if size == 0 {
			of.begun = true
			return
		}
		record := slices.Clone(buffer[:size])
		r.emit(collector.Event{
			Time: of.now, Source: Name, Device: gpu, Kind: collector.EventErrorRecord, Sub: recordSeverity(record), Past: !of.begun,
			Detail: fmt.Sprintf("CPER, %d bytes", size), Record: record,
		})
	}
}

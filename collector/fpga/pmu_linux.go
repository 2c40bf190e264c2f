package fpga

import (
	"encoding/binary"
	"fmt"
	"io"
	"unsafe"

	"golang.org/x/sys/unix"
)

// systemPerf is the kernel's perf. It requires CAP_PERFMON, or a
// perf_event_paranoid of 0.
type systemPerf struct{}

func (systemPerf) open(unit uint32, config uint64, cpu int) (perfCounter, error) {
	attr := unix.PerfEventAttr{Type: unit, Config: config, Size: uint32(unsafe.Sizeof(unix.PerfEventAttr{}))}
	fd, err := unix.PerfEventOpen(&attr, -1, cpu, -1, unix.PERF_FLAG_FD_CLOEXEC)
	if err != nil {
		return nil, err
	}
	return perfFile(fd), nil
}

// perfFile is the descriptor of a counter.
type perfFile int

func (f perfFile) read() (uint64, error) {
	var b [8]byte
	for {
		n, err := unix.Read(int(f), b[:])
		switch {
		case err == unix.EINTR:
		case err != nil:
			return 0, err
		case n != len(b):
			return 0, fmt.Errorf("%d bytes: %w", n, io.ErrUnexpectedEOF)
		default:
			return binary.NativeEndian.Uint64(b[:]), nil
		}
	}
}

func (f perfFile) close() { unix.Close(int(f)) }

//go:build !linux

package fpga

import (
	"errors"
	"io"
)

// systemPerf and openUevents exist on Linux only.
type systemPerf struct{}

var errLinux = errors.New("only on Linux")

func (systemPerf) open(uint32, uint64, int) (perfCounter, error) { return nil, errLinux }

func openUevents() (io.ReadCloser, error) { return nil, errLinux }

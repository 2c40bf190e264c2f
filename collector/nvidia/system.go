//go:build linux && cgo

package nvidia

import (
	"slices"
	"strconv"
	"time"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"github.com/accel-exporter/accel-exporter/collector"
)

var (
	callDriverVersion = define(call{name: "nvmlSystemGetDriverVersion", vital: true})
	callDriverBranch  = function("nvmlSystemGetDriverBranch")
	callCUDAVersion   = function("nvmlSystemGetCudaDriverVersion_v2")
	callCUDAOwn       = function("nvmlSystemGetCudaDriverVersion")
	callCount         = define(call{name: "nvmlDeviceGetCount_v2", versions: []string{"nvmlDeviceGetCount"}, vital: true})
)

// system reads the values that belong to the driver and to no GPU.
type system struct {
	asker
	lib *library

	nextVersions time.Time
	versions     []collector.Reading
	// bound are the PCI functions that the driver was bound to when NVML listed
	// so many GPUs.
	bound  map[string]bool
	listed int
}

// driverAnswer is one round of the system.
type driverAnswer struct {
	count   int
	counted bool
	node    []collector.Reading
	calls   []collector.CallError
	// stale: the driver has been replaced.
	stale nvml.Return
	// unlisted is a GPU that the library will not list.
	unlisted string
	err      error
}

func (s *system) read(now time.Time) (a driverAnswer) {
	s.now = now
	functions := bound(s.lib.sysfs)
	a.count, a.counted = ask(&s.asker, callCount, s.lib.api.DeviceGetCount)
	if !now.Before(s.nextVersions) {
		s.nextVersions = now.Add(identityInterval)
		if !s.readVersions() {
			s.nextVersions, a.stale = time.Time{}, s.stale
		}
	}
	if a.counted {
		a.unlisted = s.follow(functions, a.count)
	} else {
		a.stale = s.stale
	}
	a.node = slices.Clone(s.versions)
	a.calls, a.err = s.take()
	return a
}

// follow returns the address of a GPU that was bound to the driver since NVML
// was initialized and is not in its list. A GPU of another container is not in
// the list either, but it was bound before.
func (s *system) follow(functions map[string]bool, count int) string {
	if s.bound != nil && count <= s.listed {
		for address := range functions {
			if !s.bound[address] {
				return address
			}
		}
	}
	s.bound, s.listed = functions, count
	return ""
}

func (s *system) readVersions() bool {
	s.versions = nil
	driver, ok := ask(&s.asker, callDriverVersion, s.lib.api.SystemGetDriverVersion)
	if !ok {
		return false
	}
	library, _ := ask(&s.asker, callNVMLVersion, s.lib.api.SystemGetNVMLVersion)
	branch, _ := ask(&s.asker, callDriverBranch, s.lib.api.SystemGetDriverBranch)
	cuda, ok := ask(&s.asker, callCUDAVersion, s.lib.api.SystemGetCudaDriverVersion_v2)
	if !ok {
		// Version 2 needs libcuda, which a container may not have.
		cuda, ok = ask(&s.asker, callCUDAOwn, s.lib.api.SystemGetCudaDriverVersion)
	}
	cudaVersion := ""
	if ok && cuda > 0 {
		cudaVersion = strconv.Itoa(cuda/1000) + "." + strconv.Itoa(cuda%1000/10)
	}
	var d collector.Device
	d.Set(collector.DriverInfo, 1, "nvidia", text(driver), text(cString(branch.Branch[:])), text(library), cudaVersion)
	s.versions = d.Readings
	return true
}

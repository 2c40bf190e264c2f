package allocation

import (
	"github.com/accel-exporter/accel-exporter/podmap"
	"github.com/accel-exporter/accel-exporter/podmap/kube"
	"github.com/accel-exporter/accel-exporter/podmap/proc"
)

// Options are the inputs of a Judge beside the Snapshot. A nil input is
// unknown. None of the functions may block.
type Options struct {
	// Map returns the allocations, and Status the state of their Watcher.
	Map    func() *podmap.Map
	Status func() podmap.Status
	// Refresh requests a new list from the kubelet, because devices have
	// changed.
	Refresh func()
	// Claimed returns what a DRA driver publishes of a device, if its
	// ResourceSlice is known.
	Claimed func(driver, pool, device string) podmap.SliceDevice
	// Meta returns the pods of the API server, if it is configured.
	Meta func() *kube.Map
	// Proc finds the pods of processes. Only the Judge uses it.
	Proc *proc.Map
	// PodDirs knows the pods of UIDs. It is asked only while there is a pod without a
	// name.
	PodDirs *proc.PodDirs
}

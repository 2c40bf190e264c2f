package sim

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
)

// spoilDevice makes a device plugin report a device as unhealthy, or healthy,
// whatever its state.
func spoilDevice(healthy bool) func(*State, input) error {
	return func(s *State, in input) error {
		arg := in["device"]
		if ds, err := s.devices(arg); err == nil {
			for _, d := range ds {
				s.call(s.deviceUUID(d), healthy)
			}
			return nil
		}
		h, err := s.reference(arg)
		if err != nil {
			return err
		}
		s.call(h.id, healthy)
		return nil
	}
}

// call sets the health of a device that the device plugin reports.
func (s *State) call(id string, healthy bool) {
	now, before := "unhealthy.", "healthy."
	if healthy {
		now, before = before, now
	}
	s.Set(now+id, "1")
	s.Delete(before + id)
}

// passing are the Xids that NVIDIA's device plugin attributes to the
// application (k8s-device-plugin, internal/rm/health.go). After any other it
// reports the device as unhealthy until it is restarted.
var passing = []uint64{13, 31, 43, 45, 68, 109}

// pluginSees reports a Xid to the device plugin.
func (s *State) pluginSees(d device, code uint64) {
	if s.Has("kubelet") && !slices.Contains(passing, code) && !s.Has("healthy."+s.deviceUUID(d)) {
		s.call(s.deviceUUID(d), false)
	}
}

// stopPlugin ends the device plugin of some resources. The kubelet withdraws its
// devices at once; existing allocations remain.
func stopPlugin(s *State, in input) error {
	offered := s.allocatable()
	for resource := range offered {
		if ok, err := path.Match(in["resource"], resource); err == nil && ok {
			s.Set(pluginDown+in["resource"], "1")
			return nil
		}
	}
	return fmt.Errorf("no device plugin offers %q; offered are %s", in["resource"], strings.Join(slices.Sorted(maps.Keys(offered)), ", "))
}

// pluginDown is the prefix of the keys of resources whose plugin is down.
const pluginDown = "plugin_down."

// pluginIsDown reports whether the plugin of a resource is down.
func (s *State) pluginIsDown(resource string) bool {
	return slices.ContainsFunc(s.keys(pluginDown), func(key string) bool {
		ok, _ := path.Match(strings.TrimPrefix(key, pluginDown), resource)
		return ok
	})
}

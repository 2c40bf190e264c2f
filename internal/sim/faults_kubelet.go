package sim

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
)

// kubeletFaults are faults of the kubelet, the API server and device plugins.
var kubeletFaults = []Fault{
	{
		Name: "kubelet-restart", Help: "the kubelet restarts and for a time lists fewer pods than run; returns after that time", apply: onNode(restartKubelet),
		Flags: []Flag{{Name: "for", Help: "how long; 0s: until kubelet-up", Default: "10s"}, {Name: "pods", Help: "number of pods that it lists meanwhile", Default: "0"}},
	},
	{Name: "kubelet-down", Help: "the kubelet is down: nothing listens on its socket", apply: onNode(setKubelet("down"))},
	{Name: "kubelet-up", Help: "the kubelet is up and answers correctly", apply: onNode(setKubelet("up"))},
	{Name: "kubelet-hang", Help: "the kubelet accepts calls and does not answer", apply: onNode(setKubelet("hang"))},
	{Name: "kubelet-garbage", Help: "the kubelet's answers are no PodResources", apply: onNode(setKubelet("garbage"))},
	{Name: "api-server-down", Help: "the API server is down: a kubelet that restarts lists static pods only, until api-server-up", apply: onNode(setAPIServer(false))},
	{Name: "api-server-up", Help: "the API server is up, and the kubelet lists all pods again", apply: onNode(setAPIServer(true))},
	{Name: "device-unhealthy", Help: "a device plugin reports a healthy device as unhealthy: it is no longer allocatable", apply: onNode(spoilDevice(false)), Args: []Arg{{Name: "device", Help: ReferenceHelp}}},
	{Name: "device-healthy", Help: "a device plugin reports a device as healthy, whatever its state, until `clear`", apply: onNode(spoilDevice(true)), Args: []Arg{{Name: "device", Help: ReferenceHelp}}},
}

// restartKubelet restarts the kubelet. For a time it lists fewer pods than run,
// without an error, as a real one does until it has reached the API server and
// the container runtime. Without an API server it lists static pods only.
func restartKubelet(s *State, in input) error {
	d, err := in.duration("for")
	if err != nil {
		return err
	}
	n, err := in.whole("pods")
	if err != nil || n > maxPods {
		return fmt.Errorf("pods: want a number up to %d, found %q", maxPods, in["pods"])
	}
	s.Set("kubelet", "up")
	s.Set("kubelet.starts", strconv.FormatInt(s.integer("kubelet.starts")+1, 10))
	if s.Has(noAPIServer) {
		s.Set("kubelet.lists", "static")
		return nil
	}
	s.Set("kubelet.lists", strconv.FormatUint(n, 10))
	if d > 0 {
		s.then(d, func(s *State) error {
			s.Delete("kubelet.lists")
			return nil
		})
	}
	return nil
}

// noAPIServer is the key of a node whose API server is down.
const noAPIServer = "kubelet.no_api_server"

// setAPIServer makes the API server unreachable for the node, or reachable. A
// running kubelet goes on, but does not learn of pods that come or go.
func setAPIServer(up bool) func(*State, input) error {
	return func(s *State, _ input) error {
		if !up {
			s.Set(noAPIServer, "1")
			return nil
		}
		s.Delete(noAPIServer)
		if s.Get("kubelet.lists") == "static" {
			s.Delete("kubelet.lists")
		}
		return nil
	}
}

// needsAPIServer returns an error for changes that the API server would
// announce.
func (s *State) needsAPIServer() error {
	if err := s.needsKubelet(); err != nil {
		return err
	}
	if s.Has(noAPIServer) {
		return errors.New("the API server is down: no pod comes, and none is deleted; api-server-up ends that")
	}
	return nil
}

// setKubelet sets the state of the kubelet: up, or until the next change down, hang,
// garbage.
func setKubelet(to string) func(*State, input) error {
	return func(s *State, _ input) error {
		if is := s.Get("kubelet"); (to == "hang" || to == "garbage") && is == "down" {
			return errors.New("the kubelet is down; it does not answer")
		}
		if to == "up" && s.Get("kubelet.lists") != "static" {
			s.Delete("kubelet.lists")
		}
		s.Set("kubelet", to)
		return nil
	}
}

// healKubelet removes the faults of the kubelet and the device plugins. Pods
// and processes remain: they are no faults.
func (s *State) healKubelet() {
	for _, key := range slices.Concat(s.keys("unhealthy."), s.keys("healthy."), []string{"kubelet.lists", noAPIServer}) {
		s.Delete(key)
	}
	if s.Has("kubelet") {
		s.Set("kubelet", "up")
	}
}

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

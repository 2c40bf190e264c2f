package sim

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
)

// restartKubelet restarts the kubelet. For a time it lists fewer pods than run,
// without an error, as a real one does until it has reached the API server and
// the container runtime. Without an API server it lists static pods only.
func restartKubelet(s *State, in input) error {
	d, err := in.duration("for")
	if err != nil {
		return err
	}
	n, err := in.integer("pods")
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
	return func(s *State, in input) error {
		if up {
			s.healAPIServer()
			return nil
		}
		d, err := in.duration("for")
		if err != nil {
			return err
		}
		s.Set(noAPIServer, "1")
		if d > 0 {
			s.then(d, func(s *State) error {
				s.healAPIServer()
				return nil
			})
		}
		return nil
	}
}

func (s *State) healAPIServer() {
	s.Delete(noAPIServer)
	if s.Get("kubelet.lists") == "static" {
		s.Delete("kubelet.lists")
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

// setKubelet sets the state of the kubelet: up, or for a time or until the next
// change down, removed, hang, garbage.
func setKubelet(to string) func(*State, input) error {
	return func(s *State, in input) error {
		d, err := in.duration("for")
		if err != nil {
			return err
		}
		if is := s.Get("kubelet"); (to == "hang" || to == "garbage") && (is == "down" || is == "removed") {
			return fmt.Errorf("the kubelet is %s; it does not answer", is)
		}
		if to == "up" && s.Get("kubelet.lists") != "static" {
			s.Delete("kubelet.lists")
		}
		s.Set("kubelet", to)
		if d > 0 && to != "up" {
			s.then(d, func(s *State) error {
				if s.Get("kubelet") == to {
					s.Set("kubelet", "up")
				}
				return nil
			})
		}
		return nil
	}
}

// healKubelet removes the faults of the kubelet and the device plugins. Pods
// and processes remain: they are no faults.
func (s *State) healKubelet() {
	for _, key := range slices.Concat(s.keys("unhealthy."), s.keys("healthy."), s.keys(pluginDown), []string{"kubelet.lists", noAPIServer}) {
		s.Delete(key)
	}
	if s.Has("kubelet") {
		s.Set("kubelet", "up")
	}
}

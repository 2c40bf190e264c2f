package sim

import (
	"fmt"
	"strconv"
	"strings"
)

const keptEvents = 2000

// addEvent appends to the event log that the libraries' event sets read.
func (s *State) addEvent(gpu int, kind, data uint64, gi, ci string) {
	seq := s.integer("seq") + 1
	s.Set("seq", strconv.FormatInt(seq, 10))
	rec := fmt.Sprintf("gpu=%d type=%d data=%d", gpu, kind, data)
	if gi != "" {
		rec += " gi=" + gi
	}
	if ci != "" {
		rec += " ci=" + ci
	}
	s.Set(fmt.Sprintf("event.%d", seq), rec)
	s.Delete(fmt.Sprintf("event.%d", seq-keptEvents))
}

// onGPUs applies f to each GPU of the argument device.
func (s *State) onGPUs(in input, f func(device) error) error {
	ds, err := s.devices(in["device"])
	if err != nil {
		return err
	}
	for _, d := range ds {
		if err := f(d); err != nil {
			return err
		}
	}
	return nil
}

// maxXid is far above the largest code of NVIDIA's list.
const maxXid = 999

func injectXid(s *State, in input) error {
	code, err := in.integer("code")
	if err != nil || code == 0 || code > maxXid {
		return fmt.Errorf("code: want the number of a Xid from 1 to %d, found %q", maxXid, in["code"])
	}
	if err := s.deliver(in, eventTypes["xid"], code); err != nil {
		return err
	}
	return s.onGPUs(in, func(d device) error {
		s.pluginSees(d, code)
		return nil
	})
}

func injectLost(s *State, in input) error {
	return s.onGPUs(in, func(d device) error {
		s.Set(fmt.Sprintf("gpu.%d.lost", d.gpu), "1")
		if !in.on("uuid") {
			s.Set(fmt.Sprintf("gpu.%d.unnamed", d.gpu), "1")
		}
		s.logLost(d.gpu, in)
		return s.onTree(func(m *machine) error {
			s.tellAll(m.tree)
			// Every register of a GPU that does not answer reads as ones.
			if dir, ok := m.tree.Real("/sys/bus/pci/devices/" + s.address(d.gpu)); ok {
				m.tree.Set(dir+"/current_link_speed", "Unknown\n")
				m.tree.Set(dir+"/current_link_width", "63\n")
			}
			return nil
		})
	})
}

func injectEvent(s *State, in input) error {
	kind, ok := eventTypes[in["type"]]
	if !ok {
		var err error
		if kind, err = in.integer("type"); err != nil {
			names := make([]string, 0, len(eventTypes))
			for n := range eventTypes {
				names = append(names, n)
			}
			return fmt.Errorf("type: want a bit mask or one of %s, found %q", strings.Join(sorted(names), ", "), in["type"])
		}
	}
	data, err := in.integer("data")
	if err != nil {
		return err
	}
	return s.deliver(in, kind, data)
}

func (s *State) deliver(in input, kind, data uint64) error {
	n, err := in.integer("count")
	if err != nil {
		return err
	}
	if n > keptEvents {
		return fmt.Errorf("count: the log keeps %d events, found %d", keptEvents, n)
	}
	return s.onGPUs(in, func(d device) error {
		gi, ci := in["gi"], in["ci"]
		if d.mig >= 0 {
			rec := s.Get(fmt.Sprintf("gpu.%d.mig.%d", d.gpu, d.mig))
			gi, ci = attr(rec, "gi"), attr(rec, "ci")
		}
		for range n {
			s.addEvent(d.gpu, kind, data, gi, ci)
			if kind == eventTypes["xid"] {
				s.logXid(d, data, gi, ci, in)
			}
		}
		return nil
	})
}

func injectRecovery(s *State, in input) error {
	n, err := in.one("action", actions)
	if err != nil {
		return err
	}
	return s.onGPUs(in, func(d device) error {
		s.addEvent(d.gpu, eventTypes["recovery-action"], uint64(n), "", "")
		s.logRecovery(d.gpu, int64(n), in)
		return s.set(device{d.gpu, -1}, "recovery_action", strconv.Itoa(n))
	})
}

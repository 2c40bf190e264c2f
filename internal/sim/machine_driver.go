package sim

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/accel-exporter/accel-exporter/internal/sim/faketree"
)

// onTree changes the tree of a simulation that has one.
func (s *State) onTree(change func(*machine) error) error {
	m, err := s.hardware()
	if errors.Is(err, errNoMachine) {
		return nil
	}
	if err != nil {
		return err
	}
	return change(m)
}

// showDriver updates what /sys and /proc show of NVIDIA's driver: the GPUs that
// it is bound to, and its version.
func (s *State) showDriver() error {
	return s.onTree(func(m *machine) error {
		s.tellAll(m.tree)
		return nil
	})
}

func (s *State) tellAll(t *faketree.Tree) {
	t.Remove("/proc/driver/nvidia")
	t.Remove("/sys/module/nvidia")
	t.Remove("/proc/devices")
	t.Remove("/proc/self")
	if slices.Contains(strings.Fields(s.Get("driver.quirks")), "other-pids") {
		t.Link("/proc/self/ns/pid", "pid:[4026532301]") // another one than the host's
	}
	loaded := s.Get("driver.state") != "unloaded"
	for i := range s.gpus() {
		driver := ""
		if loaded && !s.Has(fmt.Sprintf("gpu.%d.gone", i)) && t.Exists("/sys/bus/pci/devices/"+s.address(i)) {
			driver = "nvidia"
			s.writeGPU(t, i)
		}
		bind(t, s.address(i), driver)
	}
	if loaded && s.gpus() > 0 {
		s.tellDriver(t)
	}
}

// clearMachine restores the tree of the start of the scenario.
func (s *State) clearMachine() error {
	return s.onTree(func(m *machine) error {
		intact, err := s.intact()
		if err != nil {
			return err
		}
		m.tree = intact.Clone()
		s.tellAll(m.tree)
		s.tellProcesses(m.tree)
		return nil
	})
}

// clearFunction restores a GPU or a card to the start of the scenario, and
// reports whether the argument names one. The driver may have been reloaded
// since.
func (s *State) clearFunction(arg string) (found bool, err error) {
	err = s.onTree(func(m *machine) error {
		var places []string
		for i := range s.gpus() {
			if s.isGPU(i, arg) {
				places = append(places, "/sys/bus/pci/devices/"+s.address(i))
			}
		}
		intact, err := s.intact()
		if err != nil {
			return err
		}
		cards := cardsOf(intact)
		for _, key := range s.keys("card.") {
			if c, ok := cards[attr(s.Get(key), "at")]; ok && len(places) == 0 && s.isCard(key, arg) {
				places = append(places, c.places(intact)...)
				if c.kind == "amd" {
					s.loadedAMD(c)
				}
			}
		}
		found = len(places) > 0
		for _, at := range places {
			if dir, ok := intact.Real(at); ok {
				m.tree.Unblock(dir)
				m.tree.Restore(intact, dir)
			}
		}
		s.tellAll(m.tree)
		return nil
	})
	return found, err
}

// places returns the directories that a card's faults change.
func (c card) places(t *faketree.Tree) []string {
	out := []string{c.dir}
	if c.mgmt != "" {
		out = append(out, c.mgmt)
	}
	if c.kind == "manager" {
		for _, at := range []string{"/sys/firmware/devicetree/base/fpga-full", "/sys/bus/iio/devices/iio:device0"} {
			if t.Exists(at) {
				out = append(out, at)
			}
		}
	}
	return out
}

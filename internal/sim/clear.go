package sim

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/accel-exporter/accel-exporter/internal/sim/faketree"
)

// Clear removes faults and lets values follow the scenario, for one GPU or FPGA
// card, or all. A MIG layout is restored. For all, the pods and processes of
// the start return, and the driver is loaded again, which ends the faults that
// persist until a reset. The kernel log remains.
func (s *State) Clear(deviceArg string) error {
	begun, err := s.beginning()
	if err != nil {
		return err
	}
	if deviceArg == "" || deviceArg == "all" {
		if begun != nil {
			for _, key := range s.keys("life.") {
				s.Set("touched."+strings.TrimPrefix(key, "life."), "1")
				s.Delete(key)
			}
		}
		for _, key := range s.keys("fault.") {
			s.Delete(key)
		}
		s.restore("")
		s.Set("driver.state", "loaded")
		for i := range s.gpus() {
			s.heal(i)
		}
		s.healKubelet()
		s.healDCGM()
		if begun != nil {
			for i := range s.gpus() {
				s.restoreMIG(begun, i)
			}
			for _, prefix := range []string{"gpu.", "pod.", "proc.", "allocatable.", "dra.", "driver.quirks", "driver.version", "driver.nvml", "dcgm."} {
				s.like(begun, prefix)
			}
		}
		if err := s.clearMachine(); err != nil {
			return err
		}
		if s.tree != nil {
			for _, c := range amdCards(s.tree) {
				s.loadedAMD(c)
			}
		}
		if s.gpus() == 0 {
			return nil
		}
		s.log("NVRM: loading %s", s.driverBanner())
		return s.showDriver()
	}
	ds, err := s.devices(deviceArg)
	if err != nil {
		if card, clearErr := s.clearFunction(deviceArg); card || clearErr != nil {
			return clearErr
		}
		return err
	}
	for _, d := range ds {
		s.Delete("unhealthy." + s.deviceUUID(d))
		s.Delete("healthy." + s.deviceUUID(d))
		for _, key := range s.keys("fault.") {
			rec := s.Get(key)
			if attr(rec, "gpu") == strconv.Itoa(d.gpu) && (d.mig < 0 || attr(rec, "mig") == strconv.Itoa(d.mig)) {
				s.Delete(key)
			}
		}
		s.restore(d.prefix())
		if d.mig < 0 {
			s.restoreMIG(begun, d.gpu)
			s.heal(d.gpu)
			s.healDCGMFields(d.gpu)
		}
	}
	_, err = s.clearFunction(deviceArg)
	return err
}

// beginning returns the state of the start of the scenario, nil where no file
// has it.
func (s *State) beginning() (*State, error) {
	if s.path == "" {
		return nil, nil
	}
	data, err := os.ReadFile(beginningFile(s.path))
	if err != nil {
		return nil, err
	}
	return ParseState(data)
}

// restoreMIG restores the MIG layout of a GPU, if it has changed.
func (s *State) restoreMIG(begun *State, gpu int) {
	if begun == nil {
		return
	}
	prefix := fmt.Sprintf("gpu.%d.mig.", gpu)
	layout := func(s *State) (records []string) {
		for _, key := range s.keys(prefix) {
			if strings.Count(key, ".") == 3 {
				records = append(records, key+" "+s.Get(key))
			}
		}
		return records
	}
	if slices.Equal(layout(s), layout(begun)) {
		return
	}
	for _, key := range slices.Concat(s.keys(prefix), s.keys("touched."+prefix)) {
		s.Delete(key)
	}
	for _, key := range begun.keys(prefix) {
		s.Set(key, begun.Get(key))
	}
	s.addEvent(gpu, eventTypes["mig-config"], 0, "", "")
}

// like sets the keys with a prefix as in another state, except faults and
// values with a past, which must remain.
func (s *State) like(begun *State, prefix string) {
	kept := func(key string) bool {
		return strings.HasPrefix(s.Get(key), "@") || strings.HasSuffix(key, ".generation") || strings.HasSuffix(key, "_seq") ||
			slices.ContainsFunc(deviceFaults, func(f string) bool { return strings.HasSuffix(key, "."+f) })
	}
	for _, key := range s.keys(prefix) {
		if !begun.Has(key) && !kept(key) {
			s.Delete(key)
		}
	}
	for _, key := range begun.keys(prefix) {
		if !kept(key) {
			s.Set(key, begun.Get(key))
		}
	}
}

// deviceFaults are the keys of a GPU that are faults.
var deviceFaults = []string{"lost", "unnamed", "gone", "reset_required", "device_file"}

func (s *State) heal(gpu int) {
	for _, flag := range deviceFaults {
		s.Delete(fmt.Sprintf("gpu.%d.%s", gpu, flag))
	}
}

// clearMachine restores the tree of the start of the scenario.
func (s *State) clearMachine() error {
	return s.onTree(func(*faketree.Tree) error {
		intact, err := s.intact()
		if err != nil {
			return err
		}
		s.tree = intact.Clone()
		s.tellAll(s.tree)
		s.tellProcesses(s.tree)
		return nil
	})
}

// clearFunction restores a GPU or a card to the start of the scenario, and
// reports whether the argument names one. The driver may have been reloaded
// since.
func (s *State) clearFunction(arg string) (found bool, err error) {
	err = s.onTree(func(tree *faketree.Tree) error {
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
				tree.Unblock(dir)
				tree.Restore(intact, dir)
			}
		}
		s.tellAll(tree)
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

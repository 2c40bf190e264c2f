package sim

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/accel-exporter/accel-exporter/internal/sim/faketree"
)

var busArg = Arg{Name: "device", Help: "GPU by index, UUID or PCI address; FPGA card; any PCI address"}

// busFaults are faults of the bus and the kernel log.
var busFaults = []Fault{
	{Name: "kernel-log", Help: "the kernel logs a line", apply: injectLine, Args: []Arg{{Name: "text", Help: "the line", Rest: true}}, Flags: []Flag{countFlag}},
	{Name: "bus-loss", Help: "the device leaves the bus; NVML reports a GPU as lost", apply: onBus(loseOnBus), Args: []Arg{busArg}, Flags: []Flag{logFlag}},
	{
		Name: "aer", Help: "count a PCIe error of the device, and of the port above it", apply: onBus(countAER),
		Args:  []Arg{busArg, {Name: "severity", Help: "correctable, nonfatal or fatal"}},
		Flags: []Flag{{Name: "name", Help: "as in aer_dev_*, e.g. BadTLP or CmpltTO"}, countFlag, logFlag},
	},
	{
		Name: "link-degraded", Help: "the link trains to a lower width or speed, at both ends and in NVML", apply: onBus(degradeLink), Args: []Arg{busArg},
		Flags: []Flag{{Name: "width", Help: "lanes; 0: unchanged", Default: "4"}, {Name: "speed", Help: "generation; 0: unchanged", Default: "0"}},
	},
}

// target is the object of a bus fault: a PCI function, and its GPU where it is
// one.
type target struct {
	address, dir string
	gpu          int // -1 for none
}

// targets resolves an argument: GPUs as in other faults, cards, or any PCI
// address.
func (s *State) targets(arg string) ([]target, *faketree.Tree, error) {
	tree, err := s.hardware()
	if err != nil {
		return nil, nil, err
	}
	var out []target
	add := func(address string, gpu int) {
		if dir, ok := tree.Real("/sys/bus/pci/devices/" + address); ok {
			out = append(out, target{address, dir, gpu})
		}
	}
	ds, noGPU := s.devices(arg)
	for _, d := range ds {
		if d.mig < 0 {
			add(s.address(d.gpu), d.gpu)
		}
	}
	if len(out) > 0 {
		return out, tree, nil
	}
	if c, _, err := s.card(arg); err == nil && c.kind != "manager" {
		add(c.at, -1)
		return out, tree, nil
	}
	for _, at := range tree.Names("/sys/bus/pci/devices") {
		if samePlace(arg, at) {
			add(at, -1)
		}
	}
	if len(out) == 0 {
		return nil, nil, fmt.Errorf("nothing on the bus is %q; it has %s, and:\n%w", arg, strings.Join(tree.Names("/sys/bus/pci/devices"), ", "), noGPU)
	}
	return out, tree, nil
}

// onBus applies f to each function of the argument device.
func onBus(f func(*State, *faketree.Tree, target, input) error) func(*State, input) error {
	return func(s *State, in input) error {
		ts, tree, err := s.targets(in["device"])
		if err != nil {
			return err
		}
		for _, t := range ts {
			if err := f(s, tree, t, in); err != nil {
				return err
			}
		}
		return nil
	}
}

// loseOnBus removes a function from the bus, as a surprise removal does, and
// makes NVML report the GPU as lost.
func loseOnBus(s *State, tree *faketree.Tree, t target, in input) error {
	if t.gpu >= 0 {
		s.Set(fmt.Sprintf("gpu.%d.lost", t.gpu), "1")
		s.logLost(t.gpu, in)
	} else if in.on("log") {
		s.log("pcieport %s: pciehp: Slot(1): Link Down", portOf(t.dir))
		s.log("pcieport %s: pciehp: Slot(1): Card not present", portOf(t.dir))
	}
	tree.Unplug(t.dir)
	return nil
}

// portOf returns the address of the port above a function, or the function's on
// a root bus.
func portOf(dir string) string {
	parts := strings.Split(dir, "/")
	if p := parts[len(parts)-2]; !strings.HasPrefix(p, "pci") {
		return p
	}
	return parts[len(parts)-1]
}

// degradeLink trains a link to a lower width or speed at both ends.
func degradeLink(s *State, tree *faketree.Tree, t target, in input) error {
	width, err := in.whole("width")
	if err != nil {
		return err
	}
	speed, err := in.whole("speed")
	if err != nil {
		return err
	}
	return s.trainLink(tree, t, speed, width)
}

// trainLink sets a link's generation and width in the tree and in NVML; 0:
// unchanged.
func (s *State) trainLink(tree *faketree.Tree, t target, generation, width uint64) error {
	if generation >= uint64(len(linkSpeeds)) || width > 32 {
		return fmt.Errorf("want a speed from 1 to %d and a width from 1 to 32, found %d and %d", len(linkSpeeds)-1, generation, width)
	}
	ends := []string{t.dir}
	if above := t.dir[:strings.LastIndexByte(t.dir, '/')]; tree.Exists(above + "/current_link_width") {
		ends = append(ends, above)
	}
	for _, dir := range ends {
		if generation > 0 {
			tree.Set(dir+"/current_link_speed", linkSpeeds[generation]+"\n")
		}
		if width > 0 {
			tree.Set(dir+"/current_link_width", strconv.FormatUint(width, 10)+"\n")
		}
	}
	if t.gpu < 0 {
		return nil
	}
	var all []error
	if generation > 0 {
		all = append(all, s.set(device{t.gpu, -1}, "pcie.generation", strconv.FormatUint(generation, 10)))
	}
	if width > 0 {
		all = append(all, s.set(device{t.gpu, -1}, "pcie.width", strconv.FormatUint(width, 10)))
	}
	return errors.Join(all...)
}

// Severities of AER with their file, the name of the total, the root port's
// counter and the kernel's words.
var severities = map[string]struct {
	file, total, root, words, layer string
	errors                          []aerError
}{
	"correctable": {"aer_dev_correctable", "TOTAL_ERR_COR", "cor", "Correctable", "Physical Layer, (Receiver ID)", correctableErrors},
	"nonfatal":    {"aer_dev_nonfatal", "TOTAL_ERR_NONFATAL", "nonfatal", "Uncorrectable (Non-Fatal)", "Transaction Layer, (Requester ID)", uncorrectableErrors},
	"fatal":       {"aer_dev_fatal", "TOTAL_ERR_FATAL", "fatal", "Uncorrectable (Fatal)", "Transaction Layer, (Receiver ID)", uncorrectableErrors},
}

// countAER counts an error of a function and logs it.
func countAER(s *State, tree *faketree.Tree, t target, in input) error {
	sev, ok := severities[in["severity"]]
	if !ok {
		return fmt.Errorf("severity: want correctable, nonfatal or fatal, found %q", in["severity"])
	}
	if in["name"] == "" {
		in["name"] = map[string]string{"correctable": "RxErr", "nonfatal": "CmpltTO", "fatal": "DLP"}[in["severity"]]
	}
	count, err := in.whole("count")
	if err != nil {
		return err
	}
	bit := -1
	var names []string
	for _, e := range sev.errors {
		names = append(names, e.name)
		if e.name == in["name"] {
			bit = e.bit
		}
	}
	if bit < 0 {
		return fmt.Errorf("name: want one of %s, found %q", strings.Join(names, ", "), in["name"])
	}
	if !tree.Exists(t.dir + "/" + sev.file) {
		return fmt.Errorf("%s has no AER", t.address)
	}
	addTo(tree, t.dir+"/"+sev.file, in["name"], count)
	addTo(tree, t.dir+"/"+sev.file, sev.total, count)
	port := portOf(t.dir)
	if root := "/sys/bus/pci/devices/" + port + "/aer_rootport_total_err_" + sev.root; tree.Exists(root) {
		text, _ := tree.Get(root)
		n, _ := strconv.ParseUint(strings.TrimSpace(text), 10, 64)
		tree.Set(root, strconv.FormatUint(n+count, 10)+"\n")
	}
	if !in.on("log") {
		return nil
	}
	driver, _ := tree.Target(t.dir + "/driver")
	driver = driver[strings.LastIndexByte(driver, '/')+1:]
	if driver == "" {
		driver = "pci"
	}
	hex := func(file string) string {
		text, _ := tree.Get(t.dir + "/" + file)
		return strings.TrimPrefix(strings.TrimSpace(text), "0x")
	}
	s.log("pcieport %s: AER: %s error message received from %s", port, sev.words, t.address)
	s.log("%s %s: PCIe Bus Error: severity=%s, type=%s", driver, t.address, sev.words, sev.layer)
	s.log("%s %s:   device [%s:%s] error status/mask=%08x/00000000", driver, t.address, hex("vendor"), hex("device"), uint64(1)<<bit)
	s.log("%s %s:    [%2d] %-22s (First)", driver, t.address, bit, in["name"])
	return nil
}

// addTo adds to a counter in a file of lines "NAME count".
func addTo(t *faketree.Tree, file, name string, count uint64) {
	text, _ := t.Get(file)
	var b strings.Builder
	for line := range strings.Lines(text) {
		if before, ok := strings.CutPrefix(line, name+" "); ok {
			n, _ := strconv.ParseUint(strings.TrimSpace(before), 10, 64)
			line = fmt.Sprintf("%s %d\n", name, n+count)
		}
		b.WriteString(line)
	}
	t.Set(file, b.String())
}

// maxLines is how often one fault logs a line.
const maxLines = 10_000

func injectLine(s *State, in input) error {
	if strings.ContainsAny(in["text"], "\n") || len(in["text"]) > maxLine {
		return fmt.Errorf("text: want one line of at most %d bytes", maxLine)
	}
	if _, err := s.hardware(); err != nil {
		return err
	}
	n, err := in.whole("count")
	if err != nil || n > maxLines {
		return fmt.Errorf("count: want a number up to %d, found %q", maxLines, in["count"])
	}
	for range n {
		s.log("%s", in["text"])
	}
	return nil
}

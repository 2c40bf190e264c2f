package sim

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/accel-exporter/accel-exporter/internal/sim/faketree"
)

// linkSpeeds are the PCIe generations as drivers/pci/probe.c prints them.
var linkSpeeds = []string{"Unknown", "2.5 GT/s PCIe", "5.0 GT/s PCIe", "8.0 GT/s PCIe", "16.0 GT/s PCIe", "32.0 GT/s PCIe", "64.0 GT/s PCIe"}

// The counters of aer_dev_correctable, and of aer_dev_nonfatal and
// aer_dev_fatal, with their bits in the status registers, in the order of
// drivers/pci/pcie/aer.c.
var (
	correctableErrors   = []aerError{{0, "RxErr"}, {6, "BadTLP"}, {7, "BadDLLP"}, {8, "Rollover"}, {12, "Timeout"}, {13, "NonFatalErr"}, {14, "CorrIntErr"}, {15, "HeaderOF"}}
	uncorrectableErrors = []aerError{
		{0, "Undefined"},
		{4, "DLP"},
		{5, "SDES"},
		{12, "TLP"},
		{13, "FCP"},
		{14, "CmpltTO"},
		{15, "CmpltAbrt"},
		{16, "UnxCmplt"},
		{17, "RxOF"},
		{18, "MalfTLP"},
		{19, "ECRC"},
		{20, "UnsupReq"},
		{21, "ACSViol"},
		{22, "UncorrIntErr"},
		{23, "BlockedTLP"},
		{24, "AtomicOpBlocked"},
		{25, "TLPBlockedErr"},
		{26, "PoisonTLPBlocked"},
	}
)

type aerError struct {
	bit  int
	name string
}

func aerText(errors []aerError, total string) string {
	var b strings.Builder
	for _, e := range errors {
		b.WriteString(e.name + " 0\n")
	}
	return b.String() + total + " 0\n"
}

// function is a PCI function to add to a tree.
type function struct {
	path, address, driver                                 string
	class, vendor, device, subVendor, subDevice, revision uint64
	generation, width, maxGeneration, maxWidth, numa      int
	port                                                  bool
}

// put writes the function's directory, with the files and formats of
// fixtures/trees, and the links to it.
func (f *function) put(t *faketree.Tree) {
	modalias := fmt.Sprintf("pci:v%08Xd%08Xsv%08Xsd%08Xbc%02Xsc%02Xi%02X", f.vendor, f.device, f.subVendor, f.subDevice, f.class>>16, f.class>>8&0xff, f.class&0xff)
	event := fmt.Sprintf("PCI_CLASS=%X\nPCI_ID=%04X:%04X\nPCI_SUBSYS_ID=%04X:%04X\nPCI_SLOT_NAME=%s\nMODALIAS=%s\n",
		f.class, f.vendor, f.device, f.subVendor, f.subDevice, f.address, modalias)
	for name, text := range map[string]string{
		"class":                fmt.Sprintf("0x%06x", f.class),
		"vendor":               fmt.Sprintf("0x%04x", f.vendor),
		"device":               fmt.Sprintf("0x%04x", f.device),
		"subsystem_vendor":     fmt.Sprintf("0x%04x", f.subVendor),
		"subsystem_device":     fmt.Sprintf("0x%04x", f.subDevice),
		"revision":             fmt.Sprintf("0x%02x", f.revision),
		"modalias":             modalias,
		"current_link_speed":   linkSpeeds[f.generation],
		"current_link_width":   strconv.Itoa(f.width),
		"max_link_speed":       linkSpeeds[f.maxGeneration],
		"max_link_width":       strconv.Itoa(f.maxWidth),
		"local_cpulist":        "0-15,32-47",
		"power_state":          "D0",
		"power/runtime_status": "active",
	} {
		t.Set(f.path+"/"+name, text+"\n")
	}
	for name, text := range map[string]string{"numa_node": strconv.Itoa(f.numa), "enable": "1", "power/control": "on"} {
		t.Set(f.path+"/"+name, text+"\n")
		t.SetMode(f.path+"/"+name, 0o644)
	}
	t.Set(f.path+"/aer_dev_correctable", aerText(correctableErrors, "TOTAL_ERR_COR"))
	t.Set(f.path+"/aer_dev_nonfatal", aerText(uncorrectableErrors, "TOTAL_ERR_NONFATAL"))
	t.Set(f.path+"/aer_dev_fatal", aerText(uncorrectableErrors, "TOTAL_ERR_FATAL"))
	if f.port {
		for _, of := range []string{"cor", "nonfatal", "fatal"} {
			t.Set(f.path+"/aer_rootport_total_err_"+of, "0\n")
		}
	}
	t.Set(f.path+"/uevent", event)
	t.SetMode(f.path+"/uevent", 0o644)
	t.Link(f.path+"/subsystem", up(f.path)+"bus/pci")
	t.Link("/sys/bus/pci/devices/"+f.address, "../../../"+strings.TrimPrefix(f.path, "/sys/"))
	bind(t, f.address, f.driver)
}

// up returns the relative path from a directory of /sys to /sys.
func up(path string) string { return strings.Repeat("../", strings.Count(path, "/")-1) }

// bind binds a function to a driver; "" unbinds it.
func bind(t *faketree.Tree, address, driver string) {
	dir, ok := t.Real("/sys/bus/pci/devices/" + address)
	if !ok {
		return
	}
	if target, ok := t.Target(dir + "/driver"); ok {
		t.Remove(dir + "/driver")
		t.Remove("/sys/bus/pci/drivers/" + target[strings.LastIndexByte(target, '/')+1:] + "/" + address)
	}
	event, _ := t.Get(dir + "/uevent")
	if rest, ok := strings.CutPrefix(event, "DRIVER="); ok {
		_, event, _ = strings.Cut(rest, "\n")
	}
	if driver != "" {
		event = "DRIVER=" + driver + "\n" + event
		t.Link(dir+"/driver", up(dir)+"bus/pci/drivers/"+driver)
		t.Link("/sys/bus/pci/drivers/"+driver+"/"+address, "../../../../"+strings.TrimPrefix(dir, "/sys/"))
	}
	t.Set(dir+"/uevent", event)
}

package compare

import (
	_ "embed"
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
)

//go:embed fields.tsv
var fieldTable string

// difference is a field of a GPU that differs, or that one side does not have.
type difference struct {
	gpu, field, xml, series, value string
}

// row is a line of fields.tsv.
type row struct {
	expr, series       string
	absolute, relative float64
}

func fields() (rows []row, err error) {
	for line := range strings.Lines(fieldTable) {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' && !strings.Contains(line, "\t") {
			continue
		}
		c := append(strings.Split(line, "\t"), "0 0")
		r := row{expr: c[0], series: c[1]}
		if _, err := fmt.Sscan(c[2], &r.absolute, &r.relative); err != nil {
			return nil, fmt.Errorf("fields.tsv: %q: %w", line, err)
		}
		rows = append(rows, r)
	}
	return rows, nil
}

// compare compares nvidia-smi's XML with a page of the same machine. GPUs are
// matched by PCI address, or else by UUID.
func compare(xml, text []byte) ([]difference, error) {
	rows, err := fields()
	if err != nil {
		return nil, err
	}
	machine, gpus, err := parseXML(xml)
	if err != nil {
		return nil, err
	}
	p, err := parsePage(string(text))
	if err != nil {
		return nil, err
	}
	var differences []difference
	judge := func(gpu string, e elements, device string) {
		for _, r := range rows {
			if (r.expr[0] == '/') != (gpu == "") || !e.know(r.expr) {
				continue
			}
			text, want, lost, isNumber := e.eval(r.expr)
			if value, ok := p.lookup(r.series, device); !r.agree(text, want, lost, isNumber, value, ok) {
				differences = append(differences, difference{gpu, alternative.ReplaceAllString(r.expr, ""), text, r.series, value})
			}
		}
	}
	judge("", machine, "")
	matched := map[string]bool{}
	for _, g := range gpus {
		at := shortAddress(g.first("pci/pci_bus_id"))
		device := p.device(at, g.first("uuid"))
		if device == "" {
			differences = append(differences, difference{at, "gpu", at, "accel_device_info", ""})
			continue
		}
		matched[device] = true
		judge(at, g, device)
	}
	for _, s := range p["accel_device_info"] {
		if l := s.labels; s.whole() && !matched[l["device"]] {
			differences = append(differences, difference{l["pci_address"], "gpu", "", "accel_device_info", l["device"]})
		}
	}
	return differences, nil
}

// alternative matches the further elements of a row, which the table omits.
var alternative = regexp.MustCompile(`\|\S+`)

// agree reports whether the text of nvidia-smi, "" for none, and the value of the page
// are the same, as far as digits and tolerance permit.
func (r row) agree(text string, want, lost float64, isNumber bool, value string, ok bool) bool {
	if text == "" || !ok {
		return (text != "") == ok
	}
	if _, label := splitLabel(r.series); label != "" {
		return same(text, value, label)
	}
	got, err := strconv.ParseFloat(value, 64)
	tolerance := max(lost+1e-9*math.Abs(want), r.absolute, r.relative*max(math.Abs(want), math.Abs(got)))
	return err == nil && isNumber && math.Abs(got-want) <= tolerance
}

// same compares the text of nvidia-smi with the value of a label.
func same(text, value, label string) bool {
	switch label {
	case "pci_address":
		return shortAddress(text) == value
	case "architecture":
		return strings.HasPrefix(strings.ToLower(text), value) // "Ada Lovelace" is ada
	}
	return text == value || strings.ReplaceAll(strings.ToLower(text), " ", "_") == value
}

// device returns the device with the PCI address, or else with the UUID.
func (p page) device(address, uuid string) string {
	for _, s := range p["accel_device_info"] {
		if s.labels["pci_address"] == address && s.whole() {
			return s.labels["device"]
		}
	}
	if _, ok := p.lookup("accel_device_info.device", uuid); ok {
		return uuid
	}
	return ""
}

// whole reports whether a series of accel_device_info is of a GPU, not of a MIG device.
func (s sample) whole() bool {
	return s.labels["class"] == "gpu" && s.labels["vendor"] == "nvidia" && s.labels["profile"] == ""
}

// shortAddress is a PCI address as the kernel prints it: the domain has four digits
// where they suffice.
func shortAddress(long string) string {
	if strings.IndexByte(long, ':') == 8 {
		long = strings.TrimPrefix(long, "0000")
	}
	return strings.ToLower(long)
}

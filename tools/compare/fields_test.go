package compare

import (
	_ "embed"
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

//go:embed fields.tsv
var fieldTable string

type verdict string

const (
	equal       verdict = "equal"
	near        verdict = "near"
	differs     verdict = "differs"
	absentHere  verdict = "absent here"
	absentThere verdict = "absent there"
	neither     verdict = "absent in both"
	noSeries    verdict = "without a series"
)

// result is the comparison of one field of one GPU.
type result struct {
	gpu, field, xml, series, value string
	verdict                        verdict
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
func compare(xml, text []byte) ([]result, error) {
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
	var results []result
	used := map[string]bool{}
	judge := func(gpu string, e elements, device string) {
		for _, r := range rows {
			if (r.expr[0] == '/') == (gpu == "") && e.know(r.expr) {
				results = append(results, r.judge(gpu, e, p, device, used))
			}
		}
	}
	judge("", machine, "")
	matched := map[string]bool{}
	for _, g := range gpus {
		at := address(g)
		device := p.device(at, first(g["uuid"]))
		if device == "" {
			results = append(results, result{at, "gpu", at, "accel_device_info", "", differs})
			continue
		}
		matched[device] = true
		judge(at, g, device)
		for _, path := range slices.Sorted(maps.Keys(g)) {
			if t := g[path][0]; !used[path] && !absent(t) {
				results = append(results, result{at, path, t, "", "", noSeries})
			}
		}
	}
	for _, s := range p["accel_device_info"] {
		if l := s.labels; s.whole() && !matched[l["device"]] {
			results = append(results, result{l["pci_address"], "gpu", "", "accel_device_info", l["device"], differs})
		}
	}
	return results, nil
}

// alternative matches the further elements of a row, which the table omits.
var alternative = regexp.MustCompile(`\|\S+`)

// judge compares one field.
func (r row) judge(gpu string, e elements, p page, device string, used map[string]bool) result {
	text, want, lost, isNumber := e.eval(r.expr, used)
	value, ok := p.lookup(r.series, device)
	res := result{gpu: gpu, field: alternative.ReplaceAllString(r.expr, ""), xml: text, series: r.series, value: value, verdict: differs}
	_, label := splitLabel(r.series)
	got, err := strconv.ParseFloat(value, 64)
	switch apart := math.Abs(got - want); {
	case text == "" && !ok:
		res.verdict = neither
	case text == "":
		res.verdict = absentThere
	case !ok:
		res.verdict = absentHere
	case label != "":
		if same(text, value, label) {
			res.verdict = equal
		}
	case err != nil || !isNumber:
	case apart <= lost+1e-9*math.Abs(want):
		res.verdict = equal
	case apart <= max(r.absolute, r.relative*max(math.Abs(want), math.Abs(got))):
		res.verdict = near
	}
	return res
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

func address(g elements) string { return shortAddress(first(g["pci/pci_bus_id"])) }

// shortAddress is a PCI address as the kernel prints it: the domain has four digits
// where they suffice.
func shortAddress(long string) string {
	if strings.IndexByte(long, ':') == 8 {
		long = strings.TrimPrefix(long, "0000")
	}
	return strings.ToLower(long)
}

func first(texts []string) string {
	if len(texts) == 0 {
		return ""
	}
	return texts[0]
}

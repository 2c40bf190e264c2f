package compare

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// sample is one line of the page.
type sample struct {
	labels map[string]string
	value  float64
}

// page has the samples by name.
type page map[string][]sample

var (
	sampleLine = regexp.MustCompile(`^([a-zA-Z_:][\w:]*)(?:\{(.*)\})? (\S+)( \S+)?$`)
	labelPair  = regexp.MustCompile(`([a-zA-Z_]\w*)="((?:[^"\\]|\\.)*)",?`)
	unescape   = strings.NewReplacer(`\\`, `\`, `\"`, `"`, `\n`, "\n")
)

// parsePage parses the text format. A sample whose value is no number is left out:
// golden files replace the values that differ from run to run.
func parsePage(text string) (page, error) {
	p := page{}
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		m := sampleLine.FindStringSubmatch(line)
		if m == nil {
			return nil, fmt.Errorf("not a sample: %.100q", line)
		}
		v, err := strconv.ParseFloat(m[3], 64)
		if err != nil {
			continue
		}
		p[m[1]] = append(p[m[1]], sample{labelsOf(m[2]), v})
	}
	return p, nil
}

func labelsOf(text string) map[string]string {
	labels := map[string]string{}
	for _, m := range labelPair.FindAllStringSubmatch(text, -1) {
		labels[m[1]] = unescape.Replace(m[2])
	}
	return labels
}

// lookup returns the value of a selector of fields.tsv, such as name{label="x"},
// for a device ("" for the machine): a number, or the text of the label after the
// dot in the series whose value is 1.
func (p page) lookup(selector, device string) (string, bool) {
	selector, label := splitLabel(selector)
	name, rest, _ := strings.Cut(selector, "{")
	want := labelsOf(rest)
	if device != "" {
		want["device"] = device
	}
	for _, s := range p[name] {
		if !s.has(want) || label != "" && s.value != 1 {
			continue
		}
		if label != "" {
			return s.labels[label], s.labels[label] != ""
		}
		return strconv.FormatFloat(s.value, 'g', -1, 64), true
	}
	return "", false
}

// splitLabel splits the label off a selector.
func splitLabel(selector string) (string, string) {
	if i := strings.LastIndexByte(selector, '.'); i > strings.LastIndexByte(selector, '}') {
		return selector[:i], selector[i+1:]
	}
	return selector, ""
}

func (s sample) has(want map[string]string) bool {
	for k, v := range want {
		if s.labels[k] != v {
			return false
		}
	}
	return true
}

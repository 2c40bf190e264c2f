package compare

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// elements has the texts of the elements of one GPU, or of the machine, by path.
type elements map[string][]string

// parseXML returns the elements of the machine and of each GPU.
func parseXML(data []byte) (elements, []elements, error) {
	d := xml.NewDecoder(bytes.NewReader(data))
	d.Strict = false
	machine, gpus := elements{}, []elements{}
	var path []string
	text, leaf := "", false
	for {
		token, err := d.Token()
		if err == io.EOF && len(path) == 0 {
			break
		}
		if err != nil {
			return nil, nil, err
		}
		switch e := token.(type) {
		case xml.StartElement:
			path = append(path, e.Name.Local)
			text, leaf = "", true
			if len(path) == 2 && path[1] == "gpu" {
				gpus = append(gpus, elements{})
			}
		case xml.CharData:
			text += string(e)
		case xml.EndElement:
			switch at, v := strings.Join(path[1:], "/"), strings.TrimSpace(text); {
			case !leaf || v == "":
			case strings.HasPrefix(at, "gpu/"):
				g := gpus[len(gpus)-1]
				g[at[4:]] = append(g[at[4:]], v)
			default:
				machine["/"+at] = append(machine["/"+at], v)
			}
			path, leaf = path[:len(path)-1], false
		}
	}
	if len(gpus) == 0 {
		return nil, nil, fmt.Errorf("no GPU in the XML")
	}
	return machine, gpus, nil
}

// absent reports whether nvidia-smi has no value.
func absent(text string) bool {
	switch text {
	case "N/A", "[N/A]", "Not Supported", "Insufficient Permissions", "Unknown Error", "GPU requires reset", "ERR!":
		return true
	}
	return strings.HasPrefix(text, "Requested functionality") || strings.HasPrefix(text, "[")
}

// words are the texts with a number in our page.
var words = map[string]float64{
	"Yes": 1, "Active": 1, "Enabled": 1, "True": 1, "Degraded": 1,
	"No": 0, "Not Active": 0, "Disabled": 0, "False": 0, "Full": 0, "None": 0,
}

// units are nvidia-smi's units in the base units of our page.
var units = map[string]float64{
	"": 1, "C": 1, "W": 1, "bank(s)": 1, "RPM": 1, "us": 1e-6, "ms": 1e-3, "%": 0.01,
	"KB/s": 1000, "MHz": 1e6, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30,
}

// number returns the value of a text in the base unit, and how much of it is lost
// by the printed digits.
func number(text string) (v, lost float64, ok bool) {
	if v, ok = words[text]; ok {
		return v, 0, true
	}
	digits, unit, _ := strings.Cut(text, " ")
	digits = strings.TrimSuffix(strings.TrimPrefix(digits, "P"), "x")
	scale, known := units[unit]
	v, err := strconv.ParseFloat(digits, 64)
	if err != nil || !known {
		return 0, 0, false
	}
	if unit != "" {
		lost = scale
	}
	if _, fraction, ok := strings.Cut(digits, "."); ok {
		for range fraction {
			lost /= 10
		}
	}
	return v * scale, lost, true
}

// eval evaluates an expression of fields.tsv and returns the text of its elements too.
func (e elements) eval(expr string) (text string, v, lost float64, isNumber bool) {
	if path, texts, ok := strings.Cut(strings.TrimPrefix(expr, "#"), "="); ok {
		n := 0
		for _, t := range e[path] {
			for _, want := range strings.Split(texts, ",") {
				if t == want {
					n++
				}
			}
		}
		return strconv.Itoa(n), float64(n), 0, true
	}
	sign, isNumber := 1.0, true
	for _, term := range strings.Fields(expr) {
		switch term {
		case "+":
			sign, text = 1, text+" + "
		case "-":
			sign, text = -1, text+" - "
		default:
			t := e.first(term)
			if t == "" || absent(t) {
				return "", 0, 0, false
			}
			n, l, ok := number(t)
			text, v, lost, isNumber = text+t, v+sign*n, lost+l, isNumber && ok
		}
	}
	return text, v, lost, isNumber
}

// know reports whether this nvidia-smi prints the elements of an expression. It
// omits the elements of processes where there is none.
func (e elements) know(expr string) bool {
	for _, term := range strings.Fields(expr) {
		if len(term) > 1 && term[0] != '#' && e.first(term) == "" {
			return false
		}
	}
	return true
}

func (e elements) first(paths string) string {
	for _, p := range strings.Split(paths, "|") {
		if len(e[p]) > 0 {
			return e[p][0]
		}
	}
	return ""
}

package sim

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/accel-exporter/accel-exporter/internal/sim/faketree"
)

// card is an FPGA, or an AMD GPU, in the tree.
type card struct {
	kind string // dfl, xrt, manager or amd
	at   string // PCI address, or the platform device of its manager
	dir  string // its directory; of the user function for XRT
	mgmt string // directory of the management function of XRT, or ""
}

// cardsOf finds the FPGAs and the AMD GPUs of a tree, by name.
func cardsOf(t *faketree.Tree) map[string]card {
	out := map[string]card{}
	for kind, driver := range map[string]string{"dfl": "dfl-pci", "xrt": "xocl", "amd": "amdgpu"} {
		for _, at := range t.Names("/sys/bus/pci/drivers/" + driver) {
			dir, ok := t.Real("/sys/bus/pci/devices/" + at)
			if !ok || kind == "dfl" && first(t, dir, "fpga_region/*/dfl-fme.*") == "" {
				continue
			}
			c := card{kind: kind, at: at, dir: dir}
			if kind == "xrt" {
				c.mgmt, _ = t.Real("/sys/bus/pci/devices/" + at[:len(at)-1] + "0")
			}
			out[at] = c
		}
	}
	for _, name := range t.Names("/sys/class/fpga_manager") {
		dir, ok := t.Real("/sys/class/fpga_manager/" + name + "/device")
		if !ok || slices.ContainsFunc(slices.Collect(maps.Values(out)), func(c card) bool { return strings.HasPrefix(dir, c.dir+"/") }) {
			continue
		}
		at := path.Base(dir)
		out[at] = card{kind: "manager", at: at, dir: dir}
	}
	return out
}

// first returns the first path below dir that matches a pattern of path.Match,
// element by element; "" where there is none.
func first(t *faketree.Tree, dir, pattern string) string {
	want, rest, more := strings.Cut(pattern, "/")
	for _, name := range t.Names(dir) {
		if ok, _ := path.Match(want, name); !ok {
			continue
		}
		at := dir + "/" + name
		if more {
			at = first(t, at, rest)
		}
		if at != "" {
			return at
		}
	}
	return ""
}

// card resolves an argument: the number of an FPGA, the tree of the scenario or
// a part of its name, the PCI address or the platform device.
func (s *State) card(arg string) (card, *faketree.Tree, error) {
	tree, err := s.hardware()
	if err != nil {
		return card{}, nil, err
	}
	cards := cardsOf(tree)
	var found []card
	for _, key := range s.keys("card.") {
		if c, ok := cards[attr(s.Get(key), "at")]; ok && s.isCard(key, arg) {
			found = append(found, c)
		}
	}
	if len(found) == 1 {
		return found[0], tree, nil
	}
	var list strings.Builder
	for _, key := range s.keys("card.") {
		rec := s.Get(key)
		gone := ""
		if _, ok := cards[attr(rec, "at")]; !ok {
			gone = "  (gone)"
		}
		fmt.Fprintf(&list, "\n  %s  %s  %s%s", strings.TrimPrefix(key, "card."), attr(rec, "tree"), attr(rec, "at"), gone)
	}
	if list.Len() == 0 {
		list.WriteString("\n  (none)")
	}
	return card{}, nil, fmt.Errorf("%d cards are %q; the cards are:%s", len(found), arg, list.String())
}

// isCard reports whether an argument matches the card of a key.
func (s *State) isCard(key, arg string) bool {
	if _, err := strconv.Atoi(arg); err == nil {
		return key == "card."+arg
	}
	rec := s.Get(key)
	return arg != "" && strings.Contains(attr(rec, "tree"), arg) || samePlace(arg, attr(rec, "at"))
}

// samePlace compares PCI addresses with an optional domain.
func samePlace(a, b string) bool {
	if strings.Count(a, ":") == 1 {
		a = "0000:" + a
	}
	return strings.EqualFold(a, b)
}

package faketree

import (
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Names of devices: "hwmon6", "dfl-fme-bridge.1.auto", "spi4.0".
var (
	numbered = regexp.MustCompile(`^(.*?)(\d+)(\D*)$`)
	spiChip  = regexp.MustCompile(`^(spi)(\d+)(\.\d+)$`)
	function = regexp.MustCompile(`^([0-9a-f]{4}):([0-9a-f]{2})(:[0-9a-f]{2}\.[0-7])$`)
	// byAddress matches a device on the SoC's bus: "ffa50000.ams".
	byAddress = regexp.MustCompile(`^[0-9a-f]{6,}\.`)
	rootBus   = regexp.MustCompile(`^(pci[0-9a-f]{4}):([0-9a-f]{2})$`)
)

// series is a sequence of numbers that the kernel assigns in order. Devices
// with a common number share one.
type series string

// numberOf splits a device's name.
func numberOf(name string) (of series, n int, ok bool) {
	m := spiChip.FindStringSubmatch(name)
	if m != nil {
		m[3] = ""
	} else if m = numbered.FindStringSubmatch(name); m == nil || function.MatchString(name) || byAddress.MatchString(name) {
		return "", 0, false
	}
	n, err := strconv.Atoi(m[2])
	of = series(m[1] + "#" + m[3])
	if of == "dfl_fme#" {
		of = "dfl-fme.#" // the PMU has the number of its FME
	}
	return of, n, err == nil
}

// numbers returns the numbers of a tree's devices.
func (t *Tree) numbers() map[series]map[int]bool {
	out := map[series]map[int]bool{}
	for name := range t.deviceNames() {
		if of, n, ok := numberOf(path.Base(name)); ok {
			if out[of] == nil {
				out[of] = map[int]bool{}
			}
			out[of][n] = true
		}
	}
	return out
}

// deviceNames returns the devices of all classes and buses, such as
// "class/hwmon/hwmon6" or "bus/pci/devices/0000:1b:00.0".
func (t *Tree) deviceNames() map[string]bool {
	out := map[string]bool{}
	add := func(dir string) {
		if e := t.find(path.Join("/sys", dir), false); e != nil {
			for name := range e.children {
				out[path.Join(dir, name)] = true
			}
		}
	}
	for dir, below := range map[string]string{"class": "", "bus": "devices"} {
		if e := t.find(path.Join("/sys", dir), false); e != nil {
			for name := range e.children {
				add(path.Join(dir, name, below))
			}
		}
	}
	return out
}

func common(a, b map[string]bool) map[string]bool {
	out := maps.Clone(a)
	maps.DeleteFunc(out, func(name string, _ bool) bool { return !b[name] })
	return out
}

// buses returns the PCI buses of a tree, by domain and number.
func (t *Tree) buses() map[string]map[int]bool {
	out := map[string]map[int]bool{}
	t.root.each(func(e *entry) {
		domain, n, ok := busOf(e.name)
		if !ok {
			return
		}
		if out[domain] == nil {
			out[domain] = map[int]bool{}
		}
		out[domain][n] = true
	})
	return out
}

func busOf(name string) (domain string, n int, ok bool) {
	m := function.FindStringSubmatch(name)
	if m == nil {
		if m = rootBus.FindStringSubmatch(name); m == nil {
			return "", 0, false
		}
	}
	bus, _ := strconv.ParseUint(m[2], 16, 8) // two hexadecimal digits
	return strings.TrimPrefix(m[1], "pci"), int(bus), true
}

// renumber gives t's devices numbers that are not in taken.
func (t *Tree) renumber(taken *Tree) error {
	moves := map[series]map[int]int{}
	theirs := taken.numbers()
	for of, mine := range t.numbers() {
		used := theirs[of]
		for _, n := range slices.Sorted(maps.Keys(mine)) {
			if !used[n] {
				continue
			}
			to := 0
			if of == "renderD#" {
				to = 128 // the first minor of render nodes
			}
			for used[to] || mine[to] || slices.Contains(slices.Collect(maps.Values(moves[of])), to) {
				to++
			}
			if moves[of] == nil {
				moves[of] = map[int]int{}
			}
			moves[of][n] = to
		}
	}
	shift, err := shiftOf(t.buses(), taken.buses())
	if err != nil || len(moves) == 0 && len(shift) == 0 {
		return err
	}
	t.rename(t.root, func(name string) string {
		if of, n, ok := numberOf(name); ok {
			if to, ok := moves[of][n]; ok {
				return withNumber(name, to)
			}
		}
		if domain, n, ok := busOf(name); ok && shift[domain] != 0 {
			return withBus(name, n+shift[domain])
		}
		return name
	})
	return nil
}

// shiftOf returns the offset by which the buses of each domain move up, or down
// where there is no room above. They move together: a bridge's numbers are
// lower than those behind it.
func shiftOf(mine, theirs map[string]map[int]bool) (map[string]int, error) {
	out := map[string]int{}
	for domain, buses := range mine {
		fits := func(by int) bool {
			for n := range buses {
				if n+by < 0 || n+by > 0xff || theirs[domain][n+by] {
					return false
				}
			}
			return true
		}
		by := 0
		for !fits(by) {
			if by = -by; by >= 0 {
				by++
			}
			if by > 0xff {
				return nil, fmt.Errorf("PCI domain %s has no room for the buses of both trees", domain)
			}
		}
		out[domain] = by
	}
	return out, nil
}

func withNumber(name string, n int) string {
	m := spiChip.FindStringSubmatch(name)
	if m == nil {
		m = numbered.FindStringSubmatch(name)
	}
	return m[1] + strconv.Itoa(n) + m[3]
}

func withBus(name string, n int) string {
	if m := function.FindStringSubmatch(name); m != nil {
		return fmt.Sprintf("%s:%02x%s", m[1], n, m[3])
	}
	return fmt.Sprintf("%s:%02x", name[:len(name)-3], n)
}

// rename renames each element of every path, and of every link target, by to.
func (t *Tree) rename(e *entry, to func(string) string) {
	all := func(name string) string {
		parts := strings.Split(name, "/")
		for i := range parts {
			parts[i] = to(parts[i])
		}
		return strings.Join(parts, "/")
	}
	if e.target != "" {
		e.target = all(e.target)
	}
	if e.name == "uevent" {
		e.content = renameEvent(e.content, all)
	}
	if !e.dir() {
		return
	}
	children := make(map[string]*entry, len(e.children))
	for name, c := range e.children {
		t.rename(c, to)
		c.name = to(name)
		children[c.name] = c
	}
	e.children = children
}

// renameEvent renames the device names in the values of a uevent.
func renameEvent(text string, to func(string) string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		key, value, _ := strings.Cut(line, "=")
		if key == "DEVNAME" || key == "PCI_SLOT_NAME" {
			name := strings.TrimSuffix(value, "\n")
			line = key + "=" + to(name) + value[len(name):]
		}
		b.WriteString(line)
	}
	return b.String()
}

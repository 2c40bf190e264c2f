package fpga

import (
	"slices"
	"strings"

	"github.com/accel-exporter/accel-exporter/collector/sysfs"
)

// findXRT pairs the functions of the two drivers.
func findXRT(fs *tree) ([]place, error) {
	users, err := driven(fs, "xocl")
	if err != nil {
		return nil, err
	}
	managers, err := driven(fs, "xclmgmt")
	if err != nil {
		return nil, err
	}
	cards := map[string]*place{}
	var order []string
	add := func(address string) *place {
		key := address[:strings.LastIndexByte(address, '.')]
		if cards[key] == nil {
			cards[key] = &place{}
			order = append(order, key)
		}
		return cards[key]
	}
	for _, u := range users {
		// The first of several user functions represents the card.
		if p := add(u); p.id == "" {
			p.id = u
		} else {
			p.functions = append(p.functions, u)
		}
	}
	for _, m := range managers {
		p := add(m)
		if p.id == "" {
			p.id = sibling(fs, m)
		}
		if p.id != m {
			p.functions = append(p.functions, m)
		}
	}
	slices.Sort(order)
	var places []place
	for _, key := range order {
		if p := cards[key]; p.locate(fs) {
			p.kubeIDs = renderers(fs, p)
			places = append(places, *p)
		}
	}
	return places, nil
}

// renderers lists the card's DRM nodes.
func renderers(fs *tree, p *place) (nodes []string) {
	for _, dir := range append([]string{p.dir}, p.claims...) {
		names, _ := fs.Names(dir + "/drm")
		for _, n := range names {
			if strings.HasPrefix(n, "renderD") && len(nodes) < 4 {
				nodes = append(nodes, n)
			}
		}
	}
	return nodes
}

// driven lists the PCI addresses of the functions bound to a driver.
func driven(fs *tree, driver string) ([]string, error) {
	names, err := fs.Names("bus/pci/drivers/" + driver)
	if err != nil && !absent(err) {
		return nil, err
	}
	return slices.DeleteFunc(names, func(n string) bool { return !sysfs.PCIAddress(n) }), nil
}

// sibling returns the function after a management function: the user function,
// which names the card also while it has another driver, as for a virtual
// machine. Where there is none, the management function names the card.
func sibling(fs *tree, management string) string {
	last := len(management) - 1
	user := management[:last] + string(management[last]+1)
	if management[last] < '7' && fs.Exists("bus/pci/devices/"+user) {
		return user
	}
	return management
}

// locate finds the directories of p's functions; it is false where the card has
// left.
func (p *place) locate(fs *tree) bool {
	var err error
	if p.dir, err = fs.Resolve("bus/pci/devices/" + p.id); err != nil {
		return false
	}
	for _, f := range p.functions {
		if dir, err := fs.Resolve("bus/pci/devices/" + f); err == nil {
			p.claims = append(p.claims, dir)
		}
	}
	return true
}

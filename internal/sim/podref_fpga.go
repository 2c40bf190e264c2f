package sim

import (
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"path"
	"strings"

	"github.com/accel-exporter/accel-exporter/internal/sim/faketree"
)

// fpgaFunction is an accelerator function of Intel's device plugin in mode af,
// or a card of AMD's.
func (s *State) fpgaFunction(arg string) (allocated, error) {
	c, m, err := s.card(arg)
	if err != nil {
		return allocated{}, err
	}
	h := allocated{on: device{-1, -1}}
	switch c.kind {
	case "xrt":
		h.id, h.resource = c.at, xrtResource(m.tree, c.dir)
	case "dfl":
		port := first(m.tree, c.dir, "fpga_region/*/dfl-port.*")
		if port == "" {
			return h, fmt.Errorf("%s has no port", c.at)
		}
		h.id, h.resource = path.Base(port), afResource(interfaceID(m.tree, c), content(m.tree, port+"/afu_id"))
	default:
		return h, fmt.Errorf("no device plugin supports %s; give the id that yours uses", c.at)
	}
	return h, nil
}

// fpgaRegion is a region of Intel's device plugin in mode region.
func (s *State) fpgaRegion(arg string) (allocated, error) {
	c, m, err := s.card(arg)
	if err != nil {
		return allocated{}, err
	}
	fme := first(m.tree, c.dir, "fpga_region/*/dfl-fme.*")
	if c.kind != "dfl" || fme == "" {
		return allocated{}, fmt.Errorf("%s has no region that a device plugin supports", c.at)
	}
	h := allocated{id: path.Base(fme), on: device{-1, -1}}
	if id := interfaceID(m.tree, c); id != "" {
		h.resource = "fpga.intel.com/region-" + id
	}
	return h, nil
}

// interfaceID is the interface that the green bitstream of a DFL card must
// match.
func interfaceID(t *faketree.Tree, c card) string {
	return content(t, first(t, c.dir, "fpga_region/*/dfl-fme.*/dfl-fme-region.*/fpga_region/*/compat_id"))
}

// afResource is a resource of Intel's FPGA plugin in mode af
// (intel-device-plugins-for-kubernetes, cmd/fpga_plugin): the first digits of
// both ids, and both ids in base64.
func afResource(interfaceID, afu string) string {
	a, err := hex.DecodeString(interfaceID)
	b, err2 := hex.DecodeString(afu)
	if err != nil || err2 != nil || len(a) != 16 || len(b) != 16 {
		return ""
	}
	return fmt.Sprintf("fpga.intel.com/af-%s.%s.%s", interfaceID[:3], afu[:3], base64.RawURLEncoding.EncodeToString(append(a, b...)))
}

// xrtResource is a resource of AMD's FPGA plugin: the shell and its timestamp.
func xrtResource(t *faketree.Tree, dir string) string {
	rom := first(t, dir, "rom.*")
	shell, stamp := content(t, rom+"/VBNV"), content(t, rom+"/timestamp")
	if shell == "" || stamp == "" {
		return ""
	}
	return "amd.com/" + shell + "-" + stamp
}

func content(t *faketree.Tree, name string) string {
	text, _ := t.Get(name)
	return strings.TrimSpace(text)
}

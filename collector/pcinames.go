package collector

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
)

// PCINames has the names of PCI devices from the files pci.ids of the node, which
// distributions keep up to date. A nil *PCINames knows none.
type PCINames struct {
	// Files are tried in this order. A container needs them mounted.
	Files []string

	known sync.Map // names by ids
}

// maxPCINames bounds the read of a file, in bytes. It has 1.4 MB in 2026.
const maxPCINames = 16 << 20

// Of returns the name of a device as lspci prints it, or its ids: 1002:744c.
func (n *PCINames) Of(vendor, device uint32) string {
	ids := fmt.Sprintf("%04x:%04x", vendor, device)
	if n == nil {
		return ids
	}
	if name, ok := n.known.Load(ids); ok {
		return name.(string)
	}
	name := ids
	for _, file := range n.Files {
		if found := findPCIName(file, ids[:4], ids[5:]); found != "" {
			name = found
			break
		}
	}
	n.known.Store(ids, name)
	return name
}

// findPCIName looks for a line "<tab>device  name" below the line "vendor  name".
func findPCIName(file, vendor, device string) string {
	f, err := os.Open(file)
	if err != nil {
		return ""
	}
	defer f.Close()
	below := false
	for s := bufio.NewScanner(io.LimitReader(f, maxPCINames)); s.Scan(); {
		line := s.Text()
		switch {
		case line == "" || line[0] == '#':
		case line[0] != '\t':
			below = strings.HasPrefix(line, vendor+"  ")
		case below:
			if name, ok := strings.CutPrefix(line, "\t"+device+"  "); ok {
				return OneLine(name)
			}
		}
	}
	return ""
}

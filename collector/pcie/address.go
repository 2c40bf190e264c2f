package pcie

import (
	"strconv"
	"strings"
)

// isAddress reports whether s is a PCI address as the kernel writes it:
// 0000:1b:00.0. Behind a VMD or a hypervisor the domain is longer.
func isAddress(s string) bool {
	domain, rest, ok := strings.Cut(s, ":")
	if !ok || len(domain) < 4 || len(domain) > 8 || len(rest) != len("1b:00.0") {
		return false
	}
	return isHex(domain) && isHex(rest[:2]) && rest[2] == ':' && isHex(rest[3:5]) && rest[5] == '.' && rest[6] >= '0' && rest[6] <= '7'
}

func isHex(s string) bool {
	for _, c := range []byte(s) {
		if (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
	}
	return true
}

// slotOf returns the part of an address that is common to all functions of a
// card.
func slotOf(address string) string {
	slot, _, _ := strings.Cut(address, ".")
	return slot
}

// ends returns the functions from address up to the root, itself first, from
// the path of its directory:
// devices/pci0000:17/0000:17:00.0/0000:18:00.0/0000:19:09.0/0000:1b:00.0.
func ends(path, address string) []string {
	up := []string{address}
	parts := strings.Split(path, "/")
	for i := len(parts) - 2; i >= 0 && len(up) < maxDepth && isAddress(parts[i]); i-- {
		up = append(up, parts[i])
	}
	return up
}

// parseID parses an attribute such as class or vendor, of at most bits bits:
// 0x120000.
func parseID(s string, bits int) (uint32, bool) {
	digits, ok := strings.CutPrefix(s, "0x")
	if !ok || !isHex(digits) {
		return 0, false
	}
	n, err := strconv.ParseUint(digits, 16, bits)
	return uint32(n), err == nil
}

package podmap

import "strings"

// normalPCI returns a PCI address as the kernel writes it: lower case, with a
// domain of at least four digits. NVML pads the domain to eight, and some
// tools leave it out.
func normalPCI(s string) (string, bool) {
	s = strings.ToLower(s)
	if strings.Count(s, ":") == 1 {
		s = "0000:" + s
	}
	domain, rest, _ := strings.Cut(s, ":")
	if len(domain) < 4 || len(domain) > 8 || !isHex(domain) || len(rest) != 7 || rest[2] != ':' || rest[5] != '.' {
		return "", false
	}
	if !isHex(rest[:2]) || !isHex(rest[3:5]) || rest[3] > '1' || rest[6] < '0' || rest[6] > '7' {
		return "", false
	}
	for len(domain) > 4 && domain[0] == '0' {
		domain = domain[1:]
	}
	return domain + ":" + rest, true
}

// parsePCI reads a PCI address, and the <address>-<n> of AMD's FPGA plugin,
// which gives every card to a pod with one such id.
func parsePCI(id string) (Ref, bool) {
	address, n, virtual := strings.Cut(id, "-")
	pci, ok := normalPCI(address)
	if !ok || virtual && !isNumber(n) {
		return Ref{}, false
	}
	r := Ref{Form: FormPCI, ID: pci, PCI: pci}
	if virtual {
		r.Replica, r.Nominal = n, true
		r.ID += "-" + n
	}
	return r, true
}

// parseDashedPCI reads 0000-03-00-0-0x56c0, the address and the device id with
// which Intel's DRA driver names a GPU.
func parseDashedPCI(name string) (Ref, bool) {
	parts := strings.Split(name, "-")
	if len(parts) != 5 || !strings.HasPrefix(parts[4], "0x") || !isHex(parts[4][2:]) {
		return Ref{}, false
	}
	pci, ok := normalPCI(parts[0] + ":" + parts[1] + ":" + parts[2] + "." + parts[3])
	return Ref{Form: FormPCI, ID: strings.ToLower(name), PCI: pci}, ok && len(parts[0]) == 4
}

package pcie

import (
	"strconv"
	"strings"
)

// allOnes is the number of lanes in the link status of a function that does not
// answer: six bits of ones (PCI_EXP_LNKSTA_NLW).
const allOnes = 63

// parseSpeed returns the rate of a link in transfers per second: "8.0 GT/s
// PCIe", or "8 GT/s" before Linux 5.7. unknown: the kernel has no rate
// ("Unknown", "Unknown speed"), because there is no link or no answer.
func parseSpeed(s string) (rate float64, unknown, ok bool) {
	if strings.HasPrefix(s, "Unknown") {
		return 0, true, true
	}
	number, unit, _ := strings.Cut(s, " ")
	if unit != "GT/s" && unit != "GT/s PCIe" {
		return 0, false, false
	}
	whole, tenth, _ := strings.Cut(number, ".")
	if len(tenth) > 1 || len(whole) > 4 {
		return 0, false, false
	}
	n, err := strconv.ParseUint(whole+(tenth + "0")[:1], 10, 32)
	if err != nil || n == 0 {
		return 0, false, false
	}
	return float64(n) * 1e8, false, true
}

// parseWidth returns the number of lanes, 0 where there is no link.
func parseWidth(s string) (lanes int, ok bool) {
	n, err := strconv.ParseUint(s, 10, 16)
	return int(n), err == nil
}

package ruleproc

import (
	"fmt"
	"runtime"

	"github.com/prometheus/common/version"
)

// Build says what this program was made from. Two that say the same speak the
// same protocol, to which no version is given otherwise.
func Build() string {
	return fmt.Sprintf("%s %s %s", version.Version, version.GetRevision(), runtime.Version())
}

package peer

import (
	"os"
	"runtime"
	"runtime/debug"
	"time"
)

// settled is how long after the start the memory is what it will be.
const settled = 20 * time.Second

// Tune keeps a program small that does little, as the exporter does itself.
// What the operator set in the environment stands.
func Tune() {
	if os.Getenv("GOMAXPROCS") == "" {
		runtime.GOMAXPROCS(1)
	}
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(10)
	}
	time.AfterFunc(settled, debug.FreeOSMemory)
}

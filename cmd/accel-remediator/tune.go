package main

import (
	"os"
	"runtime/debug"
)

// tune trades processor time, of which this program uses next to none, for
// memory: garbage is collected when a tenth has been added, not as much again.
// Who sets GOGC decides otherwise.
func tune() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(10)
	}
}

//go:build !linux

package collector

import "os/exec"

// dieWithParent does nothing here: a worker ends when its stdin does.
func dieWithParent(*exec.Cmd) {}

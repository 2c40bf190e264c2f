package collector

import (
	"os/exec"
	"syscall"
)

// dieWithParent makes the kernel kill the worker when the parent ends. A worker
// also ends when its standard input does, unless it is stopped.
func dieWithParent(cmd *exec.Cmd) {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Pdeathsig = syscall.SIGKILL
}

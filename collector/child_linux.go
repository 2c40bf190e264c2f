package collector

import (
	"os/exec"
	"syscall"
)

// dieWithParent has the kernel kill the worker when the parent ends, however
// it ends. A worker also ends when its stdin does; this is for one that is
// stopped and cannot notice.
func dieWithParent(cmd *exec.Cmd) {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Pdeathsig = syscall.SIGKILL
}

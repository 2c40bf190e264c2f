// Package kubelet_test holds podmap against a real kubelet: its own binary, a
// container runtime and device plug-ins that are stubs, and static pods.
//
// Each test has a kubelet of its own, in a mount and a network namespace of
// its own, over a root directory of its own. Nothing of the machine is
// changed, no port is opened, and no process outlives the test binary.
package kubelet_test

import (
	"flag"
	"os"
	"testing"

	"go.uber.org/goleak"
	"golang.org/x/sys/unix"
)

var binary = flag.String("kubelet", "", "the kubelet's binary; its absence fails the tests, where without this they are skipped")

// defaultBinary is what the Makefile beside this file builds.
const defaultBinary = "../../.cache/kubelet-v1.35.4"

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[0] == insideName {
		inside(os.Args[1], os.Args[2:])
	}
	goleak.VerifyTestMain(m)
}

// needs skips the test where the machine cannot run a kubelet, and fails it
// there if a kubelet was asked for.
func needs(t *testing.T) (path string) {
	t.Helper()
	cannot := t.Skipf
	path = defaultBinary
	if *binary != "" {
		cannot, path = t.Fatalf, *binary
	}
	if os.Geteuid() != 0 {
		cannot("a kubelet needs root")
	}
	if unix.Access(path, unix.X_OK) != nil {
		cannot("there is no kubelet at %s; make -C test/kubelet builds it", path)
	}
	for _, file := range append([]string{"/dev/kmsg", "/sys/fs/cgroup"}, tunableFiles()...) {
		if _, err := os.Stat(file); err != nil {
			cannot("a kubelet needs what this machine lacks: %v", err)
		}
	}
	if err := probe(); err != nil {
		cannot("a kubelet needs a mount and a network namespace of its own here: %v", err)
	}
	return path
}

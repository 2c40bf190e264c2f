// Package kubelet_test tests podmap and podmap/kube with a real kubelet and a real
// API server: their own binaries, with a container runtime, device
// plug-ins and a DRA driver that are stubs.
//
// Each test has its own kubelet, in its own mount and network namespace, over
// its own root directory. Nothing of the machine is changed, no port is opened,
// and no process outlives the test binary.
package kubelet_test

import (
	"cmp"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"go.uber.org/goleak"
)

// The programs. Where a program is not named, the tests that need it use the
// build of the Makefile beside this file, and are skipped where that build or
// something else is missing.
var (
	kubeletBinary   = flag.String("kubelet", "", "the kubelet; a test fails where it cannot run")
	apiserverBinary = flag.String("kube-apiserver", "", "the API server; a test fails where it is not there")
	etcdBinary      = flag.String("etcd", "", "etcd; a test fails where it is not there")
	machine         = flag.Bool("machine", false, "print what a kubelet lacks on this machine, and exit; status 3 if it lacks anything")
)

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[0] == insideName {
		inside(os.Args[1], os.Args[2:])
	}
	flag.Parse()
	if *machine {
		if err := machineLacks(); err != nil {
			fmt.Println(err)
			os.Exit(3)
		}
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}

// needs returns the kubelet's path, where one can run.
func needs(t *testing.T) string {
	t.Helper()
	path := program(t, *kubeletBinary, "kubelet-v*")
	if err := machineLacks(); err != nil {
		if *kubeletBinary != "" {
			t.Fatal(err)
		}
		t.Skip(err)
	}
	return path
}

// program returns the path of the program that was asked for, or of the program
// that is built under a name of this pattern.
func program(t *testing.T, asked, built string) string {
	t.Helper()
	if asked == "" {
		found, _ := filepath.Glob("../../.cache/" + built)
		if len(found) == 0 {
			t.Skipf("there is no .cache/%s; the Makefile in test/kubelet builds it", built)
		}
		asked = found[len(found)-1]
	}
	path, err := exec.LookPath(asked)
	if err == nil {
		path, err = filepath.Abs(path)
	}
	must(t, err)
	return path
}

// machineLacks returns an error that names what a kubelet lacks on this machine.
func machineLacks() error {
	if os.Geteuid() != 0 {
		return errors.New("a kubelet needs root")
	}
	for _, file := range append([]string{"/dev/kmsg", "/sys/fs/cgroup"}, tunableFiles()...) {
		if _, err := os.Stat(file); err != nil {
			return fmt.Errorf("a kubelet needs what this machine lacks: %w", err)
		}
	}
	if err := cmp.Or(cgroups(), probe()); err != nil {
		return fmt.Errorf("a kubelet cannot run on this machine: %w", err)
	}
	return nil
}

// cgroups returns an error if the controllers that a kubelet requires are missing,
// of either version.
func cgroups() error {
	for _, file := range []string{"/sys/fs/cgroup/cgroup.controllers", "/sys/fs/cgroup/memory/memory.limit_in_bytes"} {
		if _, err := os.Stat(file); err == nil {
			return nil
		}
	}
	return errors.New("no cgroups are mounted at /sys/fs/cgroup")
}

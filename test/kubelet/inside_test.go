package kubelet_test

import (
	"cmp"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

const (
	// insideName is the name of this binary where it makes a namespace ready
	// and becomes the kubelet.
	insideName = "kubelet-inside"
	// home is where the kubelet keeps its things. The folder of the device
	// plug-ins' sockets in it is fixed.
	home = "/var/lib/kubelet"
	// binaryFD is the kubelet's binary, which may lie under a folder that is
	// hidden inside.
	binaryFD = 3
)

// tunables are what the kubelet wants of the kernel, and writes if it finds it
// otherwise, for the whole machine. So it finds it as it wants.
var tunables = map[string]string{
	"vm/overcommit_memory":      "1",
	"vm/panic_on_oom":           "0",
	"kernel/panic":              "10",
	"kernel/panic_on_oops":      "1",
	"kernel/keys/root_maxkeys":  "1000000",
	"kernel/keys/root_maxbytes": "25000000",
}

func tunableFiles() (files []string) {
	for name := range tunables {
		files = append(files, "/proc/sys/"+name)
	}
	return files
}

// command returns a command of this binary in a new mount namespace, with the
// folder root as the kubelet's home.
func command(root string, args ...string) *exec.Cmd {
	cmd := exec.Command("/proc/self/exe", args...)
	cmd.Args = append([]string{insideName, root}, args...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNS}
	return cmd
}

// probe tries whether the namespaces can be had.
var probe = sync.OnceValue(func() error {
	root, err := os.MkdirTemp("", "kl")
	if err != nil {
		return err
	}
	defer os.RemoveAll(root)
	net, err := newNetwork()
	if err != nil {
		return err
	}
	defer net.Close()
	if out, err := command(root).CombinedOutput(); err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
	return nil
})

// inside makes the namespace ready and becomes the kubelet, or ends where
// there are no arguments for one. It does not return.
func inside(root string, args []string) {
	if err := furnish(root); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	if len(args) == 0 {
		os.Exit(0)
	}
	path := fmt.Sprintf("/proc/self/fd/%d", binaryFD)
	err := syscall.Exec(path, append([]string{"kubelet"}, args...), []string{"PATH=" + os.Getenv("PATH")})
	fmt.Fprintln(os.Stderr, "exec of the kubelet:", err)
	os.Exit(1)
}

func furnish(root string) error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("make / private: %w", err)
	}
	if err := tune(root); err != nil {
		return err
	}
	// The root is opened before a directory above it is hidden.
	dir, err := os.Open(root)
	if err != nil {
		return err
	}
	defer dir.Close()
	for _, hidden := range []string{filepath.Dir(home), "/var/log"} {
		if err := unix.Mount("tmpfs", hidden, "tmpfs", 0, "size=64m"); err != nil {
			return fmt.Errorf("mount on %s: %w", hidden, err)
		}
	}
	if err := os.Mkdir(home, 0o755); err != nil {
		return err
	}
	if err := bind(fmt.Sprintf("/proc/self/fd/%d", dir.Fd()), home); err != nil {
		return err
	}
	// The kubelet removes <log>* for every container that it removes, which is
	// all of its working directory for a container without a log.
	empty := filepath.Join(home, "empty")
	return cmp.Or(os.MkdirAll(empty, 0o700), os.Chdir(empty))
}

// tune puts files of our own over the kernel's.
func tune(root string) error {
	for name, value := range tunables {
		file := filepath.Join(root, "sysctl", name)
		if err := cmp.Or(os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file, []byte(value+"\n"), 0o644)); err != nil {
			return err
		}
		if err := bind(file, "/proc/sys/"+name); err != nil {
			return err
		}
	}
	return nil
}

func bind(from, to string) error {
	if err := unix.Mount(from, to, "", unix.MS_BIND, ""); err != nil {
		return fmt.Errorf("bind %s over %s: %w", from, to, err)
	}
	return nil
}

package sim

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/accel-exporter/accel-exporter/internal/sim/faketree"
)

// DefaultPath is the default of the libraries: $ACCEL_SIM_STATE, else a file of
// this user.
func DefaultPath() string {
	if p := os.Getenv("ACCEL_SIM_STATE"); p != "" {
		return p
	}
	return filepath.Join("/tmp", fmt.Sprintf("accel-sim-%d", os.Getuid()), "state")
}

// Read loads the state file at path.
func Read(path string) (*State, error) {
	data, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("%s: no simulation is set up here; start one with `accel-sim run` or `accel-sim compile`", path)
	}
	if err != nil {
		return nil, err
	}
	s, err := ParseState(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	s.path = path
	return s, nil
}

// Write replaces the file at path atomically.
func (s *State) Write(path string) error {
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	return replaceFile(path, s.Bytes())
}

// Update edits the file at path, and the machine beside it, under a lock, so
// that concurrent edits are not lost.
func Update(path string, edit func(*State) error) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	lock, err := os.OpenFile(path+".lock", os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return err
	}
	defer lock.Close()
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
		return fmt.Errorf("lock %s: %w", path, err)
	}
	s, err := Read(path)
	if err != nil {
		return err
	}
	if err := edit(s); err != nil {
		return err
	}
	return errors.Join(s.Write(path), s.saveMachine(path))
}

// Install starts a new simulation at path, with its machine, and removes what
// an earlier one left.
func (s *State) Install(path string) error {
	taken, err := filepath.Glob(path + ".taken.*")
	if err != nil {
		return err
	}
	for _, f := range taken {
		if err := os.Remove(f); err != nil {
			return err
		}
	}
	// First, because a served kubelet creates its socket again when it sees the
	// state.
	if err := os.RemoveAll(filepath.Dir(KubeletSocket(path))); err != nil {
		return err
	}
	return errors.Join(s.Write(path), replaceFile(beginningFile(path), s.Bytes()), s.install(path))
}

// beginningFile has the state of the start of the scenario, for clear.
func beginningFile(path string) string { return path + ".intact" }

// Claim reserves the simulation at a state file for this process and the
// program that it executes, until both have ended.
func Claim(path string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	f, err := lockRun(path)
	if err != nil {
		return err
	}
	// The program inherits the lock.
	if _, _, errno := syscall.Syscall(syscall.SYS_FCNTL, f.Fd(), syscall.F_SETFD, 0); errno != 0 {
		return fmt.Errorf("lock %s: %w", f.Name(), errno)
	}
	claimed = append(claimed, f)
	return os.WriteFile(f.Name(), []byte(strconv.Itoa(os.Getpid())), 0o644)
}

// claimed are the files of Claim. A file without a reference is closed.
var claimed []*os.File

// Unclaim declares that no run uses the simulation at a state file. It fails
// while one does.
func Unclaim(path string) error {
	if _, err := os.Stat(runFile(path)); errors.Is(err, os.ErrNotExist) {
		return nil
	}
	f, err := lockRun(path)
	if err != nil {
		return err
	}
	return errors.Join(os.Remove(f.Name()), f.Close())
}

// Running returns an error if the simulation at a state file was started by a
// run that has ended.
func Running(path string) error {
	if _, err := os.Stat(runFile(path)); err != nil {
		return nil //nolint:nilerr // set up by compile
	}
	f, err := lockRun(path)
	if err != nil {
		return nil //nolint:nilerr // the run holds the lock
	}
	return errors.Join(fmt.Errorf("%s: the run of this simulation has ended; start one with `accel-sim run`", path), f.Close())
}

func runFile(path string) string { return path + ".run" }

func lockRun(path string) (*os.File, error) {
	f, err := os.OpenFile(runFile(path), os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		pid, _ := os.ReadFile(f.Name())
		f.Close()
		return nil, fmt.Errorf("%s: the process %s runs a simulation here; end it, or give another file by --state", path, cmp.Or(string(pid), "of another user"))
	}
	return f, nil
}

// WithDeviceFiles makes Install create device files, which requires CAP_MKNOD.
func (s *State) WithDeviceFiles() { s.Set("dev", "yes") }

// MountedTree makes Install leave Root empty: the tree will be mounted there.
func (s *State) MountedTree() { s.Set("sysfs", "fuse") }

// install writes a new machine beside the state file at path. It removes what
// an earlier simulation left.
func (s *State) install(path string) error {
	for _, old := range []string{TreeFile(path), intactFile(path), KernelLog(path)} {
		if err := os.Remove(old); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	if err := errors.Join(os.RemoveAll(Root(path)), os.RemoveAll(Dev(path))); err != nil {
		return err
	}
	if s.tree == nil {
		return nil
	}
	s.saved = nil
	if err := os.MkdirAll(Root(path), 0o755); err != nil {
		return err
	}
	if err := errors.Join(replaceFile(intactFile(path), s.begun.Bytes()), s.createLog(path)); err != nil {
		return err
	}
	return s.saveMachine(path)
}

// saveMachine updates the machine's files.
func (s *State) saveMachine(path string) error {
	if err := errors.Join(s.print(path), s.saveDev(path)); err != nil {
		return err
	}
	if s.tree == nil {
		return nil
	}
	now, saved := s.tree.Bytes(), s.saved
	if bytes.Equal(now, saved) {
		return nil
	}
	if err := replaceFile(TreeFile(path), now); err != nil {
		return err
	}
	s.saved = now
	if s.Get("sysfs") == "fuse" {
		return nil // a process with the tree mounted sees the change of the file
	}
	was, err := faketree.Parse(TreeFile(path), saved)
	if err == nil {
		err = s.tree.Sync(Root(path), was)
	}
	if err != nil {
		return fmt.Errorf("show the tree: %w", err)
	}
	return nil
}

// replaceFile replaces a file atomically.
func replaceFile(path string, data []byte) error {
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-*")
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err == nil {
		err = f.Chmod(0o644)
	}
	err = errors.Join(err, f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return nil
}

// saveDev updates the device files from the state.
func (s *State) saveDev(path string) error {
	if !s.Has("dev") {
		return nil
	}
	if err := os.MkdirAll(Dev(path), 0o755); err != nil {
		return err
	}
	loaded := s.Get("driver.state") != "unloaded" && s.gpus() > 0
	all := []error{deviceFile(path, "nvidiactl", 195, 255, loaded, 0o666), deviceFile(path, "nvidia-uvm", 508, 0, loaded, 0o666)}
	for i := range s.gpus() {
		mode := uint32(0o666)
		is := s.Get(fmt.Sprintf("gpu.%d.device_file", i))
		if is == "denied" {
			mode = 0o600
		}
		all = append(all, deviceFile(path, "nvidia"+strconv.Itoa(i), 195, uint32(i), loaded && is != "missing", mode))
	}
	return errors.Join(all...)
}

func deviceFile(state, name string, major, minor uint32, there bool, mode uint32) error {
	at := filepath.Join(Dev(state), name)
	if !there {
		if err := os.Remove(at); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return nil
	}
	err := unix.Mknod(at, unix.S_IFCHR|mode, int(unix.Mkdev(major, minor)))
	if err != nil && !errors.Is(err, fs.ErrExist) {
		return &fs.PathError{Op: "mknod", Path: at, Err: err}
	}
	return os.Chmod(at, fs.FileMode(mode)) // whatever the umask
}

package sim

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/accel-exporter/accel-exporter/internal/sim/faketree"
)

// machine is what a simulated node has beside the native libraries: /sys and
// /proc, and the kernel log. Like the state it is kept in files, beside the
// state file and under its lock:
//
//	STATE.tree         /sys and /proc, as a tree file
//	STATE.tree.intact  the same at the start of the scenario, for clear
//	STATE.root         a directory with the tree: sys and proc
//	STATE.kmsg         the kernel log, records of /dev/kmsg
//	STATE.dev          device files, where requested
//	STATE.kubelet      the kubelet's socket, while it is served
type machine struct {
	tree  *faketree.Tree
	saved []byte // the tree as in the file and in the directory
}

// TreeFile is the tree file of the simulation at a state file.
func TreeFile(state string) string { return state + ".tree" }

// Root is the directory with the tree: Root/sys, Root/proc.
func Root(state string) string { return state + ".root" }

// KernelLog is the kernel log of the simulation at a state file.
func KernelLog(state string) string { return state + ".kmsg" }

func intactFile(state string) string { return TreeFile(state) + ".intact" }

// ExporterFlags point an exporter to the simulation at a state file instead of
// the real machine.
func ExporterFlags(state, library string) []string {
	flags := []string{
		"--nvml.library=" + library,
		"--path.sysfs=" + filepath.Join(Root(state), "sys"),
		"--path.procfs=" + filepath.Join(Root(state), "proc"),
		"--kernel-log.path=" + KernelLog(state),
	}
	if _, err := os.Stat(Dev(state)); err == nil {
		flags = append(flags, "--path.devfs="+Dev(state))
	}
	return flags
}

// errNoMachine is the error of bus faults without a tree.
var errNoMachine = errors.New("this simulation has no /sys; set one up with `accel-sim run` or `accel-sim compile`")

// hardware returns the machine, read from its files at the first call.
func (s *State) hardware() (*machine, error) {
	if s.machine != nil {
		return s.machine, nil
	}
	if s.path == "" {
		return nil, errNoMachine
	}
	data, err := os.ReadFile(TreeFile(s.path))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, errNoMachine
	}
	if err != nil {
		return nil, err
	}
	tree, err := faketree.Parse(TreeFile(s.path), data)
	if err != nil {
		return nil, err
	}
	s.machine = &machine{tree: tree, saved: data}
	return s.machine, nil
}

// intact returns the tree at the start of the scenario.
func (s *State) intact() (*faketree.Tree, error) {
	if s.path == "" {
		return s.begun, nil
	}
	return faketree.Load(intactFile(s.path))
}

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
	m := s.machine
	if m == nil {
		return nil
	}
	m.saved = nil
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
	if s.machine == nil {
		return nil
	}
	now, saved := s.machine.tree.Bytes(), s.machine.saved
	if bytes.Equal(now, saved) {
		return nil
	}
	if err := replaceFile(TreeFile(path), now); err != nil {
		return err
	}
	s.machine.saved = now
	if s.Get("sysfs") == "fuse" {
		return nil // a process with the tree mounted sees the change of the file
	}
	was, err := faketree.Parse(TreeFile(path), saved)
	if err == nil {
		err = s.machine.tree.Sync(Root(path), was)
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

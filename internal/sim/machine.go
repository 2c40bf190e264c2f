package sim

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/accel-exporter/accel-exporter/internal/sim/faketree"
)

// A simulated node has, beside the native libraries, /sys and /proc, and the
// kernel log. Like the state they are kept in files, beside the state file and
// under its lock:
//
//	STATE.tree         /sys and /proc, as a tree file
//	STATE.tree.intact  the same at the start of the scenario, for clear
//	STATE.root         a directory with the tree: sys and proc
//	STATE.kmsg         the kernel log, records of /dev/kmsg
//	STATE.dev          device files, where requested
//	STATE.kubelet      the kubelet's socket, while it is served

// TreeFile is the tree file of the simulation at a state file.
func TreeFile(state string) string { return state + ".tree" }

// Root is the directory with the tree: Root/sys, Root/proc.
func Root(state string) string { return state + ".root" }

// KernelLog is the kernel log of the simulation at a state file.
func KernelLog(state string) string { return state + ".kmsg" }

func intactFile(state string) string { return TreeFile(state) + ".intact" }

// Dev is the directory of the device files of the simulation at a state file,
// where it has them. They have the numbers of NVIDIA's driver and no hardware.
func Dev(state string) string { return state + ".dev" }

// PodLogs is the directory of the pods' logs of the simulation at a state file.
func PodLogs(state string) string { return filepath.Join(Root(state), podLogs) }

// podLogs is that directory in the tree.
const podLogs = "/var/log/pods"

// KubeletSocket is the socket of the kubelet of the simulation at a state file.
func KubeletSocket(state string) string { return filepath.Join(state+".kubelet", "kubelet.sock") }

// ExporterFlags point an exporter to the simulation at a state file instead of
// the real machine.
func ExporterFlags(state, library string) []string {
	nvidia := "--nvml.library=" + library
	if s, err := Read(state); err == nil && s.Has("driver.absent") {
		nvidia = "--no-collector.nvidia" // or it would look for the library of the real machine
	}
	flags := []string{
		nvidia,
		"--path.sysfs=" + filepath.Join(Root(state), "sys"),
		"--path.procfs=" + filepath.Join(Root(state), "proc"),
		"--kernel-log.path=" + KernelLog(state),
	}
	if _, err := os.Stat(Dev(state)); err == nil {
		flags = append(flags, "--path.devfs="+Dev(state))
	}
	return flags
}

// PodFlags point an exporter to the pods of the simulation at a state file,
// beside ExporterFlags.
func PodFlags(state string) []string {
	return []string{"--podresources.socket=" + KubeletSocket(state), "--path.pod-logs=" + PodLogs(state)}
}

// errNoMachine is the error of bus faults without a tree.
var errNoMachine = errors.New("this simulation has no /sys; set one up with `accel-sim run` or `accel-sim compile`")

// hardware returns the tree, read from its file at the first call.
func (s *State) hardware() (*faketree.Tree, error) {
	if s.tree != nil {
		return s.tree, nil
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
	s.tree, s.saved = tree, data
	return tree, nil
}

// intact returns the tree at the start of the scenario.
func (s *State) intact() (*faketree.Tree, error) {
	if s.path == "" {
		return s.begun, nil
	}
	return faketree.Load(intactFile(s.path))
}

// onTree changes the tree of a simulation that has one.
func (s *State) onTree(change func(*faketree.Tree) error) error {
	tree, err := s.hardware()
	if errors.Is(err, errNoMachine) {
		return nil
	}
	if err != nil {
		return err
	}
	return change(tree)
}

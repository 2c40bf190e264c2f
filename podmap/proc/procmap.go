// Package proc finds the pod that a process belongs to, from procfs and the
// kubelet's log directory. It calls neither the container runtime nor the API
// server.
//
// It needs a procfs of the host's PID namespace, mounted anywhere. A process
// that it cannot see is Hidden, not a process outside every pod.
package proc

import (
	"errors"
	"io/fs"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/accel-exporter/accel-exporter/collector/sysfs"
)

// Kind is the kind of a process's owner.
type Kind uint8

// The kinds of processes.
const (
	// Hidden: there is such a process, and not enough of it can be read: by
	// permission, or because its cgroup lies outside of our cgroup namespace.
	// It is the zero Kind.
	Hidden Kind = iota
	// Pod: it runs in a container of a pod, or beside one in the pod's cgroup.
	Pod
	// Host: it runs outside of every pod.
	Host
	// Gone: there is no such process.
	Gone
)

// Owner is the pod that a process belongs to, or its Slurm job.
type Owner struct {
	Kind Kind
	// PodUID is the UID by which the kubelet made the pod's cgroup. That of a
	// static pod is a hash, which the API server does not know.
	PodUID string
	// Command is the short name of the process, at most 15 bytes.
	Command string
	// UID is the number of the process's real user, empty if unknown.
	UID string
	// Job is the number of the Slurm job that started the process, or empty.
	Job string
}

// Bounds.
const (
	maxProcesses = 4096
	maxCgroup    = 16 << 10
	// maxAge is how long an answer is reused: a process can be moved.
	maxAge = 30 * time.Second
)

// Map remembers the owners of processes. It is used by one goroutine at a
// time.
type Map struct {
	proc  sysfs.FS
	known map[int]entry
}

type entry struct {
	owner Owner
	start uint64 // in clock ticks since boot: with the PID it is an identity
	read  time.Time
}

// New returns a Map over procfs.
func New(proc sysfs.FS) *Map { return &Map{proc: proc, known: map[int]entry{}} }

// Owner returns what the process belongs to.
func (m *Map) Owner(pid int, now time.Time) Owner {
	dir := strconv.Itoa(pid)
	stat, err := m.proc.ReadBytes(dir+"/stat", sysfs.Page)
	if err != nil {
		delete(m.known, pid)
		return Owner{Kind: kindOf(err)}
	}
	command, start, ok := parseStat(string(stat))
	if !ok {
		return Owner{}
	}
	if e, ok := m.known[pid]; ok && e.start == start && now.Sub(e.read) < maxAge && now.Sub(e.read) >= 0 {
		return e.owner
	}
	o := m.read(dir)
	o.Command = command
	if len(m.known) < maxProcesses {
		m.known[pid] = entry{o, start, now}
	}
	return o
}

func (m *Map) read(dir string) Owner {
	b, err := m.proc.ReadBytes(dir+"/cgroup", maxCgroup)
	if err != nil {
		return Owner{Kind: kindOf(err)}
	}
	o := parseCgroup(string(b))
	if status, err := m.proc.ReadBytes(dir+"/status", sysfs.Page); err == nil {
		o.UID = parseUID(string(status))
	}
	return o
}

// parseUID returns the real user of /proc/PID/status (proc_pid_status(5)), or "".
// The line of the name comes before it, with line breaks escaped.
func parseUID(status string) string {
	_, rest, _ := strings.Cut(status, "\nUid:")
	if fields := strings.Fields(rest); len(fields) > 0 {
		if _, err := strconv.ParseUint(fields[0], 10, 32); err == nil {
			return fields[0]
		}
	}
	return ""
}

// Retain forgets all processes except the given ones.
func (m *Map) Retain(pids []int) {
	for pid := range m.known {
		if !slices.Contains(pids, pid) {
			delete(m.known, pid)
		}
	}
}

func kindOf(err error) Kind {
	if errors.Is(err, fs.ErrNotExist) || sysfs.Errno(err) == syscall.ESRCH {
		return Gone
	}
	return Hidden
}

// parseStat returns the command and the start time in /proc/PID/stat
// (proc_pid_stat(5), fields 2 and 22). The command may contain any
// byte, including closing brackets.
func parseStat(s string) (command string, start uint64, ok bool) {
	open, end := strings.IndexByte(s, '('), strings.LastIndexByte(s, ')')
	if open < 0 || end < open {
		return "", 0, false
	}
	fields := strings.Fields(s[end+1:])
	const startTime = 22 - 3 // the fields after the command begin with the third
	if len(fields) <= startTime {
		return "", 0, false
	}
	start, err := strconv.ParseUint(fields[startTime], 10, 64)
	return printable(s[open+1 : end]), start, err == nil
}

// printable keeps a command, which a process chooses itself, from breaking a
// line.
func printable(s string) string {
	s = strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return '?'
		}
		return r
	}, strings.ToValidUTF8(s, "?"))
	if len(s) > 64 {
		s = strings.ToValidUTF8(s[:64], "")
	}
	return s
}

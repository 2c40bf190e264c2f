package sim

import (
	"bufio"
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/accel-exporter/accel-exporter/internal/sim/faketree"
)

const header = "accel-sim-state 1"

// State is a state file in memory: `key value` lines in order. The C reader is
// fixtures/nvml/state.c.
type State struct {
	lines []line
	index map[string]int

	path    string         // of the file it was read from, "" for none
	machine *machine       // nil until a fault needs it
	begun   *faketree.Tree // the machine's tree at the start of the scenario, until it is in a file
	kernel  []string       // lines to append to the kernel log
	later   []later        // later steps of a fault
}

// NewState returns an empty state.
func NewState() *State { return &State{index: map[string]int{}} }

// ParseState parses the output of Bytes.
func ParseState(data []byte) (*State, error) {
	sc := bufio.NewScanner(bytes.NewReader(data))
	sc.Buffer(nil, 1<<20)
	if !sc.Scan() || sc.Text() != header {
		return nil, fmt.Errorf("not a state file: it does not begin with %q", header)
	}
	s := NewState()
	for n := 2; sc.Scan(); n++ {
		key, value, ok := strings.Cut(sc.Text(), " ")
		if !ok || key == "" {
			return nil, fmt.Errorf("line %d: want `key value`, found %q", n, sc.Text())
		}
		s.Set(key, value)
	}
	return s, sc.Err()
}

// Bytes returns the content of the file.
func (s *State) Bytes() []byte {
	var b bytes.Buffer
	b.WriteString(header + "\n")
	for _, l := range s.lines {
		if l.key != "" {
			b.WriteString(l.key + " " + l.value + "\n")
		}
	}
	return b.Bytes()
}

// Get returns the value of a key, "" where there is none.
func (s *State) Get(key string) string {
	if i, ok := s.index[key]; ok {
		return s.lines[i].value
	}
	return ""
}

// Has reports whether the key exists.
func (s *State) Has(key string) bool {
	_, ok := s.index[key]
	return ok
}

// Set sets the value of a key. Line breaks are not allowed.
func (s *State) Set(key, value string) {
	value = strings.Map(func(r rune) rune {
		if r == '\n' || r == '\r' {
			return ' '
		}
		return r
	}, value)
	if i, ok := s.index[key]; ok {
		s.lines[i].value = value
		return
	}
	s.index[key] = len(s.lines)
	s.lines = append(s.lines, line{key, value})
}

// Delete removes a key.
func (s *State) Delete(key string) {
	if i, ok := s.index[key]; ok {
		s.lines[i] = line{}
		delete(s.index, key)
	}
}

// keys returns the keys with a prefix, in order.
func (s *State) keys(prefix string) []string {
	var out []string
	for _, l := range s.lines {
		if l.key != "" && strings.HasPrefix(l.key, prefix) {
			out = append(out, l.key)
		}
	}
	return out
}

func (s *State) integer(key string) int64 {
	n, _ := strconv.ParseInt(s.Get(key), 10, 64)
	return n
}

// now is the scenario's time, in seconds.
func (s *State) now() float64 {
	if at, ok := strings.CutPrefix(s.Get("clock"), "frozen "); ok {
		t, _ := strconv.ParseFloat(at, 64)
		return t
	}
	return float64(time.Now().UnixNano()-s.integer("epoch")) / 1e9
}

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
	// The lock stays with the program that replaces this process.
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

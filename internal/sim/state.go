package sim

import (
	"bufio"
	"bytes"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/accel-exporter/accel-exporter/internal/sim/faketree"
)

const header = "accel-sim-state 1"

// State is a state file in memory, `key value` lines in order, with the machine
// beside it. The C reader is fixtures/nvml/state.c.
type State struct {
	lines []line
	index map[string]int

	path   string         // of the file it was read from, "" for none
	tree   *faketree.Tree // the machine's /sys and /proc, nil until a fault needs them
	saved  []byte         // the tree as in its file and its directory
	begun  *faketree.Tree // the tree at the start of the scenario, until it is in a file
	kernel []string       // lines to append to the kernel log
	later  []later        // later steps of a fault
}

// line is a key and its value.
type line struct{ key, value string }

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

// attr reads `name=value` from a record of the state file.
func attr(record, name string) string {
	for f := range strings.FieldsSeq(record) {
		if v, ok := strings.CutPrefix(f, name+"="); ok {
			return v
		}
	}
	return ""
}

// nextIndex returns the first free number below a prefix of keys.
func (s *State) nextIndex(prefix string) int {
	n := 0
	for _, key := range s.keys(prefix) {
		number, _, _ := strings.Cut(strings.TrimPrefix(key, prefix), ".")
		if i, err := strconv.Atoi(number); err == nil && i >= n {
			n = i + 1
		}
	}
	return n
}

const keptEvents = 2000

// addEvent appends to the event log that the libraries' event sets read.
func (s *State) addEvent(gpu int, kind, data uint64, gi, ci string, more ...string) {
	seq := s.integer("seq") + 1
	s.Set("seq", strconv.FormatInt(seq, 10))
	rec := fmt.Sprintf("gpu=%d type=%d data=%d", gpu, kind, data)
	if gi != "" {
		rec += " gi=" + gi
	}
	if ci != "" {
		rec += " ci=" + ci
	}
	s.Set(fmt.Sprintf("event.%d", seq), strings.Join(append([]string{rec}, more...), " "))
	s.Delete(fmt.Sprintf("event.%d", seq-keptEvents))
}

func (s *State) addFault(rec string) {
	n := s.integer("fault_seq") + 1
	s.Set("fault_seq", strconv.FormatInt(n, 10))
	s.Set(fmt.Sprintf("fault.%d", n), rec)
}

// log logs a line when the edit is done.
func (s *State) log(format string, args ...any) {
	s.kernel = append(s.kernel, fmt.Sprintf(format, args...))
}

// later is a step of a fault with a duration, at a time after the previous
// step.
type later struct {
	after time.Duration
	do    func(*State) error
}

// then adds a step to the current fault.
func (s *State) then(after time.Duration, do func(*State) error) {
	s.later = append(s.later, later{after, do})
}

// finish performs the remaining steps at once.
func (s *State) finish() error {
	for len(s.later) > 0 {
		next := s.later[0]
		s.later = s.later[1:]
		if err := next.do(s); err != nil {
			return err
		}
	}
	return nil
}

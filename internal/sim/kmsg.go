package sim

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// maxLine is the size of a record's text, in bytes; the kernel's is about a
// thousand.
const maxLine = 1000

// print appends the logged lines to the kernel log, if the simulation has one.
func (s *State) print(path string) error {
	lines := s.kernel
	s.kernel = nil
	if len(lines) == 0 {
		return nil
	}
	f, err := os.OpenFile(KernelLog(path), os.O_WRONLY|os.O_APPEND, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	seq, err := nextRecord(KernelLog(path))
	if err == nil {
		// One write: a reader never sees half a record.
		_, err = f.Write(records(lines, seq))
	}
	return errors.Join(err, f.Close())
}

// createLog creates the kernel log of a machine.
func (s *State) createLog(path string) error {
	lines := s.kernel
	s.kernel = nil
	return os.WriteFile(KernelLog(path), records(lines, 0), 0o644)
}

// records formats lines as /dev/kmsg does (Documentation/ABI/testing/dev-kmsg):
// facility and level, number, microseconds of the kernel's clock, flags; text.
func records(lines []string, seq int) []byte {
	var b strings.Builder
	var now unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_MONOTONIC, &now) // cannot fail on Linux
	usec := now.Nano() / 1000
	for i, text := range lines {
		if len(text) > maxLine {
			text = text[:maxLine]
		}
		fmt.Fprintf(&b, "%d,%d,%d,-;%s\n", level(text), seq+i, usec+int64(i), escapeRecord(text))
	}
	return []byte(b.String())
}

// level is the kernel's level of a line: 3 an error, 4 a warning, 6
// informational, as the RAS errors of AMD's driver.
func level(text string) int {
	switch {
	case strings.HasPrefix(text, "NVRM: loading"), strings.Contains(text, "}socket: "), strings.HasPrefix(text, "[drm] "):
		return 6
	case strings.HasPrefix(text, "NVRM:"), strings.Contains(text, "severity=Uncorrectable"):
		return 3
	}
	return 4
}

// escapeRecord escapes anything but printable ASCII as the kernel does.
func escapeRecord(text string) string {
	var b strings.Builder
	for i := range len(text) {
		if c := text[i]; c < ' ' || c >= 0x7f || c == '\\' {
			fmt.Fprintf(&b, `\x%02x`, c)
			continue
		}
		b.WriteByte(text[i])
	}
	return b.String()
}

// nextRecord returns the number after the last record's.
func nextRecord(file string) (int, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return 0, err
	}
	text := strings.TrimSuffix(string(data), "\n")
	_, rest, _ := strings.Cut(text[strings.LastIndexByte(text, '\n')+1:], ",")
	number, _, _ := strings.Cut(rest, ",")
	n, err := strconv.Atoi(number)
	if err != nil {
		n = -1 // the log is empty, or its last line is not a record
	}
	return n + 1, nil
}

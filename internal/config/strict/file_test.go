package strict_test

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/accel-exporter/accel-exporter/internal/config/strict"
)

func write(t *testing.T, path, content string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}

// expect calls Changed and compares.
func expect(t *testing.T, f *strict.File, want bool) {
	t.Helper()
	if got, err := f.Changed(); got != want || err != nil {
		t.Fatalf("Changed() = %v, %v, want %v", got, err, want)
	}
}

// read reads and compares.
func read(t *testing.T, f *strict.File, want string) {
	t.Helper()
	if got, err := f.Read(); string(got) != want || err != nil {
		t.Fatalf("Read() = %q, %v, want %q", got, err, want)
	}
}

// loaded returns a file that has been read.
func loaded(t *testing.T) (path string, f *strict.File) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "f.yml")
	write(t, path, "title: a\n")
	f = strict.NewFile(path)
	read(t, f, "title: a\n")
	return path, f
}

func TestHalfWritten(t *testing.T) {
	path, f := loaded(t)
	w, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	for _, part := range []string{"title: {", "a", ": 30s", "}"} {
		if _, err := w.WriteString(part); err != nil {
			t.Fatal(err)
		}
		expect(t, f, false) // it grows from call to call
	}
	expect(t, f, true)
	read(t, f, "title: {a: 30s}")

	// An unchanged file is reported once, whatever its content.
	if _, err := w.WriteString("}}}"); err != nil {
		t.Fatal(err)
	}
	expect(t, f, false)
	expect(t, f, true)
	read(t, f, "title: {a: 30s}}}}")
	expect(t, f, false)
	expect(t, f, false)
}

// TestUnreadable: what is no regular file is refused without waiting for it.
func TestUnreadable(t *testing.T) {
	dir := t.TempDir()
	pipe := filepath.Join(dir, "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Skip(err)
	}
	for _, path := range []string{dir, pipe} {
		f := strict.NewFile(path)
		if data, err := f.Read(); data != nil || err == nil {
			t.Errorf("Read(%s) = %q, %v", path, data, err)
		}
	}
}

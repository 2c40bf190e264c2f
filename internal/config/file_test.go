package config_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/accel-exporter/accel-exporter/internal/config"
	"github.com/accel-exporter/accel-exporter/internal/strict"
)

func write1(t *testing.T, path, interval string) {
	t.Helper()
	if err := os.WriteFile(path, []byte("collect: {interval: "+interval+"}\n"), 0o644); err != nil {
		t.Fatal(err)
	}
}

// expect calls Changed and compares.
func expect(t *testing.T, f *config.File, want bool) {
	t.Helper()
	if got, err := f.Changed(); got != want || err != nil {
		t.Fatalf("Changed() = %v, %v, want %v", got, err, want)
	}
}

// load loads and returns the interval.
func load(t *testing.T, f *config.File) time.Duration {
	t.Helper()
	c, err := f.Load()
	if err != nil {
		t.Fatal(err)
	}
	return c.Collect.Interval
}

// TestConfigMap swaps a volume the way the kubelet's atomic writer does:
// accel.yml → ..data/accel.yml, ..data → a new directory.
func TestConfigMap(t *testing.T) {
	dir := t.TempDir()
	publish := func(version, interval string) {
		if err := os.Mkdir(filepath.Join(dir, version), 0o755); err != nil {
			t.Fatal(err)
		}
		write1(t, filepath.Join(dir, version, "accel.yml"), interval)
		if err := os.Symlink(version, filepath.Join(dir, "..data_tmp")); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(filepath.Join(dir, "..data_tmp"), filepath.Join(dir, "..data")); err != nil {
			t.Fatal(err)
		}
	}
	publish("..2026_01", "1s")
	path := filepath.Join(dir, "accel.yml")
	if err := os.Symlink("..data/accel.yml", path); err != nil {
		t.Fatal(err)
	}
	f := config.NewFile(path)
	if got := load(t, f); got != time.Second {
		t.Fatal(got)
	}
	sum := f.Sum()
	expect(t, f, false)
	expect(t, f, false)

	publish("..2026_02", "2s")
	if err := os.RemoveAll(filepath.Join(dir, "..2026_01")); err != nil {
		t.Fatal(err)
	}
	expect(t, f, false) // seen for the first time
	expect(t, f, true)
	if got := load(t, f); got != 2*time.Second || f.Sum() == sum {
		t.Errorf("loaded %v, sum %s", got, f.Sum())
	}
	expect(t, f, false)
	expect(t, f, false)
}

func TestHalfWritten(t *testing.T) {
	path := filepath.Join(t.TempDir(), "accel.yml")
	write1(t, path, "1s")
	f := config.NewFile(path)
	load(t, f)
	w, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	for _, part := range []string{"collect: {", "interval", ": 30s", "}"} {
		if _, err := w.WriteString(part); err != nil {
			t.Fatal(err)
		}
		expect(t, f, false) // it grows from call to call
	}
	expect(t, f, true)
	if got := load(t, f); got != 30*time.Second {
		t.Error(got)
	}

	// One that is broken for good is reported once, and its sum is not taken.
	sum := f.Sum()
	if _, err := w.WriteString("}}}"); err != nil {
		t.Fatal(err)
	}
	expect(t, f, false)
	expect(t, f, true)
	var mistakes strict.Mistakes
	if _, err := f.Load(); !errors.As(err, &mistakes) {
		t.Error(err)
	}
	expect(t, f, false)
	expect(t, f, false)
	if f.Sum() != sum {
		t.Error("sum of a file that was refused")
	}
}

func TestDeleted(t *testing.T) {
	path := filepath.Join(t.TempDir(), "accel.yml")
	write1(t, path, "1s")
	f := config.NewFile(path)
	load(t, f)
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if changed, err := f.Changed(); changed || !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("Changed() = %v, %v", changed, err)
		}
	}
	if _, err := f.Load(); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
	write1(t, path, "2s")
	expect(t, f, false)
	expect(t, f, true)
	if got := load(t, f); got != 2*time.Second {
		t.Error(got)
	}
}

// TestUnreadable: what is no regular file is refused without waiting for it.
func TestUnreadable(t *testing.T) {
	dir := t.TempDir()
	pipe := filepath.Join(dir, "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Skip(err)
	}
	for _, path := range []string{dir, pipe} {
		f := config.NewFile(path)
		if c, err := f.Load(); c != nil || err == nil {
			t.Errorf("Load(%s) = %v, %v", path, c, err)
		}
		if changed, err := f.Changed(); changed || err == nil {
			t.Errorf("Changed() of %s = %v, %v", path, changed, err)
		}
	}
}

func TestForbidden(t *testing.T) {
	if os.Getuid() == 0 {
		t.Skip("root may read everything")
	}
	path := filepath.Join(t.TempDir(), "accel.yml")
	write1(t, path, "1s")
	f := config.NewFile(path)
	load(t, f)
	if err := os.Chmod(path, 0); err != nil {
		t.Fatal(err)
	}
	if _, err := f.Load(); !errors.Is(err, fs.ErrPermission) {
		t.Error(err)
	}
	if changed, err := f.Changed(); changed || !errors.Is(err, fs.ErrPermission) {
		t.Errorf("Changed() = %v, %v", changed, err)
	}
	if err := os.Chmod(path, 0o600); err != nil {
		t.Fatal(err)
	}
	expect(t, f, false)
	expect(t, f, true)
	if got := load(t, f); got != time.Second {
		t.Error(got)
	}
}

// TestChangedWithoutLoad: an owner that reads by other means is told of each
// change once.
func TestChangedWithoutLoad(t *testing.T) {
	path := filepath.Join(t.TempDir(), "accel.yml")
	write1(t, path, "1s")
	f := config.NewFile(path)
	expect(t, f, false)
	expect(t, f, false)
	write1(t, path, "20s")
	expect(t, f, false)
	expect(t, f, true)
	expect(t, f, false)
}

package deploy

import (
	"debug/buildinfo"
	"debug/elf"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"testing"
)

// pack makes the package of the exporter that is at hand and unpacks it.
func pack(t *testing.T) (file, tree string) {
	t.Helper()
	if _, err := exec.LookPath("dpkg-deb"); err != nil {
		t.Skip("dpkg-deb is not installed")
	}
	programs, out, tree := filepath.Dir(installed(t)), t.TempDir(), t.TempDir()
	command(t, "deploy/debian/build.sh", programs, out, runtime.GOARCH)
	files, err := filepath.Glob(filepath.Join(out, "*.deb"))
	if err != nil || len(files) != 1 {
		t.Fatalf("%q, %v", files, err)
	}
	command(t, "dpkg-deb", "--raw-extract", files[0], tree)
	return files[0], tree
}

// installed copies the programs that are at hand to a folder of their own, and
// returns where the exporter is.
func installed(t *testing.T) string {
	t.Helper()
	exporter, dir := os.Getenv("ACCEL_EXPORTER"), t.TempDir()
	for _, name := range []string{"accel-exporter"} {
		data, err := os.ReadFile(filepath.Join(filepath.Dir(exporter), name))
		if err != nil {
			t.Fatalf("ACCEL_EXPORTER=%q: %v; make test-deploy builds it", exporter, err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	texts := command(t, "go", "-C", "tools", "run", "./licenses", "-texts", "accel-exporter", "..")
	if err := os.WriteFile(filepath.Join(dir, "accel-exporter.third-party-licenses"), []byte(texts), 0o644); err != nil {
		t.Fatal(err)
	}
	return filepath.Join(dir, "accel-exporter")
}

// command runs a program in the root of the repository.
func command(t *testing.T, name string, args ...string) string {
	t.Helper()
	cmd := exec.Command(name, args...)
	cmd.Dir = root
	// Compressed it would be the same, only later.
	cmd.Env = append(os.Environ(), "SOURCE_DATE_EPOCH=1700000000", "COMPRESSION=none")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v: %s", name, err, out)
	}
	return string(out)
}

// TestPackage: the checks of lintian.
func TestPackage(t *testing.T) {
	file, tree := pack(t)
	again, _ := pack(t)
	if sum(t, file) != sum(t, again) {
		t.Error("made twice, it is not the same bytes")
	}
	version := strings.TrimSpace(string(read(t, "VERSION")))
	control := string(mustRead(t, tree, "DEBIAN/control"))
	for _, field := range []string{"Package: accel-exporter", "Version: " + version, "Architecture: " + runtime.GOARCH, "Maintainer: ", "Description: ", "Section: ", "Priority: optional"} {
		if !strings.Contains("\n"+control, "\n"+field) {
			t.Errorf("control has no %q", field)
		}
	}
	conffiles := strings.Fields(string(mustRead(t, tree, "DEBIAN/conffiles")))
	sums := string(mustRead(t, tree, "DEBIAN/md5sums"))
	command(t, "sh", "-c", "cd '"+tree+"' && md5sum --quiet -c DEBIAN/md5sums")
	eachFile(t, tree, func(name string, info fs.FileInfo) {
		switch {
		case info.Mode().Perm()&0o022 != 0 || info.Mode().Perm()&0o444 != 0o444:
			t.Errorf("%s has mode %o", name, info.Mode().Perm())
		case strings.HasPrefix(name, "usr/local/"):
			t.Errorf("%s is where only administrators put files", name)
		case strings.HasPrefix(name, "etc/") && (len(conffiles) != 1 || conffiles[0] != "/"+name):
			t.Errorf("%s is no conffile, so an upgrade would lose what was changed in it", name)
		case !strings.HasPrefix(name, "etc/") && !strings.HasPrefix(name, "DEBIAN/") && !strings.Contains(sums, "  "+name+"\n"):
			t.Errorf("%s has no checksum", name)
		}
	})
	// The owner is what dpkg writes, not who made the package.
	for line := range strings.Lines(command(t, "dpkg-deb", "--contents", file)) {
		if !strings.Contains(line, " root/root ") || strings.HasPrefix(line, "drwx------") {
			t.Errorf("owner or mode: %s", line)
		}
	}
	for _, name := range []string{"copyright", "changelog.gz"} {
		mustRead(t, tree, "usr/share/doc/accel-exporter/"+name)
	}
	for _, pattern := range []string{"usr/share/accel-exporter/rules/*.yaml", "usr/share/accel-exporter/dashboards/*.json", "etc/accel-exporter"} {
		if files, err := filepath.Glob(filepath.Join(tree, pattern)); err != nil || len(files) == 0 {
			t.Errorf("the package lacks %s: %v", pattern, err)
		}
	}
	program, err := buildinfo.ReadFile(filepath.Join(tree, "usr/bin/accel-exporter"))
	if err != nil {
		t.Fatal(err)
	}
	texts := string(mustRead(t, tree, "usr/share/doc/accel-exporter/third-party-licenses"))
	for _, m := range program.Deps {
		if !strings.Contains(texts, "\n"+m.Path+" "+m.Version+": LICENSE") && !strings.Contains(texts, "\n"+m.Path+" "+m.Version+": COPYING") {
			t.Errorf("no licence of %s %s", m.Path, m.Version)
		}
	}
	for _, script := range []string{"postinst", "prerm", "postrm"} {
		text := string(mustRead(t, tree, "DEBIAN/"+script))
		if !strings.HasPrefix(text, "#!/bin/sh\nset -e\n") {
			t.Errorf("%s goes on after an error", script)
		}
		command(t, "sh", "-n", filepath.Join(tree, "DEBIAN", script))
	}
}

// TestUnit: the unit starts the program where the package has it, and systemd
// reports nothing.
func TestUnit(t *testing.T) {
	_, tree := pack(t)
	program := regexp.MustCompile(`(?m)^ExecStart=(\S+)`).FindStringSubmatch(string(mustRead(t, tree, "lib/systemd/system/accel-exporter.service")))
	if program == nil {
		t.Fatal("the unit starts nothing")
	}
	mustRead(t, tree, program[1])
	if _, err := exec.LookPath("systemd-analyze"); err != nil {
		t.Skip("systemd-analyze is not installed")
	}
	// In a root of its own, where what it calls of the system is not.
	if err := os.MkdirAll(filepath.Join(tree, "bin"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(tree, "bin/kill"), nil, 0o700); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command("systemd-analyze", "verify", "--man=no", "--recursive-errors=no", "--root="+tree, "accel-exporter.service").CombinedOutput()
	if err != nil || strings.Contains(string(out), "accel-exporter.service") {
		t.Errorf("%v: %s", err, out)
	}
}

// TestLibrary: the exporter needs the C library and nothing else, and the one
// that the package asks for has all that it binds.
func TestLibrary(t *testing.T) {
	m := regexp.MustCompile(`libc6 \(>= 2\.(\d+)\)`).FindSubmatch(read(t, "deploy/debian/control"))
	if m == nil {
		t.Fatal("the package asks for no C library")
	}
	asked, _ := strconv.Atoi(string(m[1]))
	program, err := elf.Open(os.Getenv("ACCEL_EXPORTER"))
	if err != nil {
		t.Fatal(err)
	}
	defer program.Close()
	// What the image's base has, and every Debian.
	libraries, err := program.ImportedLibraries()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range libraries {
		if name != "libc.so.6" && !strings.HasPrefix(name, "ld-linux") {
			t.Errorf("the program needs %s too", name)
		}
	}
	// Functions of NVIDIA's library are bound when they are called, if at all.
	if now, err := program.DynValue(elf.DT_FLAGS); err != nil || len(now) > 0 && elf.DynFlag(now[0])&elf.DF_BIND_NOW != 0 {
		t.Errorf("the program binds everything at its start: %v, %v", now, err)
	}
	symbols, err := program.ImportedSymbols()
	if err != nil {
		t.Fatal(err)
	}
	needed := 0
	for _, s := range symbols {
		if minor, ok := strings.CutPrefix(s.Version, "GLIBC_2."); ok {
			minor, _, _ = strings.Cut(minor, ".")
			n, err := strconv.Atoi(minor)
			if err != nil {
				t.Fatalf("%s: %s", s.Name, s.Version)
			}
			needed = max(needed, n)
		}
	}
	if needed == 0 || needed > asked {
		t.Errorf("the program needs glibc 2.%d, the package asks for 2.%d", needed, asked)
	}
}

func mustRead(t *testing.T, dir, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		t.Fatal(err)
	}
	if len(data) == 0 {
		t.Errorf("%s is empty", name)
	}
	return data
}

func eachFile(t *testing.T, dir string, look func(name string, info fs.FileInfo)) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		info, err := d.Info()
		if err == nil {
			look(strings.TrimPrefix(path, dir+"/"), info)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

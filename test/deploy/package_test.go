package deploy

import (
	"compress/gzip"
	"debug/buildinfo"
	"debug/elf"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// packages returns the files that make packages wrote into the folder PACKAGES, and
// the deb unpacked.
func packages(t *testing.T) (deb, rpm, tree string) {
	t.Helper()
	dir := os.Getenv("PACKAGES")
	one := func(pattern string) string {
		files, err := filepath.Glob(filepath.Join(dir, pattern))
		if err != nil || len(files) != 1 {
			t.Fatalf("PACKAGES=%q: %q, %v; make test-deploy builds them", dir, files, err)
		}
		return files[0]
	}
	deb, rpm, tree = one("*.deb"), one("*.rpm"), t.TempDir()
	if _, err := exec.LookPath("dpkg-deb"); err != nil {
		t.Skip("dpkg-deb is not installed")
	}
	command(t, "dpkg-deb", "--raw-extract", deb, tree)
	return deb, rpm, tree
}

// command runs a program in the root of the repository.
func command(t *testing.T, name string, args ...string) string {
	t.Helper()
	cmd := exec.Command(name, args...)
	cmd.Dir = root
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v: %s", name, err, out)
	}
	return string(out)
}

// TestPackage: the deb has its parts and the licence of each linked module, a changed
// configuration survives an upgrade, and lintian reports nothing.
func TestPackage(t *testing.T) {
	deb, _, tree := packages(t)
	conffiles := strings.Fields(string(mustRead(t, tree, "DEBIAN/conffiles")))
	eachFile(t, tree, func(name string, _ fs.FileInfo) {
		if strings.HasPrefix(name, "etc/") && !slices.Contains(conffiles, "/"+name) {
			t.Errorf("%s is no conffile, so an upgrade would lose what was changed in it", name)
		}
	})
	for _, pattern := range []string{
		"usr/share/accel-exporter/rules/*.yaml", "usr/share/accel-exporter/dashboards/*.json", "etc/accel-exporter/*.yml",
		"usr/share/doc/accel-exporter/copyright", "usr/share/doc/accel-exporter/changelog.gz", "usr/share/doc/accel-exporter/docs/runbooks/*.md",
	} {
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
		if !strings.Contains(texts, "\n"+m.Path+"/") {
			t.Errorf("no licence of %s", m.Path)
		}
	}
	if _, err := exec.LookPath("lintian"); err != nil {
		t.Skip("lintian is not installed")
	}
	if out := command(t, "lintian", "--fail-on=error,warning", deb); strings.Contains(out, "O: ") {
		t.Errorf("something is overridden: %s", out)
	}
}

// TestPackagesAreReproducible: made again, each has the same bytes.
func TestPackagesAreReproducible(t *testing.T) {
	deb, rpm, _ := packages(t)
	again := t.TempDir()
	if err := os.CopyFS(filepath.Join(again, "package"), os.DirFS(filepath.Join(filepath.Dir(deb), "package"))); err != nil {
		t.Fatal(err)
	}
	command(t, "make", "packages", "DIST="+again)
	for _, file := range []string{deb, rpm} {
		if sum(t, file) != sum(t, filepath.Join(again, filepath.Base(file))) {
			t.Errorf("%s made twice is not the same bytes", filepath.Base(file))
		}
	}
}

// TestPackagedFiles: the program that is packaged runs, is position-independent, and
// accepts its configuration as it is and with every example in it; each of its commands
// has a man page and completes in bash.
func TestPackagedFiles(t *testing.T) {
	_, _, tree := packages(t)
	program := filepath.Join(tree, "usr/bin/accel-exporter")
	if file, err := elf.Open(program); err != nil || file.Type != elf.ET_DYN {
		t.Errorf("not position-independent: %v, %v", file, err)
	}
	args := regexp.MustCompile(`(?m)^ARGS="(.*)"$`).FindSubmatch(mustRead(t, tree, "etc/default/accel-exporter"))
	if args == nil {
		t.Fatal("etc/default/accel-exporter has no ARGS")
	}
	given := append(strings.Fields(strings.ReplaceAll(string(args[1]), "=/etc/", "="+tree+"/etc/")), "--config.check")
	command(t, program, given...)
	for name, valid := range map[string]string{"accel.yml": "", "web.yml": "$2y$10$wvfCyjHtxZLqsTYdA8BTwu3pB9EzdiVpkVHvTW7MxbNuUVdLmVXmm"} {
		path := filepath.Join("etc/accel-exporter", name)
		text := regexp.MustCompile(`(?m)^#(\S)`).ReplaceAllString(string(mustRead(t, tree, path)), "$1")
		if text = strings.ReplaceAll(text, "$2y$10$...", valid); strings.Contains(text, "tls_server_config") {
			text = regexp.MustCompile(`(?m)^tls_server_config:\n(  .*\n)*`).ReplaceAllString(text, "") // it has no certificate
		}
		write(t, filepath.Join(tree, path), []byte(text))
	}
	command(t, program, given...)

	commands := strings.Fields(command(t, program, "--completion-bash", ""))
	if len(commands) < 5 {
		t.Fatalf("the commands are %q", commands)
	}
	for _, c := range append(commands, "") {
		if c == "help" || c == "version" {
			continue
		}
		file, err := os.Open(filepath.Join(tree, "usr/share/man/man1", strings.TrimSuffix("accel-exporter-"+c, "-")+".1.gz"))
		if err != nil {
			t.Error(err)
			continue
		}
		unpacked, err := gzip.NewReader(file)
		if err != nil {
			t.Fatal(err)
		}
		page, err := io.ReadAll(unpacked)
		if err != nil || !regexp.MustCompile(`\A\.TH "[a-z-]+" 1\n\.SH NAME\n\S+ \\- [a-z].*\n`).Match(page) || strings.Contains(string(page), "usage:") {
			t.Errorf("%s, %v: %.300s", file.Name(), err, page)
		}
	}

	for typed, want := range map[string]string{
		"w": "who", "who --wi": "--wide", "rules ": "check", "alerts --u": "--url", "doctor --js": "--json",
		"--metrics.detail ": "full", "help to": "top", "alerts --color a": "always",
	} {
		words := strings.Split(typed, " ")
		script := `. "$0"/usr/share/bash-completion/completions/accel-exporter
COMP_WORDS=("$0/usr/bin/accel-exporter" "$@") COMP_CWORD=$# && _accel-exporter_bash_autocomplete && printf '%s\n' "${COMPREPLY[@]}"`
		if out := command(t, "bash", append([]string{"-c", script, tree}, words...)...); !slices.Contains(strings.Fields(out), want) {
			t.Errorf("%q is completed with %q", typed, out)
		}
	}
}

// TestUnit: the unit starts the program where the package has it, and systemd
// reports nothing.
func TestUnit(t *testing.T) {
	_, _, tree := packages(t)
	program := regexp.MustCompile(`(?m)^ExecStart=(\S+)`).FindStringSubmatch(string(mustRead(t, tree, "lib/systemd/system/accel-exporter.service")))
	if program == nil {
		t.Fatal("the unit starts nothing")
	}
	mustRead(t, tree, program[1])
	if _, err := exec.LookPath("systemd-analyze"); err != nil {
		t.Skip("systemd-analyze is not installed")
	}
	// In a separate root, without the system's programs that the unit calls.
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

// TestLibrary: the exporter needs the C library and nothing else, and the
// version that the package requires has every symbol that the exporter binds.
func TestLibrary(t *testing.T) {
	m := regexp.MustCompile(`libc6 \(>= 2\.(\d+)\)`).FindSubmatch(read(t, "deploy/package/nfpm.yml"))
	if m == nil {
		t.Fatal("the package asks for no C library")
	}
	asked, _ := strconv.Atoi(string(m[1]))
	_, _, tree := packages(t)
	program, err := elf.Open(filepath.Join(tree, "usr/bin/accel-exporter"))
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

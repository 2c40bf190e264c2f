package repocheck

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os/exec"
	"path"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/accel-exporter/accel-exporter"

// rule says what the packages that match in must not import, directly or
// through others. A rule whose packages do not exist yet applies from the day
// they do.
type rule struct {
	// in, except and ban name import paths; "p/..." is p and all below it, "./"
	// stands for this module and "third-party" for what is neither in it nor
	// in the standard library.
	in, except []string
	ban        []string
	why        string
	// direct leaves out what is imported through others.
	direct bool
}

var vendors = []string{"./collector/nvidia/...", "./collector/dcgm/...", "./collector/fpga/...", "./collector/pcie/...", "./collector/kernellog/..."}

var (
	prometheusClient = []string{"github.com/prometheus/..."}
	commandLine      = []string{"github.com/alecthomas/kingpin/..."}
	ruleEngine       = []string{"github.com/prometheus/prometheus/...", "github.com/prometheus/alertmanager/...", "github.com/go-openapi/..."}
)

var rules = []rule{
	{
		in: []string{"./collector"}, ban: []string{"third-party", "./collector/...", "./internal/...", "./podmap/...", "./rules/...", "./internal/judge/health/...", "./internal/judge/baseline/..."},
		why: "the nouns must be usable, and readable, without any vendor, client library or transport",
	},
	{
		in: vendors, ban: slices.Concat(prometheusClient, commandLine, []string{"./podmap/...", "./rules/...", "./internal/exposition/...", "./internal/config/..."}),
		why: "a source reads hardware; how it is published, configured or alerted on is not its business",
	},
	{
		in: []string{"./collector/fpga/...", "./collector/pcie/...", "./collector/kernellog/..."}, ban: []string{"os/exec"},
		why: "what can be read from files needs no subprocess", direct: true,
	},
	{
		in: []string{"./podmap/..."}, ban: slices.Concat([]string{"./collector/..."}, prometheusClient),
		why: "who holds a device is found without knowing what the device measures",
	},
	{
		in: []string{"./podmap", "./cmd/accel-exporter"}, ban: []string{"k8s.io/api/...", "k8s.io/apimachinery/...", "k8s.io/client-go/..."},
		why: "the kubelet's PodResources API needs one generated package and gRPC; the types of the API server would add 13 MB to every node",
	},
	{
		in: []string{"./podmap/kube/..."}, ban: []string{"third-party", "./collector/...", "./podmap/...", "./internal/exposition/...", "./internal/config/..."},
		why: "what the API server says of pods needs a plain list and watch, and no client of 13 MB",
	},
	{
		in: []string{"./internal/exposition/...", "./internal/compat/..."}, ban: slices.Concat(vendors, []string{"./rules/..."}),
		why: "exposition renders whatever a Snapshot holds, whoever measured it",
	},
	{
		in: []string{"./rules/...", "./internal/judge/health/...", "./internal/judge/baseline/..."}, ban: vendors,
		why: "judgement works on readings, so that a new vendor is judged without a change",
	},
	{
		in: []string{"./rules/alertmanager/..."}, ban: []string{"./collector/...", "./rules/...", "./internal/judge/allocation/..."},
		why: "who is told of alerts, and how, has nothing to do with what they are about",
	},
	{
		in: []string{"./internal/judge/allocation/..."}, ban: slices.Concat(vendors, prometheusClient),
		why: "use is attributed by readings, so that a new vendor is attributed without a change",
	},
	{
		in: []string{"./podmap/proc/..."}, ban: []string{"third-party", "./collector/...", "./podmap/...", "./internal/judge/allocation/...", "./internal/exposition/...", "./internal/config/...", "./internal/strict/...", "./internal/sim/..."},
		why: "what a process belongs to is read from files of the node alone",
	},
	{
		in: []string{"./collector/dcgm/dcgmfield"}, ban: []string{"third-party", "./collector/...", "./internal/exposition/...", "./internal/compat/..."},
		why: "what DCGM calls its fields is a table, which the worker and the page both read",
	},
	{
		in: []string{"./collector/sysfs/..."}, ban: []string{"third-party", "./collector/...", "./internal/..."},
		why: "one bounded read per attribute needs nothing",
	},
	{
		in: []string{"./..."}, except: []string{"./cmd/..."}, ban: slices.Concat(commandLine, []string{"os/signal"}),
		why: "the command line and signals belong to cmd; a package that reads them cannot be tested or reused",
	},
	{
		in: []string{"./..."}, ban: []string{"k8s.io/client-go/..."},
		why: "the node's kubelet says who holds a device; a client that watches whole clusters from every node does not scale",
	},
	{
		in: []string{"./cmd/accel-exporter", "./collector/...", "./internal/exposition/...", "./internal/config/..."}, ban: []string{"./internal/sim/..."},
		why: "the product contains no simulator", direct: true,
	},
	{
		in: []string{"./cmd/accel-exporter", "./internal/config/...", "./internal/ruleproc/..."}, ban: slices.Concat(ruleEngine, []string{"./rules/...", "./rules/alertmanager/...", "./internal/ruleapp/..."}),
		why: "every byte of the exporter is resident on every node, and PromQL with Alertmanager's client is 5 MB of it; accel-rules has them",
	},
	{
		in: []string{"./..."}, except: []string{"./internal/traceapp/...", "./cmd/accel-traces"},
		ban: []string{"go.opentelemetry.io/otel/sdk/...", "go.opentelemetry.io/otel/exporters/...", "go.opentelemetry.io/proto/...", "./internal/traceapp/..."},
		why: "every byte of the exporter is resident on every node, and OpenTelemetry's SDK with its exporters is megabytes of it; accel-traces has them",
	},
	{
		in: []string{"./internal/trace/lifecycle/..."}, ban: slices.Concat(vendors, prometheusClient, []string{"go.opentelemetry.io/..."}),
		why: "how a hold goes is told without knowing who is told of it",
	},
	{
		in: []string{"./..."}, except: []string{"./collector/nvidia/...", "./collector/dcgm/..."}, ban: []string{"C"},
		why: "the packages that cross into C run in worker processes", direct: true,
	},
}

// pkg is what a rule needs of go list.
type pkg struct {
	ImportPath string
	Standard   bool
	Doc        string
	Imports    []string
	Deps       []string
	CgoFiles   []string
	GoFiles    []string
	Dir        string
}

// goList lists the packages of the module and all they import, without tests.
func goList(t *testing.T) map[string]*pkg {
	t.Helper()
	cmd := exec.Command("go", "list", "-deps", "-json=ImportPath,Standard,Doc,Imports,Deps,CgoFiles,GoFiles,Dir", "./...")
	cmd.Dir = root
	out, err := cmd.Output()
	if err != nil {
		if exit, ok := errors.AsType[*exec.ExitError](err); ok {
			err = fmt.Errorf("%w: %s", err, exit.Stderr)
		}
		t.Fatal(err)
	}
	list := map[string]*pkg{}
	for dec := json.NewDecoder(strings.NewReader(string(out))); ; {
		p := new(pkg)
		if err := dec.Decode(p); errors.Is(err, io.EOF) {
			return list
		} else if err != nil {
			t.Fatal(err)
		}
		list[p.ImportPath] = p
	}
}

// short writes ./ for the module's name.
func short(importPath string) string {
	if rest, mine := strings.CutPrefix(importPath, module); mine {
		return "." + rest
	}
	return importPath
}

func isOwn(p *pkg) bool { return strings.HasPrefix(short(p.ImportPath), ".") }

func matches(pattern, name string) bool {
	base, tree := strings.CutSuffix(pattern, "/...")
	return name == base || tree && strings.HasPrefix(name, base+"/")
}

func matchesAny(patterns []string, name string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool { return matches(p, name) })
}

// applies returns the module's packages that r is about.
func (r *rule) applies(list map[string]*pkg) []*pkg {
	var in []*pkg
	for _, p := range list {
		if name := short(p.ImportPath); isOwn(p) && matchesAny(r.in, name) && !matchesAny(r.except, name) {
			in = append(in, p)
		}
	}
	slices.SortFunc(in, func(a, b *pkg) int { return strings.Compare(a.ImportPath, b.ImportPath) })
	return in
}

// broken returns one line for each import that r bans.
func (r *rule) broken(list map[string]*pkg) []string {
	var lines []string
	for _, p := range r.applies(list) {
		imports := p.Deps
		if r.direct {
			imports = p.Imports
		}
		for _, i := range imports {
			dep := list[i]
			foreign := dep != nil && !isOwn(dep) && !dep.Standard && slices.Contains(r.ban, "third-party")
			if i != p.ImportPath && (foreign || matchesAny(r.ban, short(i))) {
				lines = append(lines, fmt.Sprintf("%s imports %s%s: %s", p.ImportPath, i, via(list, p, i), r.why))
			}
		}
	}
	return lines
}

// via names the direct import of p that leads to target.
func via(list map[string]*pkg, p *pkg, target string) string {
	if slices.Contains(p.Imports, target) {
		return ""
	}
	for _, i := range p.Imports {
		if d := list[i]; d != nil && slices.Contains(d.Deps, target) {
			return " through " + i
		}
	}
	return ""
}

func TestImports(t *testing.T) {
	list := goList(t)
	for _, r := range rules {
		if len(r.applies(list)) == 0 {
			t.Logf("no package yet that matches %v", r.in)
		}
		for _, line := range r.broken(list) {
			t.Error(line)
		}
	}
}

// TestImportsAreChecked: each kind of violation is found in a list that has
// it.
func TestImportsAreChecked(t *testing.T) {
	mine := func(name string) string { return module + "/" + name }
	list := map[string]*pkg{
		"os/exec":   {ImportPath: "os/exec", Standard: true},
		"os/signal": {ImportPath: "os/signal", Standard: true},
		"C":         {ImportPath: "C", Standard: true},
		"github.com/prometheus/client_golang/prometheus": {ImportPath: "github.com/prometheus/client_golang/prometheus"},
		"github.com/alecthomas/kingpin/v2":               {ImportPath: "github.com/alecthomas/kingpin/v2"},
		"go.yaml.in/yaml/v3":                             {ImportPath: "go.yaml.in/yaml/v3"},
		"k8s.io/client-go/rest":                          {ImportPath: "k8s.io/client-go/rest"},
		"github.com/prometheus/prometheus/promql":        {ImportPath: "github.com/prometheus/prometheus/promql"},
	}
	bad := []struct{ in, imports string }{
		{"collector", "go.yaml.in/yaml/v3"},
		{"collector", mine("collector/nvidia")},
		{"collector/nvidia", "github.com/prometheus/client_golang/prometheus"},
		{"collector/nvidia", "github.com/alecthomas/kingpin/v2"},
		{"collector/nvidia", mine("podmap")},
		{"collector/fpga/dfl", "os/exec"},
		{"collector/pcie", "C"},
		{"podmap", mine("collector")},
		{"internal/exposition", mine("collector/nvidia")},
		{"rules", mine("collector/fpga")},
		{"collector/sysfs", "go.yaml.in/yaml/v3"},
		{"internal/config", "os/signal"},
		{"allocation", mine("collector/nvidia")},
		{"allocation", "github.com/prometheus/client_golang/prometheus"},
		{"procmap", mine("podmap")},
		{"procmap", "go.yaml.in/yaml/v3"},
		{"podmap/kubelet", "k8s.io/client-go/rest"},
		{"cmd/accel-exporter", mine("internal/sim")},
		{"cmd/accel-exporter", mine("notify")},
		{"internal/config", "github.com/prometheus/prometheus/promql"},
	}
	for _, b := range bad {
		t.Run(b.in+" "+path.Base(b.imports), func(t *testing.T) {
			p := &pkg{ImportPath: mine(b.in), Imports: []string{b.imports}, Deps: []string{b.imports}}
			with := map[string]*pkg{p.ImportPath: p}
			maps.Copy(with, list)
			var lines []string
			for _, r := range rules {
				lines = append(lines, r.broken(with)...)
			}
			if len(lines) == 0 || !strings.Contains(lines[0], b.imports) {
				t.Errorf("not found: %q", lines)
			}
		})
	}

	// And what one imports is charged to those who import it.
	through := map[string]*pkg{
		mine("collector"):    {ImportPath: mine("collector"), Imports: []string{mine("x")}, Deps: []string{mine("x"), "go.yaml.in/yaml/v3"}},
		mine("x"):            {ImportPath: mine("x"), Imports: []string{"go.yaml.in/yaml/v3"}, Deps: []string{"go.yaml.in/yaml/v3"}},
		"go.yaml.in/yaml/v3": list["go.yaml.in/yaml/v3"],
	}
	if lines := rules[0].broken(through); len(lines) != 1 || !strings.Contains(lines[0], "through "+mine("x")) {
		t.Errorf("indirect import: %q", lines)
	}
}

func TestPackageComments(t *testing.T) {
	for _, p := range goList(t) {
		if isOwn(p) && p.Doc == "" && len(p.GoFiles)+len(p.CgoFiles) > 0 {
			t.Errorf("%s has no package comment", p.ImportPath)
		}
	}
}

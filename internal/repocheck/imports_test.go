package repocheck

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/accel-exporter/accel-exporter"

// rule bans imports, direct and indirect, of the packages that match in.
type rule struct {
	// in, except and ban are import paths; "p/..." is p and everything below
	// it, "./" stands for this module and "third-party" for what is neither in
	// this module nor in the standard library.
	in, except []string
	ban        []string
	why        string
	// direct restricts the rule to direct imports.
	direct bool
}

var (
	prometheusClient = []string{"github.com/prometheus/..."}
	commandLine      = []string{"github.com/alecthomas/kingpin/..."}
	ruleEngine       = []string{"github.com/prometheus/prometheus/...", "github.com/prometheus/alertmanager/...", "github.com/go-openapi/..."}
)

// notSources are the folders below collector that are no sources.
var notSources = []string{"sysfs", "solo"}

// sources returns the names of the sources: the folders below collector. A new
// one is banned and checked without an entry here.
func sources() []string {
	entries, err := os.ReadDir(filepath.Join(root, "collector"))
	if err != nil {
		panic(err)
	}
	var names []string
	for _, e := range entries {
		if e.IsDir() && !slices.Contains(notSources, e.Name()) {
			names = append(names, e.Name())
		}
	}
	return names
}

// sourcePackages are the patterns of the packages of all sources. The table of
// DCGM's fields is none: the compatible page reads it too.
func sourcePackages() []string {
	var patterns []string
	for _, name := range sources() {
		patterns = append(patterns, "./collector/"+name)
		if name != "dcgm" {
			patterns = append(patterns, "./collector/"+name+"/...")
		}
	}
	return patterns
}

// layers: cmd > rules > internal > podmap > collector. An import goes down.
var layers = []rule{
	{
		in: []string{"./collector/..."}, ban: []string{"./podmap/...", "./internal/...", "./rules/...", "./cmd/..."},
		why: "collector is the bottom layer: the model and the sources know no consumer",
	},
	{
		in: []string{"./podmap/..."}, ban: []string{"./internal/...", "./rules/...", "./cmd/..."},
		why: "podmap is above collector and below internal: it maps ids and draws no conclusions",
	},
	{
		in: []string{"./internal/..."}, except: []string{"./internal/gen/..."}, ban: []string{"./rules/...", "./cmd/..."},
		why: "internal is below rules and cmd: judges and exposition must work without alerts",
	},
	{
		in: []string{"./rules/..."}, ban: []string{"./cmd/..."},
		why: "rules is below cmd: the engine must run without the program's flags",
	},
}

var rules = slices.Concat(layers, []rule{
	{
		in: []string{"./collector"}, ban: []string{"third-party", "./..."},
		why: "the model must be usable, and readable, without any source, client library or transport",
	},
	{
		in: sourcePackages(), ban: slices.Concat(prometheusClient, commandLine),
		why: "a source reads hardware; exposition, flags and alerts belong to other packages",
	},
	{
		in: sourcePackages(), ban: []string{"os/exec"}, direct: true,
		why: "a source starts no programs; workers are started by package collector",
	},
	{
		in: []string{"./podmap/..."}, ban: slices.Concat(sourcePackages(), prometheusClient),
		why: "allocations are found without reading the devices",
	},
	{
		in: []string{"./podmap", "./cmd/accel-exporter"}, ban: []string{"k8s.io/api/...", "k8s.io/apimachinery/...", "k8s.io/client-go/..."},
		why: "the kubelet's PodResources API needs one generated package and gRPC; the types of the API server would add 13 MB to every node",
	},
	{
		in: []string{"./podmap/kube/..."}, ban: []string{"third-party", "./collector", "./podmap"},
		why: "reading pods from the API server takes a plain list and watch, not a client of 13 MB",
	},
	{
		in: []string{"./internal/exposition/...", "./internal/compat/...", "./internal/judge/...", "./internal/trace/...", "./rules/..."}, ban: sourcePackages(),
		why: "what is measured reaches them as a Snapshot, so that a new vendor needs no change there",
	},
	{
		in: []string{"./internal/judge/..."}, ban: prometheusClient,
		why: "conclusions are drawn from a Snapshot, not from exposition",
	},
	{
		in: []string{"./rules/alertmanager/..."}, ban: []string{"./collector/...", "./rules", "./rules/engine/...", "./internal/judge/..."},
		why: "notification does not depend on the content of alerts",
	},
	{
		in: []string{"./podmap/proc/..."}, ban: []string{"third-party", "./collector", "./podmap", "./podmap/kube/..."},
		why: "the owner of a process is read from files of the node",
	},
	{
		in: []string{"./collector/dcgm/dcgmfield"}, ban: []string{"third-party", "./collector", "./collector/dcgm"},
		why: "the table of DCGM's fields is read by the worker and by the page",
	},
	{
		in: []string{"./collector/sysfs/...", "./collector/solo/..."}, ban: []string{"third-party", "./..."},
		why: "a bounded read and a worker goroutine need the standard library only",
	},
	{
		in: []string{"./..."}, except: []string{"./cmd/...", "./internal/sim/terminal"}, ban: slices.Concat(commandLine, []string{"os/signal"}),
		why: "the command line and signals belong to cmd; a package that reads them cannot be tested or reused",
	},
	{
		in: []string{"./..."}, except: []string{"./cmd/accel-exporter", "./internal/sim/terminal"}, ban: []string{"github.com/gdamore/tcell/..."},
		why: "one command draws on a terminal",
	},
	{
		in: []string{"./..."}, ban: []string{"k8s.io/client-go/..."},
		why: "the kubelet of the node reports allocations; a client that watches a whole cluster from each node does not scale",
	},
	{
		in: []string{"./cmd/accel-exporter", "./collector/...", "./internal/exposition/...", "./internal/config/..."}, ban: []string{"./internal/sim/..."},
		why: "the product contains no simulator", direct: true,
	},
	{
		in: []string{"./collector/...", "./podmap/...", "./internal/..."}, except: []string{"./internal/gen/..."}, ban: ruleEngine,
		why: "PromQL and Alertmanager's client belong to rules: what is measured and served does not depend on them",
	},
	{
		in: []string{"./..."}, except: []string{"./internal/trace/...", "./cmd/accel-exporter"},
		ban: []string{"go.opentelemetry.io/otel/sdk/...", "go.opentelemetry.io/otel/exporters/...", "go.opentelemetry.io/proto/..."},
		why: "one package knows how traces are sent",
	},
	{
		in: []string{"./internal/trace/lifecycle/..."}, ban: slices.Concat(prometheusClient, []string{"go.opentelemetry.io/..."}),
		why: "the lifecycle of an allocation does not depend on where spans go",
	},
	{
		in: []string{"./..."}, except: []string{"./collector/nvidia/...", "./collector/dcgm/..."}, ban: []string{"C"},
		why: "the packages that cross into C run in worker processes", direct: true,
	},
})

func TestImports(t *testing.T) {
	list := goList(t)
	for _, r := range rules {
		for _, line := range r.broken(list) {
			t.Error(line)
		}
	}
}

// TestImportsAreChecked asserts that each kind of banned import is found: of a package
// that is neither the module's nor the standard library's, of the standard library, of
// the module, of cgo, and one through another package.
func TestImportsAreChecked(t *testing.T) {
	const yaml = "go.yaml.in/yaml/v3"
	mine := func(name string) string { return module + "/" + name }
	for _, bad := range []struct{ in, imports, through string }{
		{"collector", yaml, ""},
		{"collector", yaml, mine("x")},
		{"collector/fpga/dfl", "os/exec", ""},
		{"collector/pcie", "C", ""},
		{"podmap", mine("internal/strict"), ""},
	} {
		p := &pkg{ImportPath: mine(bad.in), Imports: []string{bad.imports}, Deps: []string{bad.imports}}
		list := map[string]*pkg{p.ImportPath: p, yaml: {ImportPath: yaml}}
		if bad.through != "" {
			p.Imports = []string{bad.through}
			list[bad.through] = &pkg{ImportPath: bad.through, Deps: []string{bad.imports}}
		}
		var lines []string
		for _, r := range rules {
			lines = append(lines, r.broken(list)...)
		}
		if found := strings.Join(lines, "\n"); !strings.Contains(found, bad.imports) || !strings.Contains(found, bad.through) {
			t.Errorf("%s imports %s: found %q", bad.in, bad.imports, found)
		}
	}
}

func TestPackageComments(t *testing.T) {
	for _, p := range goList(t) {
		if isOwn(p) && p.Doc == "" && len(p.GoFiles)+len(p.CgoFiles) > 0 {
			t.Errorf("%s has no package comment", p.ImportPath)
		}
	}
}

package repocheck

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
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
		in: []string{"./podmap", "./podmap/kube", "./cmd/accel-exporter"}, ban: []string{"k8s.io/api/...", "k8s.io/apimachinery/...", "k8s.io/client-go/..."},
		why: "the kubelet's APIs need two generated packages and gRPC, and pods from the API server a plain list and watch; its types and client would add 13 MB to every node",
	},
	{
		in: []string{"./podmap/kube/..."}, ban: []string{"./collector", "./podmap"},
		why: "what is known of pods does not depend on their devices",
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
		in: []string{"./rules/alertmanager/..."}, ban: []string{"./internal/judge/..."},
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
		in: []string{"./..."}, except: []string{"./cmd/..."}, ban: slices.Concat(commandLine, []string{"os/signal"}),
		why: "the command line and signals belong to cmd; a package that reads them cannot be tested or reused",
	},
	{
		in: []string{"./..."}, except: []string{"./cmd/accel-exporter"}, ban: []string{"github.com/gdamore/tcell/..."},
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
		in: []string{"./..."}, except: []string{"./collector/nvidia/...", "./collector/dcgm/..."}, ban: []string{"C"},
		why: "the packages that cross into C run in worker processes", direct: true,
	},
})

// pkg has the fields of go list that the rules use.
type pkg struct {
	ImportPath    string
	Standard      bool
	Imports, Deps []string
}

// goList returns the packages of the module and everything they import, without tests.
func goList(t *testing.T) map[string]*pkg {
	t.Helper()
	cmd := exec.Command("go", "list", "-deps", "-json=ImportPath,Standard,Imports,Deps", "./...")
	cmd.Dir = root
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	list := map[string]*pkg{}
	for dec := json.NewDecoder(bytes.NewReader(out)); ; {
		p := new(pkg)
		if err := dec.Decode(p); errors.Is(err, io.EOF) {
			return list
		} else if err != nil {
			t.Fatal(err)
		}
		list[p.ImportPath] = p
	}
}

// short abbreviates the module's name to ".".
func short(importPath string) string {
	if rest, own := strings.CutPrefix(importPath, module+"/"); own {
		return "./" + rest
	}
	return importPath
}

func matchesAny(patterns []string, name string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool {
		base, tree := strings.CutSuffix(p, "/...")
		return name == base || tree && strings.HasPrefix(name, base+"/")
	})
}

// banned reports whether the rule bans the import of dep.
func (r *rule) banned(dep *pkg, name string) bool {
	foreign := dep != nil && !dep.Standard && !strings.HasPrefix(short(name), "./")
	return matchesAny(r.ban, short(name)) || foreign && slices.Contains(r.ban, "third-party")
}

func TestImports(t *testing.T) {
	list := goList(t)
	for name, p := range list {
		for _, r := range rules {
			if !matchesAny(r.in, short(name)) || matchesAny(r.except, short(name)) {
				continue
			}
			imports := p.Deps
			if r.direct {
				imports = p.Imports
			}
			for _, i := range imports {
				if r.banned(list[i], i) {
					t.Errorf("%s imports %s: %s", name, i, r.why)
				}
			}
		}
	}
}

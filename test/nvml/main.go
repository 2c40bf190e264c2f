// Command nvml compares the constants of nvml.h between releases of NVML and
// writes the changed constants to the file that it is called with.
package main

import (
	"encoding/json"
	"fmt"
	"go/token"
	"go/types"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// releases are the versions of go-nvml, each with its own header: NVML 12.4
// (R550), 12.9 (R575), 13.0.0 (R580), 13.1 (R590), 13.3 and 13.4 (R615).
var releases = []string{"v0.12.4-1", "v0.12.9-0", "v0.13.0-1", "v0.13.1-0", "v0.13.3-1", "v0.13.4-1"}

// groups are the prefixes of constants that are one numbering.
var groups = []string{
	"NVML_FI_", "NVML_GPM_METRIC_", "NVML_DEVICE_ARCH_", "NVML_GPU_RECOVERY_ACTION_", "NVML_GPU_FABRIC_STATE_", "NVML_GPU_FABRIC_HEALTH_SUMMARY_",
	"NVML_COMPUTEMODE_", "NVML_TEMPERATURE_THRESHOLD_", "NVML_CLOCK_", "NVML_PSTATE_", "NVML_ERROR_", "NVML_VALUE_TYPE_", "nvmlEventType",
}

func main() {
	if err := run(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(file string) error {
	headers := make([]map[string]string, len(releases))
	for i, r := range releases {
		out, err := exec.Command("go", "mod", "download", "-json", "github.com/NVIDIA/go-nvml@"+r).Output()
		if err != nil {
			return fmt.Errorf("go-nvml %s: %w", r, err)
		}
		var module struct{ Dir string }
		if err := json.Unmarshal(out, &module); err != nil {
			return err
		}
		text, err := os.ReadFile(filepath.Join(module.Dir, "pkg", "nvml", "nvml.h"))
		if err != nil {
			return err
		}
		headers[i] = constants(string(text))
	}
	return os.WriteFile(file, []byte(table(headers)), 0o644)
}

// table returns a line for each constant whose value changed, and for each value
// of a group that has another name, with the columns of releases. The last of a
// group, its count, changes with every addition and has no line.
func table(headers []map[string]string) string {
	lines := []string{"# constant or value\t" + strings.Join(releases, "\t")}
	add := func(what string, of func(h map[string]string) string, changed func(a, b string) bool) {
		cells, last, differs := []string{what}, "", false
		for _, h := range headers {
			v := of(h)
			differs = differs || v != "" && last != "" && changed(last, v)
			if v != "" {
				last = v
			}
			cells = append(cells, v)
		}
		if differs {
			lines = append(lines, strings.Join(cells, "\t"))
		}
	}
	all := map[string]string{}
	for _, h := range headers {
		maps.Copy(all, h)
	}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if !counts.MatchString(name) {
			add(name, func(h map[string]string) string { return h[name] }, func(a, b string) bool { return a != b })
		}
	}
	for _, group := range groups {
		values := map[string]bool{}
		for _, h := range headers {
			for name, v := range h {
				values[v] = values[v] || strings.HasPrefix(name, group) && !counts.MatchString(name)
			}
		}
		for _, v := range slices.Sorted(maps.Keys(values)) {
			if values[v] {
				add(group+" "+v, func(h map[string]string) string { return names(h, group, v) }, func(a, b string) bool { return !share(a, b) })
			}
		}
	}
	return strings.Join(lines, "\n") + "\n"
}

// names returns the constants of the group that have the value.
func names(header map[string]string, group, value string) string {
	var list []string
	for name, v := range header {
		if v == value && strings.HasPrefix(name, group) && !counts.MatchString(name) {
			list = append(list, name)
		}
	}
	slices.Sort(list)
	return strings.Join(list, " ")
}

func share(a, b string) bool {
	return slices.ContainsFunc(strings.Fields(a), func(name string) bool { return slices.Contains(strings.Fields(b), name) })
}

var (
	counts  = regexp.MustCompile(`_(MAX|COUNT)$`)
	comment = regexp.MustCompile(`(?s)/\*.*?\*/|//[^\n]*`)
	define  = regexp.MustCompile(`(?m)^[ \t]*#define[ \t]+(\w+)[ \t]+(.+)$`)
	enum    = regexp.MustCompile(`enum[^{};]*\{([^}]*)\}`)
	word    = regexp.MustCompile(`[A-Za-z_]\w*`)
	suffix  = regexp.MustCompile(`\b(0[xX][0-9a-fA-F]+|\d+)[uUlL]+\b`)
)

// constants returns the values of the #defines and enumerations that are constant
// expressions. Versions of structs, which depend on their size, are not.
func constants(header string) map[string]string {
	header = comment.ReplaceAllString(strings.ReplaceAll(header, "\\\n", " "), "")
	out := map[string]string{}
	set := func(name, expression string) {
		expression = word.ReplaceAllStringFunc(suffix.ReplaceAllString(expression, "$1"), func(w string) string {
			if v, ok := out[w]; ok {
				return v
			}
			return w
		})
		if v, err := types.Eval(token.NewFileSet(), nil, token.NoPos, expression); err == nil && v.Value != nil {
			out[name] = v.Value.ExactString()
		}
	}
	for _, m := range define.FindAllStringSubmatch(header, -1) {
		set(m[1], strings.TrimSpace(m[2]))
	}
	for _, m := range enum.FindAllStringSubmatch(header, -1) {
		next := "0"
		for item := range strings.SplitSeq(m[1], ",") {
			name, value, given := strings.Cut(strings.TrimSpace(item), "=")
			if name = strings.TrimSpace(name); name == "" {
				continue
			}
			if !given {
				value = next
			}
			set(name, strings.TrimSpace(value))
			next = name + " + 1"
		}
	}
	return out
}

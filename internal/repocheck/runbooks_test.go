package repocheck

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"
	"go.yaml.in/yaml/v3"
)

// reachable is what a runbook can reach with the values of the chart.
type reachable struct {
	port     string
	paths    []string
	families []string
}

func chartServes(t *testing.T) reachable {
	t.Helper()
	var values struct{ Web struct{ Port string } }
	if err := yaml.Unmarshal(read(t, "deploy/helm/accel-exporter/values.yaml"), &values); err != nil {
		t.Fatal(err)
	}
	s := reachable{port: values.Web.Port}
	for _, m := range regexp.MustCompile("(?m)^\\| `(?:POST )?(/[^`?]*)|, `POST (/[^`?]*)").FindAllStringSubmatch(string(read(t, "docs/flags.md")), -1) {
		s.paths = append(s.paths, m[1]+m[2])
	}
	for name := range families(t) {
		s.families = append(s.families, name)
	}
	return s
}

var (
	section   = regexp.MustCompile(`(?s)^# \w+\n\n## First steps\n\n(.*?)\n## `)
	block     = regexp.MustCompile("(?ms)^ *```(\\w+)\n(.*?)^ *```$")
	span1     = regexp.MustCompile("`([^`\n]+)`")
	host      = regexp.MustCompile(`https?://([^/:\s'"` + "`" + `]+)`)
	proxied   = regexp.MustCompile(`/pods/(?:https:)?([^:/]+):?([^/]*)/proxy(/[^"?\s|]*)`)
	greps     = regexp.MustCompile(`/metrics"? .*grep -E '([^']*)'`)
	destroys  = regexp.MustCompile(`#reset|#power-cycle|gpu-reset`)
	preserves = regexp.MustCompile(`journalctl|#collect-evidence`)
)

// optional are features that the chart has off by default: what a runbook that
// uses one must mention.
var optional = map[string]*regexp.Regexp{
	"web.enableRelease":   regexp.MustCompile(`/-/(release|attach)`),
	"releaseDirectory":    regexp.MustCompile(`/run/accel-exporter|RELEASE_DIRECTORY`),
	"web.enableLifecycle": regexp.MustCompile(`/-/reload`),
	"nodeRules":           regexp.MustCompile(`/debug/rules`),
}

// runbookFaults returns what a person on call cannot use, or what would load a
// Prometheus with a query over the whole fleet.
func runbookFaults(text string, s reachable) []string {
	var out []string
	bad := func(format string, args ...any) { out = append(out, fmt.Sprintf(format, args...)) }
	for _, m := range host.FindAllStringSubmatch(text, -1) {
		if m[1] != "localhost" && m[1] != "127.0.0.1" {
			bad("%s: the chart does not serve this host; use kubectl get --raw, or ssh and localhost", m[0])
		}
	}
	for _, m := range proxied.FindAllStringSubmatch(text, -1) {
		if m[2] != s.port {
			bad("%s: the API server connects to a pod by number, %s", m[0], s.port)
		}
		if !slices.Contains(s.paths, m[3]) && !strings.HasSuffix(m[3], "…") {
			bad("%s: the exporter has no %s", m[0], m[3])
		}
	}
	for value, uses := range optional {
		if m := uses.FindString(text); m != "" && (!strings.Contains(text, value) || !strings.Contains(text, "off")) {
			bad("%s: %s is off in the chart; say so", m, value)
		}
	}
	for _, m := range greps.FindAllStringSubmatch(text, -1) {
		for _, a := range alternatives(m[1]) {
			re, err := regexp.Compile(a)
			if err != nil { // a group that is not at the end
				re, err = regexp.Compile(m[1])
			}
			if err != nil || !slices.ContainsFunc(s.families, re.MatchString) {
				bad("grep -E '%s': no family has %s in its name", m[1], a)
			}
		}
	}
	for _, b := range block.FindAllStringSubmatch(text, -1) {
		if b[1] != "promql" {
			continue
		}
		for line := range strings.Lines(b[2]) {
			if line = strings.TrimSpace(line); line != "" {
				out = append(out, unbounded(line)...)
			}
		}
	}
	for _, m := range span1.FindAllStringSubmatch(withoutCode(text), -1) {
		if strings.Contains(m[1], "accel_") && strings.Contains(m[1], "(") {
			out = append(out, unbounded(m[1])...)
		}
	}
	return out
}

// unbounded returns the selectors of a query that read more than a device, a
// node, a pod or a pool.
func unbounded(query string) []string {
	expr, err := parser.ParseExpr(query)
	if err != nil {
		return []string{fmt.Sprintf("%s: %v", query, err)}
	}
	var out []string
	for _, v := range selectors(expr) {
		has := func(names ...string) bool {
			return !slices.ContainsFunc(names, func(name string) bool {
				return !slices.ContainsFunc(v.LabelMatchers, func(m *labels.Matcher) bool {
					return m.Name == name && m.Type == labels.MatchEqual && m.Value != ""
				})
			})
		}
		few := false // series of the cluster
		switch {
		case strings.HasPrefix(v.Name, "accel_remediator_"): // one in a cluster
			few = has("job") || has("cluster")
		case v.Name == "up" || strings.HasPrefix(v.Name, "cluster:"):
			few = has("cluster")
		case v.Name == "ALERTS":
			few = has("alertname")
		case strings.HasPrefix(v.Name, "prometheus_"): // of Prometheus itself
			few = true
		}
		if !few && !has("instance") && !has("node") && !has("device") && !has("namespace", "pod") && !has("cluster", "pool") {
			out = append(out, fmt.Sprintf("%s: %s reads the whole fleet; select an instance, node, device, pod or pool", query, v))
		}
	}
	return out
}

// firstStepFaults returns what the first steps of an alert lack.
func firstStepFaults(text string, r alertRule) []string {
	m := section.FindStringSubmatch(text)
	if m == nil {
		return []string{`"## First steps" does not come first`}
	}
	var commands strings.Builder
	for _, b := range block.FindAllStringSubmatch(m[1], -1) {
		commands.WriteString(b[2])
	}
	var out []string
	need := func(ok bool, what string) {
		if !ok {
			out = append(out, "the first steps have no "+what)
		}
	}
	need(commands.Len() > 0, "command and no query")
	// The remediator runs once in a cluster, and the doctor examines a node.
	need(strings.Contains(m[1], "accel-exporter doctor") || strings.HasPrefix(r.Alert, "AccelRemediator"), "reference to accel-exporter doctor")
	if r.Annotations["serial"] == "" { // not about a device
		return out
	}
	need(proxied.MatchString(commands.String()), "kubectl get --raw through the API server")
	need(strings.Contains(commands.String(), `| grep "$DEVICE"`), `restriction to the device: | grep "$DEVICE"`)
	need(strings.Contains(commands.String(), "ssh $NODE curl -s http://localhost:"), "line for a node without Kubernetes: ssh $NODE curl -s http://localhost:19400/metrics")
	if r.Labels["severity"] == "critical" {
		need(strings.Contains(m[1], "kubectl cordon"), "kubectl cordon")
		if at := destroys.FindStringIndex(m[1]); at != nil {
			need(preserves.MatchString(m[1][:at[0]]), "evidence before a reset or power cycle")
		}
	}
	return out
}

// TestRunbooks checks that each runbook begins with steps that work with the
// chart, and that no query in the runbooks reads the whole fleet.
func TestRunbooks(t *testing.T) {
	s := chartServes(t)
	for _, name := range match(t, "docs/runbooks/*.md") {
		for _, f := range runbookFaults(string(read(t, name)), s) {
			t.Errorf("%s: %s", name, f)
		}
	}
	query := regexp.MustCompile(`\w+ (?:by|without) \(.*?\) \(\w+[^)]*\)`)
	for _, r := range loadRules(t) {
		if r.Alert == "" {
			continue
		}
		for _, f := range firstStepFaults(string(read(t, "docs/runbooks/"+r.Alert+".md")), r) {
			t.Errorf("docs/runbooks/%s.md: %s", r.Alert, f)
		}
		for _, q := range query.FindAllString(r.Annotations["description"], -1) {
			for _, f := range unbounded(strings.NewReplacer("%q", `"x"`).Replace(q)) {
				t.Errorf("%s: description: %s", r.Alert, f)
			}
		}
	}
}

// TestRunbookFaultsAreFound checks that each kind of mistake is found, in texts
// that runbooks once had.
func TestRunbookFaultsAreFound(t *testing.T) {
	s := chartServes(t)
	for text, want := range map[string]string{
		"```sh\ncurl -s http://NODE:19400/debug/state\n```\n":                                                                     "does not serve this host",
		"`curl -X POST 'http://localhost:19400/-/attach?source=SOURCE'`":                                                          "web.enableRelease is off",
		"```sh\nls -l RELEASE_DIRECTORY\n```\n":                                                                                   "releaseDirectory is off",
		"```sh\nkubectl get --raw \"/api/v1/namespaces/accel-exporter/pods/$POD:metrics/proxy/metrics\"\n```\n":                   "by number, " + s.port,
		"```sh\nkubectl get --raw \"/api/v1/namespaces/accel-exporter/pods/$POD:19400/proxy/state\"\n```\n":                       "has no /state",
		"```sh\nkubectl get --raw \"/api/v1/namespaces/a/pods/$POD:19400/proxy/metrics\" | grep -E 'device_(info|serial)'\n```\n": "no family has device_serial",
		"```promql\nincrease(accel_device_failures_total[7d])\n```\n":                                                             "reads the whole fleet",
		"```promql\naccel_device_up{instance=\"I\"} == 0 and on (device) accel_device_info{vendor=\"nvidia\"}\n```\n":             "reads the whole fleet",
		"`sort(accel_remediator_node_out_timestamp_seconds)`":                                                                     "reads the whole fleet",
		"```promql\naccel_device_up{instance=~\".+\"}\n```\n":                                                                     "reads the whole fleet",
		"```promql\naccel_device_up{instance=\"I\"\n```\n":                                                                        "parse error",
	} {
		if got := runbookFaults(text, s); len(got) != 1 || !strings.Contains(got[0], want) {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
	lost := alertRule{Labels: map[string]string{"severity": "critical"}, Annotations: map[string]string{"serial": "of the device"}}
	const ask = "```sh\nkubectl get --raw \"/api/v1/namespaces/a/pods/$POD:19400/proxy/metrics\" | grep \"$DEVICE\"\nssh $NODE curl -s http://localhost:19400/metrics\n"
	for text, want := range map[string]string{
		"# A\n\n## Meaning\n\nx\n\n## Diagnosis\n":                                                                                "does not come first",
		"# A\n\n## First steps\n\nCordon and drain the node.\n\n## Meaning\n":                                                     "command and no query",
		"# A\n\n## First steps\n\n" + ask + "```\n\nStop the pods.\n\n## Meaning\n":                                               "kubectl cordon",
		"# A\n\n## First steps\n\n" + ask + "kubectl cordon $NODE\n```\n\n[Reset](device-procedure.md#reset) it.\n\n## Meaning\n": "evidence before",
	} {
		if got := strings.Join(firstStepFaults(text, lost), "\n"); !strings.Contains(got, want) {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
}

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/accel-exporter/accel-exporter/collector"
	"github.com/accel-exporter/accel-exporter/collector/dcgm"
	"github.com/accel-exporter/accel-exporter/collector/kernellog"
	"github.com/accel-exporter/accel-exporter/collector/nvidia"
	"github.com/accel-exporter/accel-exporter/collector/sysfs"
	"github.com/accel-exporter/accel-exporter/internal/config"
	"github.com/accel-exporter/accel-exporter/internal/status"
	"github.com/accel-exporter/accel-exporter/podmap"
)

// States of a finding.
const (
	findingOK    = "ok"
	findingOff   = "off"   // not asked for
	findingNote  = "note"  // missing, and nothing that flags name depends on it
	findingLacks = "LACKS" // lacks, and is asked for
)

// finding is what the doctor reports of one thing.
type finding struct {
	State    string `json:"state"`
	Check    string `json:"check"`
	Found    string `json:"found"`
	Expected string `json:"expected,omitempty"`
	Mend     string `json:"mend,omitempty"`
}

// examination has what the findings are drawn from.
type examination struct {
	flags  *flags
	view   *status.View
	broken error // why the view is incomplete
}

// observe gets the view of the running exporter, whose permissions may differ from
// this process's, or else samples the node as the exporter would. It returns who
// sampled.
func (e *examination) observe(ctx context.Context, running bool) string {
	if address := e.local(); running && *e.flags.web.WebConfigFile == "" && address != "" {
		ask := askFlags{url: "http://" + address}
		if v, err := ask.getStatus(ctx, ""); err == nil {
			e.view = v
			return "the running exporter at " + ask.url
		}
	}
	e.view, e.broken = e.sample(ctx)
	return "this process and its workers"
}

// local returns where the exporter of these flags can be asked, or "".
func (e *examination) local() string {
	for _, a := range *e.flags.web.WebListenAddresses {
		host, port, err := net.SplitHostPort(a)
		if err != nil || strings.Contains(a, "://") {
			continue
		}
		if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
			host = "localhost"
		}
		return net.JoinHostPort(host, port)
	}
	return ""
}

// samplePatience is how long the doctor waits for all sources: longer than the
// slowest may take.
const samplePatience = 20 * time.Second

// sample samples the node. It leaves out what would change the node or disturb
// others.
func (e *examination) sample(ctx context.Context) (*status.View, error) {
	f := *e.flags
	f.interval = onceInterval
	cfg := config.Default()
	if _, c, err := openConfig(e.flags.configFile, e.flags.alerts.urls); err == nil {
		cfg = c.Config
		cfg.Collect.Interval = 0
	}
	allocs, err := openPods(&f.pods, f.sources.procfs, cfg.Allocation, discardedLog)
	if err != nil {
		without := f.pods
		without.api = false
		allocs, _ = openPods(&without, f.sources.procfs, cfg.Allocation, discardedLog) // which cannot fail
	}
	node := newSampling(&f.sampleFlags, cfg, allocs, discardedLog)
	waiting, done := context.WithTimeout(ctx, samplePatience)
	defer done()
	_, late := node.once(waiting)
	return status.New(statusOptions(node, nil, "")).View(), errors.Join(err, late)
}

// all returns the findings in the order of the documentation.
func (e *examination) all() []finding {
	list := slices.Concat(e.commandLine(), e.files())
	for _, spec := range specs {
		list = append(list, e.source(spec.name, "reads "+spec.help, e.flags.sources.on(spec)))
	}
	for _, r := range e.view.Remarks {
		state := map[string]string{"good": findingOK, "neutral": findingNote, "warn": findingLacks}[r.Tone]
		list = append(list, finding{state, r.What, r.Found, r.Expected, r.Cure})
	}
	return append(list, e.processes(), e.cgroups(),
		e.source(status.Kubelet, "the kubelet lists the devices of pods at "+e.flags.pods.socket, e.flags.pods.socket != ""),
		e.source(status.APIServer, "the kubelet or the API server lists the pods of this node", e.flags.pods.api || e.flags.pods.slices))
}

// lacking is the state of what is missing: a note where it is not asked for.
func lacking(asked bool) string {
	if asked {
		return findingLacks
	}
	return findingNote
}

func (e *examination) commandLine() (list []finding) {
	for _, w := range e.flags.warnings() {
		list = append(list, finding{findingLacks, "flags", w, "every flag has an effect, and every path exists", "correct or remove the flag, or create the path"})
	}
	for _, ignored := range e.flags.compat.foreign.ignored {
		list = append(list, finding{findingNote, "flags", ignored, "", "remove it"})
	}
	if len(list) == 0 {
		list = []finding{{State: findingOK, Check: "flags", Found: fmt.Sprintf("%d are set", len(e.flags.given))}}
		if len(e.flags.given) == 1 {
			list[0].Found = "1 is set"
		}
	}
	if e.broken != nil {
		list = append(list, finding{findingLacks, "sampling", e.broken.Error(), "every source answers", "see the sources below"})
	}
	return list
}

// files checks the files that flags name.
func (e *examination) files() (list []finding) {
	for _, file := range checkedFiles(e.flags) {
		if file.path == "" {
			continue
		}
		if err := file.check(file.path); err != nil {
			list = append(list, finding{findingLacks, "file", err.Error(), "a file without a mistake", "correct what is named; the exporter starts with none of these mistakes, and keeps what it has if they come later. Only the rows of unknown fields in the file of --dcgm.fields are left out"})
			continue
		}
		list = append(list, finding{State: findingOK, Check: "file", Found: file.flag + " " + file.path})
	}
	if set, err := e.flags.alerts.rules(); err == nil {
		for _, line := range unknownMetrics(set) {
			list = append(list, finding{findingNote, "rules", line, "a metric of docs/metrics.md", "correct the name; the rule yields nothing"})
		}
	}
	return list
}

// mend returns what to do about a trouble.
func mend(t status.Trouble) string {
	if t.Doc != "" {
		t.Doc = "docs/" + t.Doc
	}
	return strings.TrimSpace(t.Cure + " " + t.Doc)
}

// source reports the state of a source, which is enabled or not.
func (e *examination) source(name, reads string, on bool) finding {
	f := finding{Check: "source " + name}
	i := slices.IndexFunc(e.view.Sources, func(s status.Source) bool { return s.Name == name })
	switch {
	case !on:
		f.State, f.Found = findingOff, "not enabled"
		return f
	case i < 0:
		f.State, f.Found = findingLacks, "not sampled"
		return f
	}
	s := &e.view.Sources[i]
	f.Expected, f.Found, f.Mend = reads, firstLines(cmp.Or(s.Err, s.Meaning, s.Reason)), mend(s.Trouble)
	asked := e.asked(name)
	switch {
	case s.Word == "up":
		return finding{State: findingOK, Check: f.Check, Found: reads}
	case s.Err != "" && s.Reason == "": // up, in part
		f.State, f.Mend = findingNote, "accel-exporter who shows the devices"
	case s.Reason == collector.SourceAbsent && !asked && f.Check != "source "+kernellog.Name:
		return finding{State: findingOff, Check: f.Check, Found: f.Found}
	case s.Reason == collector.SourceAbsent, name == kernellog.Name:
		f.State = lacking(asked) // most installations may not read the kernel log
	default:
		f.State = findingLacks
	}
	if n := e.nvidiaGPUs(); name == nvidia.Name && s.Reason == collector.SourceAbsent && n > 0 {
		f.Found = fmt.Sprintf("%d NVIDIA GPUs on the bus; %s", n, f.Found)
	}
	return f
}

// asked reports whether flags or hardware ask for a source.
func (e *examination) asked(source string) bool {
	flag := map[string]string{nvidia.Name: "nvml.library", kernellog.Name: "kernel-log.path", status.Kubelet: "podresources.socket"}[source]
	switch source {
	case dcgm.Name, status.APIServer:
		return true
	case nvidia.Name:
		if e.nvidiaGPUs() > 0 {
			return true
		}
	case status.Kubelet:
		if _, err := os.Stat(filepath.Dir(podmap.DefaultSocket)); err == nil && e.flags.pods.socket == podmap.DefaultSocket {
			return true
		}
	}
	return e.flags.asked("collector."+source) || e.flags.asked(flag)
}

// nvidiaGPUs is the number of NVIDIA's GPUs that any source sees.
func (e *examination) nvidiaGPUs() (n int) {
	for i := range e.view.Devices {
		if d := &e.view.Devices[i]; d.Vendor == "nvidia" && d.Class == "GPU" && !d.Part {
			n++
		}
	}
	return n
}

// firstLines bounds a text of errors.
func firstLines(s string) string {
	const most = 6
	lines := strings.Split(s, "\n")
	if more := len(lines) - most; more > 0 {
		lines = append(lines[:most], fmt.Sprintf("and %d more", more))
	}
	return strings.Join(lines, "\n")
}

// processes reports whether the processes of the node are visible.
func (e *examination) processes() finding {
	if ownProcesses(e.flags.sources.procfs) {
		return finding{State: findingOK, Check: "PID namespace", Found: "that of the node, as far as procfs shows"}
	}
	return finding{findingNote, "PID namespace", "one of this container: the driver's PIDs are unknown here", "that of the node, to attribute processes to pods and jobs", "hostPID: true, by the chart's processes.enabled or the component processes"}
}

// cgroups reports whether the cgroup of a foreign process can be read.
func (e *examination) cgroups() finding {
	b, err := sysfs.New(e.flags.sources.procfs).ReadBytes("1/cgroup", 1<<16)
	switch {
	case err == nil && strings.HasPrefix(string(b), "0::"):
		return finding{State: findingOK, Check: "procfs", Found: "cgroups of processes can be read, version 2"}
	case err == nil:
		return finding{State: findingOK, Check: "procfs", Found: "cgroups of processes can be read, version 1"}
	case errors.Is(err, fs.ErrNotExist):
		return finding{findingNote, "procfs", err.Error(), "cgroups of all processes", "where /proc is mounted with hidepid=: the group of its option gid= in SupplementaryGroups="}
	}
	return finding{findingNote, "procfs", err.Error(), "cgroups of all processes", "the node's procfs, in --path.procfs"}
}

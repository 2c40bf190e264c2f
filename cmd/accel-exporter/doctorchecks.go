package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/accel-exporter/accel-exporter/collector"
	"github.com/accel-exporter/accel-exporter/collector/amd"
	"github.com/accel-exporter/accel-exporter/collector/dcgm"
	"github.com/accel-exporter/accel-exporter/collector/kernellog"
	"github.com/accel-exporter/accel-exporter/collector/nvidia"
	"github.com/accel-exporter/accel-exporter/collector/sysfs"
	"github.com/accel-exporter/accel-exporter/internal/identity"
	"github.com/accel-exporter/accel-exporter/internal/status"
	"github.com/accel-exporter/accel-exporter/podmap"
	"github.com/accel-exporter/accel-exporter/podmap/kube"
)

// all returns the findings in the order of the documentation.
func (e *examination) all() []finding {
	list := slices.Concat(e.commandLine(), e.files())
	for _, spec := range specs {
		list = append(list, e.source(spec))
	}
	return slices.Concat(list,
		e.driver(), e.amdgpu(), e.deviceFiles(), e.devices(), e.refusedCalls(),
		[]finding{e.processes(), e.cgroups(), e.kubelet(), e.apiServer()},
		<-e.network, e.directories())
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

// source reports the state of a source.
func (e *examination) source(spec sourceSpec) finding {
	f := finding{Check: "source " + spec.name}
	if !e.flags.sources.on(spec) {
		f.State, f.Found = findingOff, "not enabled"
		return f
	}
	i := slices.IndexFunc(e.state.Sources, func(s collector.Status) bool { return s.Source == spec.name })
	if i < 0 {
		f.State, f.Found = findingLacks, "not sampled"
		return f
	}
	s := e.state.Sources[i]
	f.Expected = "reads " + spec.help
	asked := e.flags.asked("collector." + spec.name)
	switch {
	case s.Up && s.Err == "":
		return finding{State: findingOK, Check: f.Check, Found: "reads " + spec.help}
	case s.Up:
		f.State, f.Found, f.Mend = findingNote, firstLines(s.Err), "see the devices below"
	case s.Reason == collector.SourceAbsent:
		f.Found, f.Mend = firstLines(s.Err), mend(status.Explain(spec.name, s.Reason))
		switch spec.name {
		case nvidia.Name:
			asked = asked || e.flags.asked("nvml.library")
			if n := e.count(func(d *observedDevice) bool { return d.Vendor == "nvidia" && d.Class == collector.GPU }); n > 0 {
				asked, f.Found = true, fmt.Sprintf("%s on the bus; %s", counted(n, "NVIDIA GPU"), f.Found)
			}
		case kernellog.Name:
			asked = asked || e.flags.asked("kernel-log.path")
		case dcgm.Name:
			asked = true
		}
		if f.State = lacking(asked); !asked && spec.name != kernellog.Name {
			return finding{State: findingOff, Check: f.Check, Found: f.Found}
		}
	default:
		f.Found = firstLines(cmp.Or(s.Err, s.Reason))
		f.State, f.Mend = findingLacks, mend(status.Explain(spec.name, s.Reason))
		if spec.name == kernellog.Name && !asked && !e.flags.asked("kernel-log.path") {
			f.State = findingNote // it is on by default, and most installations may not read it
		}
	}
	return f
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

func counted(n int, what string) string {
	if n != 1 {
		what += "s"
	}
	return strconv.Itoa(n) + " " + what
}

func (e *examination) count(is func(*observedDevice) bool) (n int) {
	for i := range e.state.Devices {
		if is(&e.state.Devices[i]) {
			n++
		}
	}
	return n
}

// driver reports the versions of each driver.
func (e *examination) driver() (list []finding) {
	for _, r := range e.state.Node {
		if r.Metric == collector.DriverInfo.Name {
			found := "kernel module " + r.Labels["version"]
			if library := r.Labels["library_version"]; library != "" {
				found += fmt.Sprintf(", library %s, CUDA %s", library, r.Labels["cuda_version"])
			}
			list = append(list, finding{State: findingOK, Check: "driver " + r.Labels["vendor"], Found: found})
		}
	}
	return list
}

// amdgpu reports AMD GPUs that are on the bus and have no driver. A GPU that is
// passed to a virtual machine has another driver.
func (e *examination) amdgpu() []finding {
	all, unbound := 0, []string{}
	for _, d := range e.state.Devices {
		if d.Vendor != "amd" || d.Class != collector.GPU {
			continue
		}
		for _, r := range d.Readings {
			if r.Metric != collector.PCIeDriverBound.Name {
				continue
			}
			if all++; r.Value == 0 {
				unbound = append(unbound, r.Labels["pci_address"])
			}
		}
	}
	switch {
	case len(unbound) > 0:
		return []finding{{findingNote, "driver amdgpu", "not bound to " + strings.Join(unbound, ", "), "bound to each GPU that programs on this node use", "modprobe amdgpu; journalctl -k --grep=amdgpu shows why it gave up a GPU"}}
	case all > 0:
		return []finding{{State: findingOK, Check: "driver amdgpu", Found: fmt.Sprintf("%d of %d GPUs have a driver", all, all)}}
	}
	return nil
}

// deviceFiles reports the device files of GPUs.
func (e *examination) deviceFiles() []finding {
	good, bad := 0, map[string]string{}
	for _, d := range e.state.Devices {
		for _, r := range d.Readings {
			switch {
			case r.Metric != collector.DeviceFileUsable.Name:
			case r.Value == 1:
				good++
			default:
				bad[r.Labels["file"]] = r.Labels["reason"]
			}
		}
	}
	nvidia := e.count(func(d *observedDevice) bool { return d.Vendor == "nvidia" })
	amds := e.count(func(d *observedDevice) bool { return d.Vendor == "amd" && d.Class == collector.GPU })
	f := finding{State: findingOK, Check: "device files", Found: fmt.Sprintf("%d usable", good)}
	switch {
	case len(bad) > 0:
		var texts []string
		for _, file := range slices.Sorted(maps.Keys(bad)) {
			texts = append(texts, file+": "+bad[file])
		}
		f = finding{findingLacks, f.Check, strings.Join(texts, ", "), "each file exists, belongs to its device, and has the mode of the driver's configuration", "nvidia-modprobe -c 0 -u creates those of NVIDIA, udev those of AMD once amdgpu is loaded; docs/runbooks/AcceleratorDegraded.md"}
	case good > 0:
	case e.flags.sources.devfs != "":
		f = finding{State: findingOff, Check: f.Check, Found: "no device of NVIDIA's or AMD's driver"}
	case nvidia+amds == 0:
		f = finding{State: findingOff, Check: f.Check, Found: "no GPU of NVIDIA or AMD"}
	case nvidia > 0 && e.flags.sources.sysfs == hostSysfs && unix.Access("/dev/nvidiactl", unix.R_OK|unix.W_OK) != nil:
		f = finding{findingLacks, f.Check, fmt.Sprintf("/dev/nvidiactl: %v", unix.Access("/dev/nvidiactl", unix.R_OK|unix.W_OK)), "read and write permission", "the driver creates it when it is loaded. In a container: NVIDIA's runtime. Where NVreg_DeviceFileMode restricts it: its group in SupplementaryGroups="}
	default:
		f = finding{State: findingOff, Check: f.Check, Found: "not compared with the driver: --path.devfs is not set"}
	}
	return []finding{f}
}

// devices reports what does not answer: devices that are down, and devices on the bus
// that no source reads.
func (e *examination) devices() []finding {
	f := finding{State: findingOK, Check: "devices"}
	var silent []string
	cure := "see the sources above"
	for i := range e.state.Devices {
		d := &e.state.Devices[i]
		switch {
		case d.Down != "":
			silent = append(silent, fmt.Sprintf("%s: %s", d.ID, status.Down(d.Down)))
			cure = "docs/runbooks/AcceleratorFailed.md; accel-exporter who has the pods on them"
		case !d.answers():
			silent = append(silent, fmt.Sprintf("%s: It is on the bus, and no source reads it", d.ID))
		}
	}
	all := len(e.state.Devices)
	switch {
	case all == 0:
		f = finding{findingNote, f.Check, "none", "the accelerators of this node", "if it has some: lspci -d 10de: lists NVIDIA's; a virtual machine sees only what is passed to it"}
	case len(silent) > 0:
		f = finding{findingNote, f.Check, fmt.Sprintf("%d of %d answer\n%s", all-len(silent), all, firstLines(strings.Join(silent, "\n"))), "every device answers", cure}
	case all == 1:
		f.Found = "1 device, which answers"
	default:
		f.Found = counted(all, "device") + ", all answer"
	}
	return []finding{f}
}

// answers reports whether a source reads the device.
func (d *observedDevice) answers() bool {
	return slices.ContainsFunc(d.Readings, func(r observedReading) bool { return r.Metric == collector.DeviceUp.Name && r.Value == 1 })
}

// refusedCalls reports what the driver refuses, such as values of GPUs in MIG mode
// without the capability to monitor MIG.
func (e *examination) refusedCalls() (list []finding) {
	type lost struct{ what, remedy string }
	calls := map[lost]map[string]bool{}
	mig := 0
	for _, d := range e.state.Devices {
		for _, r := range d.Readings {
			switch {
			case r.Metric == collector.MIGMode.Name && r.Value == 1 && r.Labels["state"] == "current":
				mig++
			case r.Metric == collector.CallRefused.Name:
				var l lost
				l.what, l.remedy = explainRefusal(r.Labels["call"])
				if calls[l] == nil {
					calls[l] = map[string]bool{}
				}
				calls[l][r.Labels["call"]+" ("+r.Labels["code"]+")"] = true
			}
		}
	}
	for _, l := range slices.SortedFunc(maps.Keys(calls), func(a, b lost) int { return strings.Compare(a.what, b.what) }) {
		list = append(list, finding{findingNote, "refused calls", strings.Join(slices.Sorted(maps.Keys(calls[l])), ", "), l.what, l.remedy})
	}
	if len(list) == 0 && mig > 0 {
		list = []finding{{State: findingOK, Check: "MIG", Found: counted(mig, "GPU") + " in MIG mode, and the driver permits every call"}}
	}
	return list
}

// explainRefusal returns what is missing where a call is refused, and what permits it.
func explainRefusal(call string) (lost, remedy string) {
	if call == amd.FDInfo {
		return amd.Lost, amd.Remedy
	}
	return nvidia.Explain(call)
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

// kubelet reports whether devices can be mapped to pods.
func (e *examination) kubelet() finding {
	f := finding{Check: "kubelet", Expected: "the kubelet lists the devices of pods at " + e.flags.pods.socket}
	s := e.state.Kubelet
	if s == nil || e.flags.pods.socket == "" {
		return finding{State: findingOff, Check: f.Check, Found: "--podresources.socket is empty"}
	}
	f.Found, f.Mend = s.Reason, mend(status.ExplainKubelet(s))
	switch {
	case s.State == podmap.StateFresh:
		return finding{State: findingOK, Check: f.Check, Found: fmt.Sprintf("%s, %s of devices", counted(s.Pods, "pod"), counted(s.Allocations, "allocation"))}
	case s.State == podmap.StateAbsent:
		_, installed := os.Stat(filepath.Dir(podmap.DefaultSocket))
		asked := e.flags.asked("podresources.socket") || e.flags.pods.socket == podmap.DefaultSocket && installed == nil
		f.State = lacking(asked)
	default:
		f.State = findingLacks
	}
	return f
}

// apiServer reports whether pods are read from the API server.
func (e *examination) apiServer() finding {
	if !e.flags.pods.api {
		return finding{State: findingOff, Check: "API server", Found: "--kubernetes.pods is not set"}
	}
	f := finding{findingLacks, "API server", "not asked", "permission to list and watch pods", mend(status.Explain(status.APIServer, ""))}
	s := e.state.API
	if s == nil {
		return f
	}
	for _, feed := range []struct {
		what string
		s    *kube.FeedStatus
	}{{"pods", &s.Pods}, {"resourceslices", s.Slices}} {
		if feed.s != nil && feed.s.State != kube.StateFresh {
			f.Found = fmt.Sprintf("%s: %s: %s", feed.what, feed.s.State, feed.s.Reason)
			return f
		}
	}
	return finding{State: findingOK, Check: f.Check, Found: counted(s.Pods.Objects, "pod")}
}

// receivers reports whether the Alertmanagers and the receiver of traces accept
// connections.
func (e *examination) receivers(ctx context.Context) (list []finding) {
	ctx, cancel := context.WithTimeout(ctx, 3*time.Second)
	defer cancel()
	var results []chan finding
	dial := func(check, host, mend string) {
		result := make(chan finding, 1)
		results = append(results, result)
		go func() {
			conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", host)
			if err != nil {
				result <- finding{findingLacks, check, err.Error(), "it accepts connections", mend}
				return
			}
			conn.Close()
			result <- finding{State: findingOK, Check: check, Found: host + " accepts connections"}
		}()
	}
	for _, end := range e.config.alertmanager.Endpoints {
		u, err := url.Parse(end.URL)
		if err != nil {
			continue // which --config.check reports
		}
		port := cmp.Or(u.Port(), map[string]string{"https": "443"}[u.Scheme], "80")
		dial("Alertmanager", net.JoinHostPort(u.Hostname(), port), "docs/runbooks/AccelAlertsNotDelivered.md")
	}
	if len(results) == 0 {
		list = []finding{{State: findingOff, Check: "Alertmanager", Found: "--alertmanager.url is not set"}}
	}
	if e.flags.traces.endpoint != "" {
		dial("trace receiver", e.flags.traces.receiver.Host, "docs/traces.md")
	}
	for _, result := range results {
		list = append(list, <-result)
	}
	return list
}

// ports reports whether the addresses to listen on are free, or of an exporter.
func (e *examination) ports(ctx context.Context) (list []finding) {
	if *e.flags.web.WebSystemdSocket {
		return []finding{{State: findingOff, Check: "port", Found: "systemd passes the sockets"}}
	}
	for _, a := range *e.flags.web.WebListenAddresses {
		if strings.Contains(a, "://") {
			continue
		}
		f := finding{State: findingOK, Check: "port", Found: a + " is free"}
		l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", a)
		switch {
		case err == nil:
			l.Close()
		case errors.Is(err, syscall.EADDRINUSE) && e.running:
			f.Found = a + " is that of the running exporter"
		default:
			f = finding{findingLacks, f.Check, err.Error(), "an address that is free", "--web.listen-address, or end the program that listens: ss -ltnp shows it"}
		}
		list = append(list, f)
	}
	return list
}

// directories reports whether the state can be written.
func (e *examination) directories() []finding {
	if e.flags.stateDir == "" {
		return []finding{{State: findingOff, Check: "state", Found: "--path.state is not set: names of devices that do not answer are lost in a restart"}}
	}
	store, err := identity.Open(e.flags.stateDir, sysfs.New(e.flags.sources.sysfs), "")
	if err == nil {
		store.Close()
		err = unix.Access(e.flags.stateDir, unix.W_OK)
	}
	if err != nil {
		return []finding{{findingLacks, "state", fmt.Sprintf("%s: %v", e.flags.stateDir, err), "a directory that this user may write to", "systemd: StateDirectory=accel-exporter. Kubernetes: stateDirectory of the chart, owned by the user of the container"}}
	}
	return []finding{{State: findingOK, Check: "state", Found: e.flags.stateDir + " can be written"}}
}

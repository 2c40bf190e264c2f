package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"sync"
	"time"

	"github.com/alecthomas/kingpin/v2"

	"github.com/accel-exporter/accel-exporter/collector/sysfs"
	"github.com/accel-exporter/accel-exporter/internal/judge/allocation"
	"github.com/accel-exporter/accel-exporter/podmap"
	"github.com/accel-exporter/accel-exporter/podmap/kube"
	"github.com/accel-exporter/accel-exporter/podmap/proc"
)

// hostProcfs is the kernel's own procfs.
const hostProcfs = "/proc"

// maxPodDirs limits the names that are read below --path.pod-logs.
const maxPodDirs = 16384

// podFlags are the flags of allocations.
type podFlags struct {
	socket   string
	kubelet  string
	interval time.Duration
	logs     string

	api      bool
	slices   bool
	node     string
	labels   []string
	contexts []string // annotations with a trace context, by the flags of traces
}

func (f *podFlags) add(app *kingpin.Application) {
	app.Flag("podresources.socket", "Socket of the kubelet's PodResources API, which lists the devices of pods. Empty disables it.").Default(podmap.DefaultSocket).PlaceHolder("PATH").StringVar(&f.socket)
	app.Flag("podresources.interval", "Time between two lists of the kubelet.").Default("10s").SetValue((*duration)(&f.interval))
	app.Flag("kubelet.pods-socket", "Socket of the kubelet's pods API (Kubernetes 1.37), for the UID, workload and labels of this node's pods. Empty disables it.").Default(kube.DefaultKubelet).PlaceHolder("PATH").StringVar(&f.kubelet)
	app.Flag("path.pod-logs", "Directory of the kubelet with the logs of pods. Only the names of its directories are read, to map the UID of a pod to its name.").Default("/var/log/pods").PlaceHolder("DIR").StringVar(&f.logs)
	app.Flag("kubernetes.pods", "Read the UID, workload and labels of this node's pods from the API server, unless the kubelet serves them. Requires permission to list and watch pods.").BoolVar(&f.api)
	app.Flag("kubernetes.resource-slices", "Read the devices of this node's DRA drivers from the API server and the administrative access of claims too. Requires permission to list and watch resourceslices and to get resourceclaims.").BoolVar(&f.slices)
	app.Flag("kubernetes.pod-label", "Label of pods to keep: a key, or a pattern such as app.kubernetes.io/*. Repeatable.").PlaceHolder("KEY").StringsVar(&f.labels)
	app.Flag("kubernetes.node", "Name of this node in Kubernetes.").Envar("NODE_NAME").PlaceHolder("NAME").StringVar(&f.node)
}

// nodeOrHost returns the node's name, else the host's, which in a container is
// that of the pod, or "" if both are unknown.
func (f *podFlags) nodeOrHost() string {
	if f.node != "" {
		return f.node
	}
	host, _ := os.Hostname()
	return host
}

func (f *podFlags) check() error {
	if err := within("podresources.interval", f.interval, time.Second, 10*time.Minute); err != nil {
		return err
	}
	if err := kube.CheckLabels(f.labels); err != nil {
		return fmt.Errorf("--kubernetes.pod-label: %w", err)
	}
	return nil
}

// pods has the sources of allocations: the kubelet and, if configured, the API
// server.
type pods struct {
	kubelet *podmap.Watcher // nil if disabled
	api     *kube.Watcher   // of the pods API or the API server; nil if disabled
	dirs    *proc.PodDirs
	judge   *allocation.Judge
	log     *slog.Logger
}

func openPods(f *podFlags, procfs string, set allocation.Settings, log *slog.Logger) (*pods, error) {
	p := &pods{log: log}
	p.dirs = proc.NewPodDirs(podDirs(f.logs))
	o := allocation.Options{PodDirs: p.dirs}
	if ownProcesses(procfs) {
		o.Proc = proc.New(sysfs.New(procfs))
	}
	if f.api || f.slices || f.kubelet != "" {
		watch := kube.InCluster(os.Getenv("KUBERNETES_SERVICE_HOST"), os.Getenv("KUBERNETES_SERVICE_PORT"))
		watch.Node, watch.Labels, watch.Contexts = f.node, f.labels, f.contexts
		watch.Kubelet, watch.Pods, watch.Slices = f.kubelet, f.api, f.slices
		api, err := kube.New(watch)
		if err != nil {
			return nil, fmt.Errorf("--kubernetes.pods or --kubernetes.resource-slices: %w", err)
		}
		p.api = api
		o.Meta, o.Claimed = api.Latest, claimed(api)
	}
	if f.socket != "" {
		options := podmap.Options{
			Socket:   f.socket,
			Interval: f.interval,
			Self:     podmap.Pod{Namespace: os.Getenv("POD_NAMESPACE"), Name: os.Getenv("POD_NAME")},
		}
		if p.api != nil {
			options.AdminAccess, options.Ready = p.api.AdminAccess, p.api.Ready
		}
		p.kubelet = podmap.New(options)
		o.Map, o.Status, o.Refresh = p.kubelet.Latest, p.kubelet.Status, p.kubelet.Refresh
	}
	p.judge = allocation.New(o, set)
	return p, nil
}

// claimed returns what a DRA driver has published of a device.
func claimed(api *kube.Watcher) func(driver, pool, device string) podmap.SliceDevice {
	return func(driver, pool, device string) podmap.SliceDevice {
		d, _ := api.Latest().Device(driver, pool, device)
		return podmap.SliceDevice{UUID: d.UUID, PCI: d.PCI, Partition: d.ParentUUID != ""}
	}
}

// ownProcesses reports whether procfs shows the node's processes, by the PIDs
// that drivers report. In a container with its own PID namespace the PIDs differ,
// also where the host's procfs is mounted. Where procfs does not show the
// namespace, kthreadd is 2 in the node's only.
func ownProcesses(procfs string) bool {
	if own, known := sysfs.HostPIDs(procfs); known || procfs != hostProcfs {
		return own || !known
	}
	comm, err := sysfs.New(procfs).Read("2/comm")
	return err == nil && comm == "kthreadd"
}

// podDirs lists the names of the pods' directories.
func podDirs(dir string) func() ([]string, error) {
	return func() ([]string, error) {
		d, err := os.Open(dir)
		if err != nil {
			return nil, err
		}
		defer d.Close()
		names, err := d.Readdirnames(maxPodDirs)
		if errors.Is(err, io.EOF) {
			err = nil
		}
		return names, err
	}
}

// close ends what a start that fails leaves behind.
func (p *pods) close() {
	if p.api != nil {
		p.api.Close()
	}
}

// run watches until ctx is done. It calls wake when allocations have changed.
func (p *pods) run(ctx context.Context, wake func()) {
	var loops sync.WaitGroup
	defer loops.Wait()
	var claims <-chan struct{}
	if p.api != nil {
		loops.Go(func() { p.api.Run(ctx) })
		claims = p.api.ClaimsRead()
	}
	if p.kubelet == nil {
		return
	}
	loops.Go(func() { p.kubelet.Run(ctx) })
	logged := podmap.StateStarting
	for {
		select {
		case <-ctx.Done():
			return
		case <-claims:
			p.kubelet.Refresh()
			continue
		case <-p.kubelet.Changed():
			wake()
		}
		if state := p.kubelet.Latest().State; state != logged {
			p.logState(state)
			logged = state
		}
	}
}

// waitingFor names the source of allocations without an outcome, or "".
func (p *pods) waitingFor() string {
	switch {
	case p.kubelet != nil && p.kubelet.Status().State == podmap.StateStarting:
		return "the kubelet"
	case p.api != nil && p.api.Status().Pods.State == kube.StateStarting:
		return "the pods of the kubelet or the API server"
	}
	return ""
}

// logState logs a new state of the allocations.
func (p *pods) logState(state podmap.State) {
	s := p.kubelet.Status()
	switch state {
	case podmap.StateFresh:
		p.log.Info("Allocations of devices are known", "pods", s.Pods, "allocations", s.Allocations)
	case podmap.StateAbsent:
		p.log.Info("Allocations of devices are not known: no kubelet", "reason", s.Reason)
	default:
		p.log.Warn("Allocations of devices are not certain", "state", state, "reason", s.Reason)
	}
}

// state returns what /debug/state shows of the allocations.
func (p *pods) state() (*allocation.Report, *podmap.Status, *kube.Status) {
	var kubelet *podmap.Status
	var api *kube.Status
	if p.kubelet != nil {
		s := p.kubelet.Status()
		kubelet = &s
	}
	if p.api != nil {
		if s := p.api.Status(); s.Pods.State != kube.StateNone || s.Slices != nil {
			api = &s
		}
	}
	return p.judge.Report(), kubelet, api
}

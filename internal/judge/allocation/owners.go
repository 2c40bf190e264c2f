package allocation

import (
	"slices"
	"strings"
	"time"

	"github.com/accel-exporter/accel-exporter/podmap"
	"github.com/accel-exporter/accel-exporter/podmap/kube"
	"github.com/accel-exporter/accel-exporter/podmap/proc"
)

// owners finds the pods of processes.
type owners struct {
	proc  *proc.Map
	dirs  *proc.PodDirs
	meta  func() *kube.Map
	known map[int]*process

	tidied time.Time
}

// process is the memory of a process.
type process struct {
	owner proc.Owner
	pod   podmap.Pod
	named bool
	// unlisted: its pod is not among those listed since the process appeared.
	unlisted bool
	since    time.Time // when it was first seen
	read     time.Time
	used     time.Time
}

// of returns the owner of a process. It reads procfs only; names of pods come
// later.
func (o *owners) of(pid int, now time.Time) *process {
	p := o.known[pid]
	if p == nil {
		if p = (&process{since: now}); len(o.known) < maxKnown {
			o.known[pid] = p
		}
	}
	p.used = now
	if p.read.IsZero() || now.Sub(p.read) >= ownerMaxAge || now.Before(p.read) {
		was := p.owner
		p.owner, p.read = o.proc.Owner(pid, now), now
		if p.owner.PodUID != was.PodUID || p.owner.Kind != was.Kind {
			p.named, p.unlisted, p.since = false, false, now
		}
	}
	if p.owner.Kind == proc.Pod && !p.named {
		o.name(p, now)
	}
	return p
}

// name finds the name of a process's pod, and starts a new list of pods if it
// is not among the known ones.
func (o *owners) name(p *process, now time.Time) {
	if o.meta != nil {
		if pod, ok := o.meta().PodOf(p.owner.PodUID); ok {
			p.pod, p.named = podmap.Pod{Namespace: pod.Namespace, Name: pod.Name}, true
			return
		}
	}
	if o.dirs == nil {
		return
	}
	if names := o.dirs.Latest(); names != nil {
		if name, known := names.ByUID[p.owner.PodUID]; known {
			p.pod, p.named = podmap.Pod(name), true
			return
		}
		p.unlisted = !names.At.Before(p.since)
	}
	o.dirs.Refresh(now)
}

// service reports whether a process works for other processes: the MPS server.
func (p *process) service() bool { return strings.HasPrefix(p.owner.Command, "nvidia-cuda-mps") }

// tidy drops processes that use no device any more.
func (o *owners) tidy(now time.Time) {
	if o.proc == nil || now.Sub(o.tidied) < forgetAfter {
		return
	}
	o.tidied = now
	pids := make([]int, 0, len(o.known))
	for pid, p := range o.known {
		if now.Sub(p.used) > forgetAfter {
			delete(o.known, pid)
			continue
		}
		pids = append(pids, pid)
	}
	slices.Sort(pids)
	o.proc.Retain(pids)
}

const (
	// ownerMaxAge is how long the owner of a process is reused. Sources list
	// processes as often.
	ownerMaxAge = 2 * time.Second
	// forgetAfter is how long a process that is on no device is remembered.
	forgetAfter = time.Minute
	// maxKnown bounds the processes that are remembered.
	maxKnown = 4096
)

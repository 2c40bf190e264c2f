package amd

import (
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/accel-exporter/accel-exporter/collector"
	"github.com/accel-exporter/accel-exporter/collector/solo"
	"github.com/accel-exporter/accel-exporter/collector/sysfs"
)

// The processes on a GPU are found by the DRM files that they have open, and read
// from fdinfo (Documentation/gpu/drm-usage-stats.rst). Both require the host's PID
// namespace and the permission to trace processes.

// FDInfo is the call that is refused without that permission, Lost the readings that are
// missing then, and Remedy the setting that permits it.
const (
	FDInfo = "fdinfo"
	Lost   = "Processes on AMD GPUs, with their memory"
	Remedy = "CAP_SYS_PTRACE. Chart: amd.processes; systemd: the drop-in amd-processes.conf"
)

const (
	// processInterval is the time between two reads of fdinfo: a read takes the
	// lock of the process's page tables on the GPU.
	processInterval = 5 * time.Second
	// newInterval and oldInterval are the times between two looks at the open
	// files of a process that is new or has a GPU, and of another one.
	newInterval = 10 * time.Second
	oldInterval = time.Minute
	// lookBudget is how long one round looks at open files.
	lookBudget = 50 * time.Millisecond
	// Bounds: processes of the node, open files of a process that are looked at,
	// and open DRM files.
	maxProcesses = 32768
	maxFiles     = 4096
	maxHandles   = 4096
)

// processes finds the processes on the GPUs. Its goroutine alone uses it.
type processes struct {
	proc  sysfs.FS
	known map[int]*process
	// searched: each process that there was has been looked at.
	searched bool
	listed   time.Time // when the PIDs were listed
	read     time.Time // when fdinfo was read
	busy     map[clientKey]engines
	last     usage
}

// process is a process with its open DRM files.
type process struct {
	looked time.Time
	files  map[string]string // file of fdinfo to node: renderD128
	kfd    bool
	gone   bool
}

// usage are the processes on the GPUs. Nothing is known of them where the
// permission is missing (refused), or the search has not ended.
type usage struct {
	known, refused bool
	list           []holding
}

// holding is a process on a GPU or a partition.
type holding struct {
	gpu, node string
	collector.Client
}

type clientKey struct{ gpu, id string }

// engines are the nanoseconds for which engines were busy for a client.
type engines map[string]uint64

func newProcesses(proc sysfs.FS) *processes {
	return &processes{proc: proc, known: map[int]*process{}, busy: map[clientKey]engines{}}
}

func (p *processes) look(now time.Time) usage {
	switch host, err := p.proc.IsHost(); {
	case err != nil || !host:
		*p = *newProcesses(p.proc)
		return usage{refused: errors.Is(err, os.ErrPermission)}
	case now.Sub(p.listed) >= newInterval:
		p.listed = now
		p.list()
	}
	if p.searched = p.search(now) || p.searched; !p.searched {
		return usage{}
	}
	if now.Sub(p.read) >= processInterval {
		p.last = p.readAll(now)
		p.read = now
	}
	return p.last
}

// list follows the processes of the node.
func (p *processes) list() {
	names, _ := p.proc.FirstNames("", maxProcesses)
	for _, q := range p.known {
		q.gone = true
	}
	for _, n := range names {
		if pid, err := strconv.Atoi(n); err != nil {
			continue
		} else if q := p.known[pid]; q != nil {
			q.gone = false
		} else {
			p.known[pid] = &process{}
		}
	}
	maps.DeleteFunc(p.known, func(_ int, q *process) bool { return q.gone })
}

// search looks at the open files of the processes whose turn it is, and reports
// whether it has seen all processes.
func (p *processes) search(now time.Time) bool {
	begun, complete := time.Now(), true
	for pid, q := range p.known {
		age := now.Sub(q.looked)
		due := q.looked.IsZero() || age >= oldInterval || age >= newInterval && len(q.files) > 0
		switch {
		case !due:
		case time.Since(begun) < lookBudget:
			p.open(pid, q)
			q.looked = now
		case q.looked.IsZero():
			complete = false
		}
	}
	return complete
}

// open looks at the open files of a process. Those beyond maxFiles are not looked
// at: they are in the order in which the process opened them.
func (p *processes) open(pid int, q *process) {
	dir := strconv.Itoa(pid)
	q.files, q.kfd = nil, false
	names, _ := p.proc.FirstNames(dir+"/fd", maxFiles)
	for _, n := range names {
		target, _ := os.Readlink(p.proc.Path(dir + "/fd/" + n))
		switch {
		case target == "/dev/kfd":
			q.kfd = true
		case strings.HasPrefix(target, "/dev/dri/"):
			if q.files == nil {
				q.files = map[string]string{}
			}
			q.files[dir+"/fdinfo/"+n] = filepath.Base(target)
		}
	}
}

// readAll reads the fdinfo of every open DRM file. A file that several processes
// have counts for the oldest of them.
func (p *processes) readAll(now time.Time) usage {
	u := usage{known: true}
	seen := map[clientKey]bool{}
	busy := map[clientKey]engines{}
	handles := 0
	for _, pid := range slices.Sorted(maps.Keys(p.known)) {
		q := p.known[pid]
		at := map[string]int{}
		for _, file := range slices.Sorted(maps.Keys(q.files)) {
			if handles++; handles > maxHandles {
				return usage{}
			}
			b, err := p.proc.ReadBytes(file, sysfs.Page)
			if errors.Is(err, os.ErrNotExist) || sysfs.Errno(err) == syscall.ESRCH {
				continue // it was closed
			}
			f, ok := parseFDInfo(string(b))
			if err != nil || f.old {
				return usage{refused: errors.Is(err, os.ErrPermission)}
			}
			key := clientKey{f.gpu, f.client}
			if !ok || seen[key] {
				continue
			}
			seen[key] = true
			busy[key] = f.busy
			node := q.files[file]
			i, known := at[f.gpu+" "+node]
			if !known {
				i = len(u.list)
				at[f.gpu+" "+node] = i
				u.list = append(u.list, holding{f.gpu, node, collector.Client{PID: pid, Type: kindOf(q.kfd)}})
			}
			if n, known := f.memory["vram"]; known {
				u.list[i].add(collector.MemoryUsed, float64(n))
			}
			if n, known := f.memory["gtt"]; known {
				u.list[i].add(collector.GTTUsed, float64(n))
			}
			if before, ok := p.busy[key]; ok {
				u.list[i].work(before, f.busy, now.Sub(p.read), q.kfd)
			}
		}
	}
	p.busy = busy
	return u
}

func kindOf(kfd bool) string {
	if kfd {
		return "compute"
	}
	return "graphics"
}

// add adds v to the reading of m: a process may have a device open several times.
func (h *holding) add(m *collector.Metric, v float64, labels ...string) *collector.Reading {
	i := slices.IndexFunc(h.Readings, func(r collector.Reading) bool { return r.Metric == m && slices.Equal(r.Labels, labels) })
	if i < 0 {
		i = len(h.Readings)
		h.Readings = append(h.Readings, collector.Reading{Metric: m, Labels: labels})
	}
	h.Readings[i].Value += v
	return &h.Readings[i]
}

// work sets the use of the engines in a period. The kernel leaves out engines
// that were never busy. Work that ROCm submits through /dev/kfd is in none of
// them: the use of compute by such a process is unknown.
func (h *holding) work(before, now engines, period time.Duration, kfd bool) {
	for _, e := range []struct {
		label string
		of    []string
	}{{"compute", []string{"gfx", "compute"}}, {"video", []string{"dec", "enc", "enc_1"}}} {
		if period <= 0 || e.label == "compute" && kfd {
			continue
		}
		most := 0.0
		for _, name := range e.of {
			if now[name] > before[name] {
				most = max(most, float64(now[name]-before[name])/float64(period.Nanoseconds()))
			}
		}
		use := h.add(collector.UtilizationRatio, most, e.label)
		use.Value = min(1, use.Value)
	}
}

// fdinfo is what the kernel shows of an open DRM file.
type fdinfo struct {
	driver, gpu, client string
	memory              map[string]uint64 // bytes by region
	busy                engines
	// old: amdgpu of a kernel before 5.19, which has other keys. Drivers without
	// any keys, such as the driver of graphics on the mainboard, are not amdgpu.
	old bool
}

// parseFDInfo parses the text of a file; ok reports whether it is one of amdgpu
// that names its GPU and its client.
func parseFDInfo(text string) (f fdinfo, ok bool) {
	f.memory, f.busy = map[string]uint64{}, engines{}
	for line := range strings.Lines(text) {
		key, value, found := strings.Cut(line, ":")
		if !found {
			continue
		}
		value = strings.TrimSpace(value)
		switch region, resident := strings.CutPrefix(key, "drm-resident-"); {
		case key == "drm-driver":
			f.driver = value
		case key == "pdev":
			f.old = true
		case key == "drm-pdev":
			f.gpu = value
		case key == "drm-client-id":
			f.client = value
		case resident:
			if n, ok := size(value); ok {
				f.memory[region] = n
			}
		case strings.HasPrefix(key, "drm-memory-"): // the same, of older kernels
			region = strings.TrimPrefix(key, "drm-memory-")
			_, known := f.memory[region]
			if n, ok := size(value); ok && !known {
				f.memory[region] = n
			}
		case strings.HasPrefix(key, "drm-engine-"):
			number, unit, _ := strings.Cut(value, " ")
			if n, err := strconv.ParseUint(number, 10, 63); err == nil && unit == "ns" {
				f.busy[strings.TrimPrefix(key, "drm-engine-")] = n
			}
		}
	}
	return f, f.driver == "amdgpu" && f.gpu != "" && f.client != ""
}

// size parses "512 KiB". Without a unit it is bytes.
func size(text string) (uint64, bool) {
	number, unit, _ := strings.Cut(text, " ")
	n, err := strconv.ParseUint(number, 10, 63)
	shift, known := map[string]int{"": 0, "KiB": 10, "MiB": 20}[unit]
	return n << shift, err == nil && known && n < 1<<53>>shift
}

// attribute adds the processes to the devices of a round.
func (s *Source) attribute(r *solo.Round, round *collector.Round) error {
	take := func(u usage) bool { s.usage = u; return true }
	brief := *r // the GPUs do not wait for their processes
	brief.End = r.Soon
	s.processes.Gather(&brief, take)
	if !s.processes.Valid {
		s.usage = usage{}
	}
	divided := map[string]bool{}
	for _, d := range round.Devices {
		divided[d.Parent] = true
	}
	for i := range round.Devices {
		d := &round.Devices[i]
		if s.usage.refused && d.Parent == "" {
			d.Set(collector.CallRefused, 1, FDInfo, "no_permission")
		}
		if !s.usage.known || d.Down != "" || divided[d.ID] || d.Parent != "" && len(d.KubeIDs) == 0 {
			continue
		}
		counts := map[string]int{}
		d.Clients = []collector.Client{}
		for _, h := range s.usage.list {
			if h.gpu == d.PCI && (d.Parent == "" || slices.Contains(d.KubeIDs, h.node)) {
				d.Clients = append(d.Clients, h.Client)
				counts[h.Type]++
			}
		}
		for _, kind := range []string{"compute", "graphics"} {
			d.Set(collector.Processes, float64(counts[kind]), kind)
		}
	}
	if s.processes.Stuck && !s.processes.Valid && time.Since(s.processes.Asked) >= r.Timeout {
		return solo.NotReturned("the processes on the GPUs")
	}
	return nil
}

package amd

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/accel-exporter/accel-exporter/collector"
	"github.com/accel-exporter/accel-exporter/collector/solo"
	"github.com/accel-exporter/accel-exporter/collector/sysfs"
)

// Source reads every GPU of the driver amdgpu. It implements collector.Source.
type Source struct {
	fs    sysfs.FS
	pci   *collector.PCINames
	slots map[string]*slot
	had   bool // a GPU has been found since the start

	processes solo.Slot[usage]
	usage     usage
}

// slot is one GPU with its last result.
type slot struct {
	solo.Slot[reading]
	address string
	last    reading
	known   []collector.Device // identities as last read
	here    bool               // the driver lists it
}

// New returns a Source of the GPUs in sys, which is /sys or a copy of it. The
// processes on them are read from proc. pci has the names of boards that neither their
// FRU nor the table names.
func New(sys, proc sysfs.FS, pci *collector.PCINames) *Source {
	return &Source{
		fs: sys, pci: pci, slots: map[string]*slot{},
		processes: solo.Slot[usage]{Worker: solo.New(newProcesses(proc).look, nil)},
	}
}

// Name implements collector.Source.
func (*Source) Name() string { return Name }

// Sample implements collector.Source. It waits half a second for a GPU that has
// answered before, and until shortly before ctx's deadline for a GPU that has not.
func (s *Source) Sample(ctx context.Context) (round collector.Round, err error) {
	r, cancel := solo.Begin(ctx)
	defer cancel()
	names, err := s.fs.Names(driverDir)
	names = slices.DeleteFunc(names, func(n string) bool { return strings.Count(n, ":") != 2 })
	if len(names) == 0 && !s.had {
		return round, fmt.Errorf("no GPU of the driver amdgpu: %w", collector.ErrAbsent)
	}
	s.had, err = true, nil
	s.list(names)
	for _, sl := range s.slots {
		if sl.here {
			sl.Ask(r, sl.take)
		} else if sl.Idle() {
			sl.Stop()
			delete(s.slots, sl.address)
		}
	}
	s.processes.Ask(r, func(u usage) bool { s.usage = u; return true })
	for _, at := range slices.Sorted(maps.Keys(s.slots)) {
		if sl := s.slots[at]; sl.here {
			err = errors.Join(err, sl.gather(r, &round))
		}
	}
	err = errors.Join(err, s.attribute(r, &round))
	if version, failed := s.fs.Read("module/amdgpu/version"); failed == nil && version != "" {
		round.Node = append(round.Node, collector.Reading{Metric: collector.DriverInfo, Labels: []string{"amd", version, "", "", ""}, Value: 1})
	}
	return round, err
}

// list opens new GPUs and marks GPUs that have gone.
func (s *Source) list(names []string) {
	for _, sl := range s.slots {
		sl.here = slices.Contains(names, sl.address)
	}
	for i, at := range names {
		if s.slots[at] != nil {
			continue
		}
		dir, err := s.fs.Resolve(driverDir + "/" + at)
		if err != nil {
			continue // it is leaving
		}
		c := &card{fs: sysfs.NewReader(s.fs, allowed), pci: s.pci, address: at, dir: dir, index: strconv.Itoa(i), throttled: map[string]float64{}}
		s.slots[at] = &slot{Slot: solo.Slot[reading]{Worker: solo.New(c.guarded, nil)}, address: at, here: true}
	}
}

// guarded is read, where a panic about one GPU's texts is an error of that GPU.
func (c *card) guarded(now time.Time) (r reading) {
	defer func() {
		if p := recover(); p != nil {
			r = reading{errs: []error{fmt.Errorf("read %s: panic: %v", c.address, p)}}
		}
	}()
	return c.read(now)
}

func (s *slot) take(r reading) bool {
	s.last = r
	if len(r.devices) > 0 {
		s.known = nil
		for _, d := range r.devices {
			d.Readings, d.Rejects, d.Down = nil, nil, ""
			s.known = append(s.known, d)
		}
	}
	return true
}

// gather adds the GPU to a Round.
func (s *slot) gather(r *solo.Round, round *collector.Round) error {
	s.Gather(r, s.take)
	if s.Stuck {
		devices := s.known
		if devices == nil {
			devices = []collector.Device{{ID: s.address, Class: collector.GPU, Vendor: "amd", PCI: s.address, Passing: true}}
		}
		for _, d := range devices {
			d.Down = collector.ReasonStuck
			round.Devices = append(round.Devices, d)
		}
		return solo.NotReturned(s.address)
	}
	for i := range s.last.devices {
		d := s.last.devices[i]
		d.Readings = slices.Clip(d.Readings)
		round.Devices = append(round.Devices, d)
		s.last.devices[i].Rejects = nil // counted, should the result be used again
	}
	return errors.Join(s.last.errs...)
}

// Close ends the goroutines of all GPUs, except goroutines in a read that does not
// return.
func (s *Source) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	return errors.Join(solo.Close(ctx.Done(), s.slots), solo.Close(ctx.Done(), map[string]*solo.Slot[usage]{"processes": &s.processes}))
}

// sizesOf are the numbers of partitions that a mode has on every GPU.
var sizesOf = map[string]int{"dpx": 2, "tpx": 3, "qpx": 4}

// partitions returns the partitions of a divided GPU. Partition 0 is the PCI
// device. The others are platform devices, which do not name their GPU: the
// kernel makes seven for each GPU right after it, so they have the next render
// nodes. Where another device has one of these, no partition gets names.
func (l *look) partitions(parent *collector.Device, t *table) []collector.Device {
	profile := l.layout()
	if profile == "" {
		return nil
	}
	mode, _, _ := strings.Cut(profile, "_")
	n := sizesOf[mode]
	if t != nil {
		if v, ok := t.get(partitions); ok && v >= 1 && v <= 8 {
			n = int(v)
		}
	}
	size := l.share(n)
	var out []collector.Device
	for i := range n {
		d := collector.Device{
			ID: fmt.Sprintf("%s/%d", parent.ID, i), Parent: parent.ID, Class: collector.GPU, Vendor: "amd", Model: parent.Model,
			PCI: l.address, Driver: "amdgpu", Down: parent.Down, Sampled: parent.Sampled, KubeIDs: l.partitionNodes(i),
		}
		d.Set(collector.DeviceInfo, 1, "gpu", "amd", d.Model, "", l.index+":"+strconv.Itoa(i), l.address, "", "", "", profile)
		if size > 0 {
			d.Set(collector.MemoryTotal, size)
		}
		if t != nil && i < len(t.parts) {
			if v, ok := mean(t.parts[i].gfx); ok {
				d.Set(collector.UtilizationRatio, v/100, "compute")
			}
			if v, ok := mean(t.parts[i].vcn); ok {
				d.Set(collector.UtilizationRatio, v/100, "video")
			}
		}
		out = append(out, d)
	}
	return out
}

// share is the memory of one of n partitions, which the driver divides equally
// (amdgpu_amdkfd_xcp_memory_size), 0 where the parts of the memory are unknown or
// not of equal use. How much of it is used, no file has.
func (l *look) share(n int) float64 {
	mode, _ := l.every(slow, "current_memory_partition")
	parts, _ := strconv.Atoi(strings.TrimPrefix(mode, "NPS"))
	text, _ := l.every(slow, "mem_info_vram_total")
	total, _ := strconv.ParseUint(text, 10, 63)
	if parts < 1 || n < 1 || n%parts != 0 {
		return 0
	}
	return float64(total / uint64(n) &^ 4095)
}

// partitionNodes returns the names by which device plugins know partition i.
func (l *look) partitionNodes(i int) []string {
	own := l.nodes(l.dir, l.address)
	if i == 0 {
		return own
	}
	at := slices.IndexFunc(own, func(n string) bool { return strings.HasPrefix(n, "renderD") })
	if at < 0 {
		return nil
	}
	minor, err := strconv.Atoi(strings.TrimPrefix(own[at], "renderD"))
	if err != nil {
		return nil
	}
	dir := ""
	for k := 1; k <= i; k++ {
		to, err := l.fs.Resolve(fmt.Sprintf("class/drm/renderD%d", minor+k))
		if dir = path.Dir(path.Dir(to)); err != nil || !strings.HasPrefix(path.Base(dir), "amdgpu_xcp") {
			return nil
		}
	}
	return l.nodes(dir, path.Base(dir))
}

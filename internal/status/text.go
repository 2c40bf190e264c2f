package status

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/accel-exporter/accel-exporter/collector"
)

// Ago formats a duration with its two largest units.
func Ago(d time.Duration) string {
	d = max(d, 0)
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%d s", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%d min %d s", int(d.Minutes()), int(d.Seconds())%60)
	case d < 24*time.Hour:
		return fmt.Sprintf("%d h %d min", int(d.Hours()), int(d.Minutes())%60)
	}
	return fmt.Sprintf("%d d %d h", int(d.Hours())/24, int(d.Hours())%24)
}

// number returns a number of things.
func number(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}

func percent(v float32) string { return fmt.Sprintf("%.0f %%", v*100) }
func celsius(v float32) string { return fmt.Sprintf("%.0f °C", v) }
func watts(v float32) string   { return fmt.Sprintf("%.0f W", v) }

const gib = 1 << 30

func size(v float32) string { return fmt.Sprintf("%.1f GiB", v/gib) }

func ofBytes(used, total float32) string {
	if !known(total) {
		return size(used)
	}
	return fmt.Sprintf("%.1f of %.0f GiB", used/gib, total/gib)
}

// EventName returns what a person calls an event: Xid 79, reset failed.
func EventName(e *collector.Event) string {
	name := strings.ReplaceAll(string(e.Kind), "_", " ")
	switch e.Kind {
	case collector.EventXid:
		name = fmt.Sprintf("Xid %d", e.Code)
	case collector.EventSXid:
		name = fmt.Sprintf("SXid %d", e.Code)
	}
	if e.Sub != "" {
		name += " " + e.Sub
	}
	return name
}

// Label returns a label of the first reading of a metric, "" without one.
func Label(d *collector.Device, m *collector.Metric, name string) string {
	for i := range d.Readings {
		if r := &d.Readings[i]; r.Metric == m {
			return r.Label(name)
		}
	}
	return ""
}

// ShortID shortens a UUID to the part that distinguishes devices of a node.
func ShortID(id string) string {
	prefix, rest, ok := strings.Cut(id, "-")
	if !ok || len(rest) < 36 {
		return id
	}
	return prefix + "-" + rest[:8]
}

// place is the order of devices: by class, then by index, the partitions of a device
// behind it.
type place struct {
	class   int
	pci, id string
	index   []int
}

func placeOf(d *collector.Device, index string) place {
	last := []collector.Class{collector.FPGA, collector.Switch, collector.CPU, collector.GPU}
	p := place{class: slices.Index(last, d.Class), pci: d.PCI, id: d.ID}
	for part := range strings.SplitSeq(index, ":") {
		n, err := strconv.Atoi(part)
		if err != nil {
			n = 1 << 30 // behind those with an index
		}
		p.index = append(p.index, n)
	}
	return p
}

func (p *place) compare(o *place) int {
	return cmp.Or(
		-cmp.Compare(p.class, o.class),
		slices.Compare(p.index, o.index),
		cmp.Compare(p.pci, o.pci),
		cmp.Compare(p.id, o.id),
	)
}

//go:build linux && cgo

package nvidia

import (
	"slices"
	"strconv"
	"time"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"github.com/accel-exporter/accel-exporter/collector"
)

var (
	callGPMSupport   = define(call{name: "nvmlGpmQueryDeviceSupport", alone: true})
	callGPMAlloc     = define(call{name: "nvmlGpmSampleAlloc", alone: true})
	callGPMFree      = define(call{name: "nvmlGpmSampleFree", alone: true})
	callGPMSample    = define(call{name: "nvmlGpmSampleGet", alone: true})
	callGPMMIGSample = define(call{name: "nvmlGpmMigSampleGet", alone: true})
	callGPMMetrics   = define(call{name: "nvmlGpmMetricsGet", alone: true})
)

// gpmWindow is the shortest time between two samples that NVML accepts.
var gpmWindow = 100 * time.Millisecond

// gpmPeriod is the time of a mean, but for the first. A mean of two seconds loses nothing,
// and go-nvml copies a list of 19 kB in each call.
const gpmPeriod = 2 * time.Second

// gpmMetric is one metric of GPU performance monitoring.
type gpmMetric struct {
	id     nvml.GpmMetricId
	name   string
	metric *collector.Metric
	unit   unit
	labels []string
	// engine: the value is of one of several engines, whose mean is the reading.
	engine bool
}

func gpmOf(id nvml.GpmMetricId, m *collector.Metric, u unit, labels ...string) gpmMetric {
	return gpmMetric{id: id, name: "gpm_metric_" + strconv.Itoa(int(id)), metric: m, unit: u, labels: labels}
}

// gpmEngines are the entries of n engines of a kind; ids are consecutive.
func gpmEngines(first nvml.GpmMetricId, n int, kind string) []gpmMetric {
	list := make([]gpmMetric, n)
	for i := range list {
		list[i] = gpmOf(first+nvml.GpmMetricId(i), collector.ActivityRatio, percent, kind)
		list[i].engine = true
	}
	return list
}

// of converts a value. A mean over two samples may slightly exceed the whole;
// it is capped.
func (m *gpmMetric) of(v float64) float64 {
	if m.unit == percent && v > 100 && v <= 101 {
		v = 100
	}
	return m.unit.of(v)
}

var gpmMetrics = slices.Concat([]gpmMetric{
	gpmOf(nvml.GPM_METRIC_GRAPHICS_UTIL, collector.ActivityRatio, percent, "graphics"),
	gpmOf(nvml.GPM_METRIC_SM_UTIL, collector.ActivityRatio, percent, "sm"),
	gpmOf(nvml.GPM_METRIC_SM_OCCUPANCY, collector.OccupancyRatio, percent),
	gpmOf(nvml.GPM_METRIC_INTEGER_UTIL, collector.ActivityRatio, percent, "integer"),
	gpmOf(nvml.GPM_METRIC_ANY_TENSOR_UTIL, collector.ActivityRatio, percent, "tensor"),
	gpmOf(nvml.GPM_METRIC_DFMA_TENSOR_UTIL, collector.ActivityRatio, percent, "tensor_dfma"),
	gpmOf(nvml.GPM_METRIC_HMMA_TENSOR_UTIL, collector.ActivityRatio, percent, "tensor_hmma"),
	gpmOf(nvml.GPM_METRIC_DMMA_TENSOR_UTIL, collector.ActivityRatio, percent, "tensor_dmma"),
	gpmOf(nvml.GPM_METRIC_IMMA_TENSOR_UTIL, collector.ActivityRatio, percent, "tensor_imma"),
	gpmOf(nvml.GPM_METRIC_DRAM_BW_UTIL, collector.ActivityRatio, percent, "dram"),
	gpmOf(nvml.GPM_METRIC_FP64_UTIL, collector.ActivityRatio, percent, "fp64"),
	gpmOf(nvml.GPM_METRIC_FP32_UTIL, collector.ActivityRatio, percent, "fp32"),
	gpmOf(nvml.GPM_METRIC_FP16_UTIL, collector.ActivityRatio, percent, "fp16"),
	gpmOf(nvml.GPM_METRIC_PCIE_TX_PER_SEC, collector.PCIeTransmitRate, mebibyte),
	gpmOf(nvml.GPM_METRIC_PCIE_RX_PER_SEC, collector.PCIeReceiveRate, mebibyte),
	gpmOf(nvml.GPM_METRIC_NVLINK_TOTAL_TX_PER_SEC, collector.NVLinkTransmitRate, mebibyte),
	gpmOf(nvml.GPM_METRIC_NVLINK_TOTAL_RX_PER_SEC, collector.NVLinkReceiveRate, mebibyte),
}, gpmEngines(nvml.GPM_METRIC_NVDEC_0_UTIL, 8, "nvdec"), gpmEngines(nvml.GPM_METRIC_NVJPG_0_UTIL, 8, "nvjpg"))

// gpm reads the performance counters of a GPU or a GPU instance. Two samples, gpmPeriod
// apart, give the means over that time.
type gpm struct {
	samples  [2]nvml.GpmSample
	previous int
	// taken is the time of the previous sample; zero where there is none.
	taken time.Time
	ready bool
	// query is that of every round: the list that go-nvml copies has 19 kB.
	query nvml.GpmMetricsGetType
	// kept are the last means, which are repeated until the next.
	kept []collector.Reading
	// want are the entries of gpmMetrics that the device supports.
	want []gpmMetric
}

// gpmSupported reports whether the GPU has these counters. It calls NVML once.
func (g *gpu) gpmSupported() bool {
	if g.gpmAsked {
		return g.gpmThere
	}
	support, ok := ask(&g.asker, callGPMSupport, g.handle.GpmQueryDeviceSupport)
	g.gpmAsked = ok || g.never(callGPMSupport)
	g.gpmThere = ok && support.IsSupportedDevice != 0
	return g.gpmThere
}

// prepare allocates the samples, once.
func (p *gpm) prepare(g *gpu, a *asker) bool {
	if p.ready {
		return true
	}
	for i := range p.samples {
		if p.samples[i] != nil {
			continue
		}
		s, ok := ask(a, callGPMAlloc, g.lib.api.GpmSampleAlloc)
		if !ok {
			return false
		}
		p.samples[i] = s
	}
	p.want, p.ready = append([]gpmMetric(nil), gpmMetrics...), true
	return true
}

// wholeGPU is not a valid GPU instance id.
const wholeGPU = -1

// read samples the GPU instance gi, or the whole GPU, and sets the means since
// the previous sample in d.
func (p *gpm) read(g *gpu, a *asker, d *collector.Device, now time.Time, gi int) {
	period := gpmWindow
	if p.kept != nil {
		period = gpmPeriod - gpmPeriod/10 // rounds are not exact
	}
	if !p.taken.IsZero() && now.Sub(p.taken) < period {
		d.Readings = append(d.Readings, p.kept...)
		return
	}
	sample := p.samples[1-p.previous]
	var ok bool
	if gi == wholeGPU {
		ok = do(a, callGPMSample, func() nvml.Return { return sample.Get(g.handle) })
	} else {
		ok = do(a, callGPMMIGSample, func() nvml.Return { return sample.MigGet(g.handle, gi) })
	}
	first := p.taken.IsZero()
	if !ok {
		p.drop()
		return
	}
	p.previous, p.taken, p.kept = 1-p.previous, now, nil
	if first || len(p.want) == 0 {
		return
	}
	q := &p.query
	q.NumMetrics, q.Sample1, q.Sample2 = uint32(len(p.want)), p.samples[1-p.previous], p.samples[p.previous]
	for i := range p.want {
		q.Metrics[i] = nvml.GpmMetric{MetricId: uint32(p.want[i].id), NvmlReturn: uint32(nvml.ERROR_UNKNOWN)}
	}
	if do(a, callGPMMetrics, func() nvml.Return { return g.lib.api.GpmMetricsGet(q) }) {
		means := collector.Device{}
		p.deliver(a, &means, q, g.links.count > 0)
		if a.failed == "" { // else the next round asks again, and the failure is in each
			p.kept = means.Readings
		}
		d.Readings, d.Rejects = append(d.Readings, means.Readings...), append(d.Rejects, means.Rejects...)
	}
}

// deliver sets the answers of q. Of a GPU without NVLinks, drivers return the rates of
// NVLink as 0: those are left out.
func (p *gpm) deliver(a *asker, d *collector.Device, q *nvml.GpmMetricsGetType, nvlinks bool) {
	var engines, n float64
	var last gpmMetric
	mean := func() {
		if n > 0 {
			d.Set(last.metric, last.of(engines/n), last.labels...)
		}
		engines, n = 0, 0
	}
	kept := 0
	for i := range p.want {
		m, v := &p.want[i], &q.Metrics[i]
		switch ret := nvml.Return(v.NvmlReturn); {
		case ret == nvml.SUCCESS && m.engine:
			if n > 0 && m.labels[0] != last.labels[0] {
				mean()
			}
			engines, n, last = engines+v.Value, n+1, *m
		case ret == nvml.SUCCESS && !nvlinks && (m.metric == collector.NVLinkTransmitRate || m.metric == collector.NVLinkReceiveRate):
		case ret == nvml.SUCCESS:
			// Set rejects NaN, the result of a window without cycles.
			d.Set(m.metric, m.of(v.Value), m.labels...)
		case permanent(ret) || ret == nvml.ERROR_INVALID_ARGUMENT:
			a.missed(m.name, nvml.ERROR_NOT_SUPPORTED)
			continue
		default:
			a.missed(m.name, ret)
		}
		if kept != i {
			p.want[kept] = *m
		}
		kept++
	}
	p.want = p.want[:kept]
	mean()
}

// drop discards the previous sample: the device changed since.
func (p *gpm) drop() { p.taken, p.kept = time.Time{}, nil }

// free frees the samples.
func (p *gpm) free(a *asker) {
	for i, s := range p.samples {
		if s != nil {
			do(a, callGPMFree, s.Free)
			p.samples[i] = nil
		}
	}
	p.want, p.ready, p.taken, p.kept = nil, false, time.Time{}, nil
}

// readGPM sets the counters of the whole GPU.
func (g *gpu) readGPM(d *collector.Device, now time.Time) {
	if g.gpmSupported() && !g.never(callGPMSample) && g.gpm.prepare(g, &g.asker) {
		g.gpm.read(g, &g.asker, d, now, wholeGPU)
	}
}

package amd

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/accel-exporter/accel-exporter/collector"
	"github.com/accel-exporter/accel-exporter/collector/sysfs"
)

// card reads one GPU. Its goroutine alone uses it.
type card struct {
	fs      *sysfs.Reader
	pci     *collector.PCINames
	address string
	dir     string // its PCI directory
	index   string

	refused string // why the last table was refused
	last    *table
	at      time.Time // of last
	// throttled are the seconds by reason since the first table.
	throttled map[string]float64
	// before is the last reading of a GPU that is not read now, to let it sleep.
	before *reading
}

// reading is one round of one GPU and its partitions.
type reading struct {
	devices []collector.Device
	errs    []error
}

// look is the state of one read.
type look struct {
	*card
	collector.Device
	now      time.Time
	errs     []error
	answered bool
}

func (c *card) read(now time.Time) reading {
	l := &look{card: c, now: now, Device: collector.Device{
		ID: c.address, Class: collector.GPU, Vendor: "amd", PCI: c.address, Driver: "amdgpu",
	}}
	if !c.fs.Exists(c.dir + "/device") {
		return reading{} // it has left
	}
	status, _ := l.every(0, "power/runtime_status")
	awake := status == "active" || status == "unsupported" || status == ""
	if awake && c.restsSoon(now) {
		return c.resting(now)
	}
	l.identify()
	l.sizes()
	var t *table
	if awake {
		t = l.measure()
	}
	if !awake {
		c.last = nil
	}
	if !awake || l.answered || l.silent() {
		l.Sampled = now
	} else {
		l.Down = collector.ReasonError
	}
	r := reading{devices: []collector.Device{l.Device}, errs: l.errs}
	r.devices = append(r.devices, l.partitions(&r.devices[0], t)...)
	c.before = &r
	return r
}

// silent reports whether the GPU has nothing that could answer: one of several virtual
// functions of a GPU has only what the driver keeps in memory.
func (l *look) silent() bool {
	return !slices.ContainsFunc([]string{"gpu_metrics", "gpu_busy_percent", "hwmon"}, func(name string) bool {
		return l.fs.Exists(path.Join(l.dir, name))
	})
}

// restsSoon reports whether the GPU was idle and may be suspended: it is left
// alone for longer than the delay after which it is.
func (c *card) restsSoon(now time.Time) bool {
	if c.before == nil || c.last == nil {
		return false
	}
	control, _ := c.fs.ReadEvery(now, slow, c.dir+"/power/control")
	text, _ := c.fs.ReadEvery(now, slow, c.dir+"/power/autosuspend_delay_ms")
	busy, known := c.last.get(gfxActivity)
	delay, err := strconv.Atoi(text)
	return control == "auto" && known && busy < 5 && err == nil && delay > 0 && now.Sub(c.at) < 3*time.Duration(delay)*time.Millisecond
}

// resting returns the last reading of a GPU that is left alone: it is observed to be awake
// and idle, as it was then.
func (c *card) resting(now time.Time) reading {
	r := reading{devices: slices.Clone(c.before.devices), errs: c.before.errs}
	for i := range r.devices {
		if r.devices[i].Down == "" {
			r.devices[i].Sampled = now
		}
	}
	return r
}

// every reads an attribute at most once in interval. An absent attribute, and an
// attribute that this GPU does not support, is no error.
func (l *look) every(interval time.Duration, name string) (string, bool) {
	text, err := l.fs.ReadEvery(l.now, interval, path.Join(l.dir, name))
	if err != nil && !expected(err) && interval == 0 {
		l.errs = append(l.errs, fmt.Errorf("read %s: %w", l.address, err))
	}
	return text, err == nil && text != ""
}

// expected reports whether an error is an answer of the driver: not on this card,
// asleep (EPERM), in reset (EBUSY).
func expected(err error) bool {
	return slices.Contains([]syscall.Errno{
		syscall.ENOENT, syscall.ENODEV, syscall.EINVAL, syscall.EOPNOTSUPP, syscall.EPERM, syscall.EBUSY, syscall.ENODATA, syscall.EIO,
	}, sysfs.Errno(err)) || errors.Is(err, fs.ErrNotExist)
}

// number reads an attribute and sets it, in the unit of the metric.
func (l *look) number(interval time.Duration, name string, unit float64, m *collector.Metric, labels ...string) (float64, bool) {
	s, ok := l.every(interval, name)
	if !ok {
		return 0, false
	}
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		l.Reject(m, collector.RejectType)
		return 0, false
	}
	v := float64(n) / unit
	l.Set(m, v, labels...)
	return v, true
}

func (l *look) identify() {
	if id, ok := l.every(sysfs.Never, "unique_id"); ok && len(id) == 16 && strings.Trim(id, "0") != "" {
		l.ID = "GPU-" + id
	}
	device, _ := l.every(sysfs.Never, "device")
	device = strings.TrimPrefix(device, "0x")
	product, _ := l.every(sysfs.Never, "product_name")
	serial, _ := l.every(sysfs.Never, "serial_number")
	part, _ := l.every(sysfs.Never, "product_number")
	numa, _ := l.every(sysfs.Never, "numa_node")
	if strings.HasPrefix(numa, "-") {
		numa = ""
	}
	if l.Model = cmp.Or(product, models[device].name); l.Model == "" {
		n, _ := strconv.ParseUint(device, 16, 16)
		l.Model = "AMD " + l.pci.Of(amdID, uint32(n))
	}
	if l.layout() == "" {
		l.KubeIDs = l.nodes(l.dir, l.address)
	}
	l.Set(collector.DeviceInfo, 1, "gpu", "amd", l.Model, models[device].architecture, l.index, l.address, numa, serial, part, "")
	if v, ok := l.every(sysfs.Never, "vbios_version"); ok {
		l.Set(collector.FirmwareInfo, 1, "vbios", v)
	}
	files, _ := l.fs.Names(l.dir + "/fw_version")
	for _, f := range files {
		if name, ok := strings.CutSuffix(f, "_fw_version"); ok {
			if v, ok := l.every(slow, "fw_version/"+f); ok && v != "0x00000000" {
				l.Set(collector.FirmwareInfo, 1, name, v)
			}
		}
	}
	compute, known := l.every(slow, "current_compute_partition")
	memory, _ := l.every(slow, "current_memory_partition")
	if known {
		l.Set(collector.GPUPartitionInfo, 1, strings.ToLower(compute), strings.ToLower(memory))
	}
}

// layout is the partition profile of a GPU that is divided, else "".
func (l *look) layout() string {
	compute, _ := l.every(slow, "current_compute_partition")
	if compute == "" || compute == "SPX" || !strings.HasSuffix(compute, "PX") {
		return ""
	}
	memory, _ := l.every(slow, "current_memory_partition")
	return strings.Trim(strings.ToLower(compute+"_"+memory), "_")
}

// nodes returns a name and the names of the DRM nodes below a directory.
func (l *look) nodes(dir, name string) []string {
	names, _ := l.fs.Names(dir + "/drm")
	return append([]string{name}, slices.DeleteFunc(names, func(n string) bool {
		return !strings.HasPrefix(n, "card") && !strings.HasPrefix(n, "renderD")
	})...)
}

// sizes sets what the kernel keeps in memory.
func (l *look) sizes() {
	total, known := l.number(slow, "mem_info_vram_total", 1, collector.MemoryTotal)
	if used, ok := l.number(0, "mem_info_vram_used", 1, collector.MemoryUsed); ok && known && used <= total {
		l.Set(collector.MemoryFree, total-used)
	}
	l.number(slow, "mem_info_vis_vram_total", 1, collector.BAR1Total)
	l.number(slow, "mem_info_vis_vram_used", 1, collector.BAR1Used)
	l.number(slow, "mem_info_gtt_total", 1, collector.GTTTotal)
	l.number(slow, "mem_info_gtt_used", 1, collector.GTTUsed)
}

// measure reads what the driver asks the GPU for.
func (l *look) measure() *table {
	hwmon := ""
	if names, _ := l.fs.Names(l.dir + "/hwmon"); len(names) > 0 {
		hwmon = "hwmon/" + names[0] + "/"
	}
	t := l.metrics()
	heat := map[string]float64{}
	if t != nil {
		l.answered = true
		l.tabled(t, heat)
	}
	if t == nil || t.processor {
		l.sensors(t, hwmon, heat)
	}
	if t == nil || t.values[replays] == nil {
		l.number(slow, "pcie_replay_count", 1, collector.PCIeReplays)
	}
	if hwmon != "" {
		l.board(hwmon)
	}
	l.limits(hwmon, heat)
	l.errors()
	return t
}

// metrics reads gpu_metrics with one read. A version that is not known is
// counted once and gives nothing.
func (l *look) metrics() *table {
	b, err := l.fs.ReadBytes(l.dir+"/gpu_metrics", sysfs.Page)
	if err != nil {
		if !expected(err) {
			l.errs = append(l.errs, fmt.Errorf("read %s: %w", l.address, err))
		}
		return nil
	}
	t, err := decode(b)
	why := ""
	if err != nil {
		if why = err.Error(); why != l.refused {
			l.Reject(collector.UtilizationRatio, map[bool]string{true: collector.RejectVersion, false: collector.RejectType}[errors.Is(err, errVersion)])
		}
		t = nil
	}
	l.refused = why
	if t != nil {
		l.throttle(t)
		l.last, l.at = t, l.now
	}
	return t
}

// reasons are the residencies of a reason; where there are several, the clocks
// may be reduced for more than one at a time, and the longest counts.
var reasons = []struct {
	name string
	of   []quantity
}{
	{"sw_power_cap", []quantity{ppt}},
	{"sw_thermal", []quantity{socketThermal, hbmThermal}},
	{"hw_thermal", []quantity{prochot, vrThermal}},
}

// throttle adds the share of the firmware's samples in which the clocks were
// reduced, times the time since the previous table. The counters have 32 bits.
func (l *look) throttle(t *table) {
	if _, ok := t.get(accumulation); !ok {
		return
	}
	for _, r := range reasons {
		most, known := 0.0, false
		for _, q := range r.of {
			if _, ok := t.get(q); !ok {
				continue
			}
			known = true
			if l.last == nil || len(l.last.values[q]) == 0 {
				continue
			}
			samples := uint32(t.values[accumulation][0] - l.last.values[accumulation][0])
			if in := uint32(t.values[q][0] - l.last.values[q][0]); samples > 0 && in <= samples {
				most = max(most, float64(in)/float64(samples)*l.now.Sub(l.at).Seconds())
			}
		}
		if known {
			l.throttled[r.name] += most
			l.Set(collector.ThrottleSeconds, l.throttled[r.name], r.name)
		}
	}
}

// named is a quantity and the label value of its series.
type named struct {
	of    quantity
	label string
}

// generations of PCIe by the rate of a lane in 0.1 GT/s.
var generations = map[float64]float64{25: 1, 50: 2, 80: 3, 160: 4, 320: 5, 640: 6}

// tabled sets the readings of a table.
func (l *look) tabled(t *table, heat map[string]float64) {
	for _, n := range []named{{edge, "gpu"}, {hotspot, "junction"}, {memory, "memory"}, {regulator, "vrsoc"}} {
		// Firmware that does not measure a place reports 0, as Navi 10 for vrsoc.
		if v, ok := t.get(n.of); ok && v > 0 {
			l.Set(collector.TemperatureCelsius, v, n.label)
			heat[n.label] = v
		}
	}
	if v, ok := t.get(soc); ok && v > 0 {
		l.Set(collector.TemperatureCelsius, v/100, "soc")
	}
	busy := func(engine string, v float64, ok bool) {
		if ok {
			l.Set(collector.UtilizationRatio, v/100, engine)
		}
	}
	for _, n := range []named{{gfxActivity, "compute"}, {memActivity, "memory"}, {mmActivity, "video"}, {jpegActivity, "jpeg"}} {
		v, ok := mean(t.values[n.of])
		busy(n.label, v, ok)
	}
	video, known := mean(t.values[vcnActivity])
	if !known && len(t.parts) > 0 {
		video, known = mean(t.vcns())
	}
	busy("video", video, known)
	one := t.version == "1.3"
	if v, ok := t.get(power); ok && v > 0 { // the second die of an MI250 has 0
		l.Set(collector.PowerWatts, v)
		if one {
			l.Set(collector.PowerAverage, v)
		}
	}
	device, _ := l.every(sysfs.Never, "device")
	if v, ok := t.get(energy); ok && v > 0 && (!one || models[strings.TrimPrefix(device, "0x")].architecture == "CDNA 2") {
		l.Set(collector.EnergyJoules, v/(1<<16))
	}
	for _, n := range []named{{gfxClock, "sm"}, {memClock, "memory"}, {videoClock, "video"}} {
		if v, ok := highest(t.values[n.of]); ok {
			l.Set(collector.ClockHertz, v*1e6, n.label)
		}
	}
	if v, ok := t.get(fan); ok {
		l.Set(collector.FanSpeed, v, "0")
	}
	if v, ok := t.get(linkSpeed); ok && generations[v] > 0 {
		l.Set(collector.PCIeGeneration, generations[v])
	}
	if v, ok := t.get(linkWidth); ok && v > 0 {
		l.Set(collector.PCIeWidth, v)
	}
	if v, ok := t.get(replays); ok {
		l.Set(collector.PCIeReplays, v)
	}
	for _, n := range []named{{rollovers, "replay_rollover"}, {toRecovery, "l0_to_recovery"}, {naksSent, "nak_sent"}, {naksReceived, "nak_received"}} {
		if v, ok := t.get(n.of); ok {
			l.Set(collector.PCIeErrors, v, n.label)
		}
	}
	for i, v := range t.values[xgmiStatus] {
		if v <= 1 {
			l.Set(collector.XGMIUp, float64(v), strconv.Itoa(i))
		}
	}
	for _, n := range []struct {
		of quantity
		m  *collector.Metric
	}{{xgmiRead, collector.XGMIReceive}, {xgmiWrite, collector.XGMITransmit}} {
		for i, v := range t.values[n.of] {
			if v != absent {
				l.Set(n.m, float64(v)*1024, strconv.Itoa(i))
			}
		}
	}
}

// vcns returns the use of the video engines of the partitions that exist.
func (t *table) vcns() (out []uint64) {
	n, _ := t.get(partitions)
	for _, p := range t.parts[:min(int(n), len(t.parts))] {
		out = append(out, p.vcn...)
	}
	return out
}

// hwmonSensors are the channels of hwmon.
var hwmonSensors = []struct{ channel, sensor string }{{"temp1", "gpu"}, {"temp2", "junction"}, {"temp3", "memory"}}

// sensors reads single attributes of a GPU without a table that has them.
func (l *look) sensors(t *table, hwmon string, heat map[string]float64) {
	for _, n := range []struct{ file, engine string }{{"gpu_busy_percent", "compute"}, {"mem_busy_percent", "memory"}, {"vcn_busy_percent", "video"}} {
		_, ok := l.number(0, n.file, 100, collector.UtilizationRatio, n.engine)
		l.answered = l.answered || ok
	}
	for _, q := range linkQuantities {
		if all := l.links(slow, "current_link_"+q.file, q.unit); len(all) > 0 {
			l.Set(q.now, all[len(all)-1]) // the outermost link is that of the slot
		}
	}
	if hwmon == "" {
		return
	}
	for _, s := range hwmonSensors {
		if v, ok := l.number(0, hwmon+s.channel+"_input", 1000, collector.TemperatureCelsius, s.sensor); ok {
			heat[s.sensor], l.answered = v, true
		}
	}
	if _, ok := l.number(0, hwmon+"power1_input", 1e6, collector.PowerWatts); !ok {
		if v, ok := l.number(0, hwmon+"power1_average", 1e6, collector.PowerAverage); ok {
			l.Set(collector.PowerWatts, v)
		}
	}
	l.number(0, hwmon+"freq1_input", 1, collector.ClockHertz, "sm")
	if t == nil { // of a processor, its table has it
		l.number(0, hwmon+"freq2_input", 1, collector.ClockHertz, "memory")
	}
	l.number(0, hwmon+"fan1_input", 1, collector.FanSpeed, "0")
}

// board sets the voltages, and the speed of the fan as a share of its highest.
func (l *look) board(hwmon string) {
	for _, channel := range []string{"in0", "in1"} {
		rail, ok := l.every(sysfs.Never, hwmon+channel+"_label")
		if text, _ := l.every(slow, hwmon+channel+"_input"); ok && text != "0" { // switched off
			l.number(slow, hwmon+channel+"_input", 1000, collector.GPUVoltage, rail)
		}
	}
	text, _ := l.every(sysfs.Never, hwmon+"fan1_max")
	most, _ := strconv.ParseFloat(text, 64)
	for _, r := range l.Readings {
		if r.Metric == collector.FanSpeed && most > 0 {
			l.Set(collector.FanRatio, min(1, r.Value/most), r.Labels...)
			break
		}
	}
}

// linkQuantities are what the PCI core has of a link: the end of the names of its files.
var linkQuantities = []struct {
	file      string
	unit      func(float64) float64
	now, most *collector.Metric
}{
	{"speed", func(rate float64) float64 { return generations[rate*10] }, collector.PCIeGeneration, collector.PCIeGenerationMax},
	{"width", func(lanes float64) float64 { return lanes }, collector.PCIeWidth, collector.PCIeWidthMax},
}

// links returns what a file has for the GPU and for every port above it up to the root. A
// switch on the card has its own links.
func (l *look) links(interval time.Duration, name string, unit func(float64) float64) (all []float64) {
	for up := ""; ; up += "../" {
		text, _ := l.every(interval, up+name)
		number, _, _ := strings.Cut(text, " ")
		v, _ := strconv.ParseFloat(number, 64)
		if v = unit(v); v == 0 {
			return all
		}
		all = append(all, v)
	}
}

// limits sets what seldom changes. A limit of 0, or of absolute zero, is unknown.
func (l *look) limits(hwmon string, heat map[string]float64) {
	for _, limit := range []struct{ file, name string }{{"_crit", "slowdown"}, {"_emergency", "shutdown"}} {
		margin, known := 0.0, false
		for _, s := range hwmonSensors {
			text, ok := l.every(slow, hwmon+s.channel+limit.file)
			n, err := strconv.Atoi(text)
			if !ok || err != nil || n <= 0 {
				continue
			}
			l.Set(collector.TemperatureLimit, float64(n)/1000, s.sensor, limit.name)
			if now, ok := heat[s.sensor]; ok && (!known || float64(n)/1000-now < margin) {
				margin, known = float64(n)/1000-now, true
			}
		}
		if known {
			l.Set(collector.TemperatureMargin, margin, limit.name)
		}
	}
	for _, limit := range []struct{ file, name string }{{"", "enforced"}, {"_default", "default"}, {"_min", "min"}, {"_max", "max"}} {
		if text, ok := l.every(slow, hwmon+"power1_cap"+limit.file); ok && (text != "0" || limit.name == "min") {
			l.number(slow, hwmon+"power1_cap"+limit.file, 1e6, collector.PowerLimit, limit.name)
		}
	}
	for _, n := range []struct{ file, clock string }{{"pp_dpm_sclk", "sm"}, {"pp_dpm_mclk", "memory"}} {
		text, _ := l.every(slow, n.file)
		if mhz, ok := highestLevel(text); ok {
			l.Set(collector.ClockMax, mhz*1e6, n.clock)
		}
	}
	for _, q := range linkQuantities {
		all := l.links(sysfs.Never, "max_link_"+q.file, q.unit)
		if len(all) > 0 {
			l.Set(q.most, all[0], "device")
		}
		if len(all) > 1 {
			l.Set(q.most, slices.Min(all), "slot")
		}
	}
}

// highestLevel returns the highest clock of pp_dpm_*: lines "1: 2100Mhz *".
func highestLevel(text string) (most float64, ok bool) {
	for line := range strings.Lines(text) {
		_, rest, _ := strings.Cut(line, ": ")
		number, _, found := strings.Cut(rest, "Mhz")
		if n, err := strconv.ParseUint(number, 10, 32); found && err == nil {
			most, ok = max(most, float64(n)), true
		}
	}
	return most, ok
}

// severities of the lines of a RAS file.
var severities = map[string]string{"ue": "uncorrected", "ce": "corrected", "de": "deferred"}

// errors sets the RAS counters and the retired pages.
func (l *look) errors() {
	files, _ := l.fs.Names(l.dir + "/ras")
	for _, f := range files {
		block, ok := strings.CutPrefix(f, "aca_")
		if !ok {
			block, ok = strings.CutSuffix(f, "_err_count")
		}
		if !ok {
			continue
		}
		text, _ := l.every(rare, "ras/"+f)
		if block == "umc" {
			block = "dram"
		}
		for line := range strings.Lines(text) {
			name, count, _ := strings.Cut(strings.TrimSpace(line), ": ")
			if n, err := strconv.ParseUint(count, 10, 63); err == nil && severities[name] != "" {
				l.Set(collector.ECCErrors, float64(n), severities[name], block)
			}
		}
	}
	if !slices.Contains(files, "gpu_vram_bad_pages") {
		return
	}
	// The driver returns whole lines, several pages of a sysfs file of them.
	if text, err := l.fs.ReadLinesEvery(l.now, rare, l.dir+"/ras/gpu_vram_bad_pages", len("0x0000001f : 0x00001000 : R\n"), mostBadPages); err == nil && len(text) < mostBadPages {
		retired, pending := badPages(text)
		l.Set(collector.RetiredPages, float64(retired), "unknown")
		l.SetBool(collector.RetiredPagesPending, pending > 0)
	}
}

// mostBadPages bounds the list of retired pages, in bytes, at 9362 pages.
const mostBadPages = 256 << 10

// badPages counts lines "0x0000001f : 0x00001000 : R" by their state: R is retired,
// F could not be and is not used either, P waits for the next load of the driver.
func badPages(text string) (retired, pending int) {
	for line := range strings.Lines(text) {
		switch line = strings.TrimSpace(line); {
		case strings.HasSuffix(line, ": R"), strings.HasSuffix(line, ": F"):
			retired++
		case strings.HasSuffix(line, ": P"):
			pending++
		}
	}
	return retired, pending
}

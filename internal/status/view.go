package status

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/accel-exporter/accel-exporter/collector"
	"github.com/accel-exporter/accel-exporter/internal/judge/allocation"
	"github.com/accel-exporter/accel-exporter/internal/judge/health"
	"github.com/accel-exporter/accel-exporter/podmap"
	"github.com/accel-exporter/accel-exporter/podmap/kube"
)

// Limits of the page, which stays below 150 KB. Partitions have lines if there are at
// most maxPartLines of them.
const (
	maxEvents      = 40
	maxAlerts      = 40
	maxNotices     = 30
	maxAllocations = 48
	maxHolders     = 4 // in a row
	maxClients     = 64
	maxStrays      = 20
	maxPartLines   = 56
)

// first returns the first elements of a list and how many more it has.
func first[T any](list []T, limit int) ([]T, int) {
	n := min(len(list), limit)
	return list[:n], len(list) - n
}

// Tones of a state. Each has a word beside its colour.
const (
	good    = "good"
	neutral = "neutral"
	warn    = "warn"
	bad     = "bad"
)

// inPart is the word for a source that answers and misses something. If that matters,
// a device is not healthy.
const inPart = "up, in part"

// notHere is the word for a source without hardware.
const notHere = "not on this machine"

// silent is the word for a device that does not answer and has not been judged for that
// yet.
const silent = "not answering"

// State is a state with its tone.
type State struct{ Word, Tone string }

var states = map[string]string{"healthy": good, "degraded": warn, "failed": bad, "unknown": warn}

// View is what the page of a Snapshot shows, of the node or of a device.
type View struct {
	Node, Version, Title string
	Time                 time.Time
	Headline             string
	Tone                 string
	Notices              []Notice
	Sources              []Source
	Remarks              []Remark
	Devices              []Device
	Alerts               *Alerts
	Events               []Event
	Allocations          []Allocation `json:"-"` // all Holders
	Uncertain            string       // why the allocations are not certain
	Unmanaged            bool         // there is no kubelet: processes use the devices
	Resources            []allocation.Resource
	Strays               []string // allocations and processes that belong to nothing
	// More are how many further ones there are.
	More   struct{ Notices, Alerts, Allocations, Strays int }
	Device *Detail // on the page of a device
	// Bundles are the bundles of evidence on the node, the latest first.
	Bundles []Bundle `json:",omitempty"`

	samples map[string]*[samples]values // of the devices
}

// Notice is something that needs attention: one cause, with what it affects.
type Notice struct {
	State
	Link, What, Why, Cure, Doc string
	Since                      time.Time `json:",omitzero"` // of the state
	Devices                    []string  // that a source which is down leaves without values
	Pods                       []string
}

// addPods adds the pods on a device, each once.
func (n *Notice) addPods(d *Device) {
	for i := range d.Holders {
		if pod := d.Holders[i].Pod; !slices.Contains(n.Pods, pod) {
			n.Pods = append(n.Pods, pod)
		}
	}
}

// Bundle is a bundle of evidence in the directory.
type Bundle struct {
	Name    string    `json:"name"`
	Fault   time.Time `json:"fault"`
	Devices []string  `json:"devices"`
	Size    int       `json:"bytes"`
	SHA256  string    `json:"sha256"`
	Sent    bool      `json:"sent,omitempty"`
}

// Source is a row of the sources.
type Source struct {
	Name string
	State
	Trouble
	Reason, Err, Age, Took string // Reason is that of accel_source_up, or the state of the kubelet or API server
}

// Cell is a value with its line; an empty Text is a value that is unknown.
type Cell struct {
	Text  string
	Spark *Spark `json:"-"`
	// Value is in the unit of the metric, 0 if it is unknown. Bars is its line, for a
	// terminal.
	Value float32
	Bars  string
}

// Device is a row of the devices.
type Device struct {
	ID, Short, Index, Model, Vendor, Class, PCI string
	Image                                       string // what is loaded in an FPGA
	Part                                        bool
	parent                                      string
	unread                                      bool // unknown only because no source answers
	State
	Since                                   time.Time `json:",omitzero"` // of the verdict
	Age                                     string    // of its values, if they are not of now
	Reasons                                 []string
	More                                    int    // further reasons
	Action                                  string // in words, and its code
	Code                                    string
	Doc                                     string // the runbook below Docs of a device that is not well
	Temperature, Power, Utilization, Memory Cell
	Holders                                 []Allocation
	Pods                                    []Allocation `json:"-"` // the first of Holders
	MorePods, MoreHolders                   int
	Clients                                 []Client
	MoreClients                             int
	Free                                    string // the availability of a device without holders
	Why                                     string
}

// Allocation is a pod on a device.
type Allocation struct {
	Device, Index, Pod, Held, Utilization, Memory, Idle, Cost, Notes string
	Containers                                                       string // and resources
	// IdleSeconds and IdleCost are the numbers of Idle and Cost, 0 if they are
	// unknown.
	IdleSeconds, IdleCost float64
}

// Event is a row of the events.
type Event struct {
	Time            time.Time
	What, Meaning   string
	Device, Index   string
	Detail, Sources string
	Tone            string
	Past            bool
}

// Alerts are the rules that are evaluated on the node.
type Alerts struct {
	Evaluated       time.Time
	Rules, Skipped  int
	Failing         []string // the errors of rules
	List            []Alert  // firing, pending and resolved ones, each the most severe first
	Firing, Pending int
}

// Alert is an alert that fires, is pending, or has resolved in the last minutes.
type Alert struct {
	Labels                        map[string]string
	Summary, Description, Runbook string
	State                         string // firing, pending or resolved
	Since                         time.Time
}

// Name returns the name of the alert.
func (a *Alert) Name() string { return a.Labels["alertname"] }

// Severity returns the label severity.
func (a *Alert) Severity() string { return a.Labels["severity"] }

// Device returns the label device, which is empty for an alert about something else.
func (a *Alert) Device() string { return a.Labels["device"] }

// Tone is that of the alert's severity.
func (a *Alert) Tone() string {
	switch {
	case a.State != "firing" || a.Severity() == "info":
		return neutral
	case a.Severity() == "critical":
		return bad
	}
	return warn
}

// view returns what the page of a Snapshot shows.
func (p *Page) view(s *collector.Snapshot) *View {
	v := &View{Node: p.o.Node, Version: p.o.Version, Title: p.o.Node, Time: s.Time}
	report, kubelet, api := p.o.Allocations()
	for i := range s.Sources {
		v.Sources = append(v.Sources, sourceOf(&s.Sources[i], s.Time))
	}
	if kubelet != nil {
		v.Sources = append(v.Sources, kubeletSource(kubelet))
	}
	v.missing(s, p.o.AsksFor)
	if api != nil {
		feed := &api.Pods
		if (feed.State == kube.StateFresh || feed.State == kube.StateNone) && api.Slices != nil {
			feed = api.Slices
		}
		v.Sources = append(v.Sources, polled(APIServer, string(feed.State), feed.Reason, feed.Age, Explain(APIServer, "")))
	}
	v.Remarks = p.o.Remarks()
	v.remarks(s, p.o.Explain)
	v.devices(p, s, report)
	v.events(s)
	v.allocations(report)
	v.Alerts = p.o.Alerts()
	v.headline()
	v.Notices, v.More.Notices = first(v.Notices, maxNotices)
	v.Allocations, v.More.Allocations = first(v.Allocations, maxAllocations)
	v.Strays, v.More.Strays = first(v.Strays, maxStrays)
	return v
}

func sourceOf(s *collector.Status, now time.Time) Source {
	out := Source{Name: s.Source, Reason: s.Reason, Err: s.Err, Took: s.Took.Round(time.Millisecond / 10).String()}
	if !s.LastSuccess.IsZero() {
		out.Age = Ago(now.Sub(s.LastSuccess))
	}
	if s.Up {
		out.State = State{"up", good}
		if s.Err != "" {
			out.State = State{inPart, warn}
			out.Meaning = "Something could not be read."
		}
		return out
	}
	out.Trouble = Explain(s.Source, s.Reason)
	switch s.Reason {
	case collector.SourceAbsent:
		out.State, out.Took = State{notHere, neutral}, ""
	case collector.SourceStarting, collector.SourceReloaded:
		out.State = State{"starting", neutral}
	case collector.SourceReleased:
		out.State, out.Err = State{"released", warn}, ""
	default:
		out.State = State{"down: " + strings.ReplaceAll(s.Reason, "_", " "), bad}
	}
	return out
}

func kubeletSource(s *podmap.Status) Source {
	trouble := ExplainKubelet(s)
	out := polled(Kubelet, string(s.State), s.Reason, s.Age, trouble)
	out.Took = s.Took.Round(time.Millisecond / 10).String()
	if s.State == podmap.StateAbsent {
		out.State, out.Trouble, out.Took = State{notHere, neutral}, trouble, ""
	}
	return out
}

// missing finds the sources without hardware that a flag or the node asks for. asks is
// not consulted for NVIDIA's driver where GPUs of NVIDIA are on the bus.
func (v *View) missing(s *collector.Snapshot, asks func(source string) bool) {
	gpus := 0
	for i := range s.Devices {
		if d := &s.Devices[i]; d.Vendor == "nvidia" && d.Class == collector.GPU && d.Parent == "" {
			gpus++
		}
	}
	for i := range v.Sources {
		x := &v.Sources[i]
		switch {
		case x.Word != notHere:
		case x.Name == "nvidia" && gpus > 0:
			x.State, x.Err = State{"missing", bad}, fmt.Sprintf("%d NVIDIA GPUs on the bus; %s", gpus, x.Err)
		case asks(x.Name):
			x.State = State{"missing", warn}
		}
	}
}

// polled returns the kubelet or the API server as a source. Their states have the same
// words.
func polled(name, state, reason string, age time.Duration, trouble Trouble) Source {
	out := Source{Name: name, Reason: state}
	if age > 0 {
		out.Age = Ago(age)
	}
	switch state {
	case string(podmap.StateFresh):
		out.State = State{"up", good}
	case string(podmap.StateStarting):
		out.State, out.Meaning = State{"starting", neutral}, reason
	default:
		out.State, out.Trouble = State{state, warn}, trouble
		out.Meaning = cmp.Or(reason, out.Meaning)
	}
	return out
}

// devices adds the devices and what each is allocated to.
func (v *View) devices(p *Page, s *collector.Snapshot, report *allocation.Report) {
	places, parts := make([]place, len(s.Devices)), 0
	order := make([]int, len(s.Devices))
	for i := range s.Devices {
		d := &s.Devices[i]
		order[i] = i
		places[i] = placeOf(d, Label(d, collector.DeviceInfo, "index"))
		if d.Parent != "" {
			parts++
		}
	}
	slices.SortFunc(order, func(a, b int) int { return places[a].compare(&places[b]) })
	var answered time.Time // the latest answer of a source
	for i := range s.Sources {
		if at := s.Sources[i].LastSuccess; at.After(answered) {
			answered = at
		}
	}
	shared := map[string]*allocation.Device{}
	for i := range report.Devices {
		shared[report.Devices[i].ID] = &report.Devices[i]
	}
	v.samples = samplesOf(p.o.History)
	for _, i := range order {
		d := &s.Devices[i]
		row := deviceRow(d, shared[d.ID], s.Time, answered)
		samples := v.samples[d.ID]
		if d.Parent != "" && parts > maxPartLines {
			samples = nil
		}
		row.measure(d, samples, small)
		if row.Free == string(allocation.Free) && row.Utilization.Value >= inUse {
			row.Free = "free, in use"
		}
		v.Devices = append(v.Devices, row)
	}
	v.order()
}

// order sorts the devices, the most urgent first. A partition stays behind its device.
func (v *View) order() {
	rank := map[string]int{warn: 1, bad: 2}
	urgency := map[string]int{}
	whole := func(d *Device) string { return cmp.Or(d.parent, d.ID) }
	for i := range v.Devices {
		d := &v.Devices[i]
		urgency[whole(d)] = max(urgency[whole(d)], rank[d.Tone])
	}
	slices.SortStableFunc(v.Devices, func(a, b Device) int { return cmp.Compare(urgency[whole(&b)], urgency[whole(&a)]) })
}

// measure sets the values of the device and their lines.
func (r *Device) measure(d *collector.Device, samples *[samples]values, grid grid) {
	now, top := read(d.Readings)
	cell := func(value int, low, high float32, text, short func(float32) string) Cell {
		var c Cell
		if known(now[value]) {
			c.Text, c.Value = text(now[value]), now[value]
		}
		line := line(samples, value)
		c.Spark, c.Bars = spark(line, low, high, grid, short), bars(line, low, high)
		return c
	}
	hottest := top.temperature
	if !known(hottest) {
		hottest = 100
	}
	r.Temperature = cell(temperature, 20, hottest, celsius, celsius)
	r.Power = cell(power, 0, top.power, watts, watts)
	r.Utilization = cell(utilization, 0, 1, percent, percent)
	r.Memory = cell(memory, 0, top.memory, func(used float32) string { return ofBytes(used, top.memory) }, size)
}

// inUse is the utilization from which a device that no pod has is in use.
const inUse = 0.05

// imageKinds are the kinds of ids of an FPGA's image, that of the user's design before that
// of the fixed part.
var imageKinds = []string{"afu", "xclbin", "firmware", "pci_ids", "fim", "shell", "logic"}

// imageOf returns the images that are loaded in an FPGA, of the first kind that is known.
func imageOf(d *collector.Device) string {
	ids := map[string][]string{}
	for i := range d.Readings {
		if r := &d.Readings[i]; r.Metric == collector.FPGABitstreamInfo {
			kind := r.Label("kind")
			ids[kind] = append(ids[kind], r.Label("id"))
		}
	}
	for _, kind := range imageKinds {
		if len(ids[kind]) > 0 {
			return kind + " " + strings.Join(ids[kind], ", ")
		}
	}
	return ""
}

// maxReasons is the number of reasons in a row.
const maxReasons = 2

// old is the age from which values have it beside them, and the time after the latest
// answer of a source from which a device without an answer is not healthy.
const old = 5 * time.Second

func deviceRow(d *collector.Device, a *allocation.Device, now, answered time.Time) Device {
	r := Device{
		ID: d.ID, Short: ShortID(d.ID), Index: Label(d, collector.DeviceInfo, "index"), Vendor: d.Vendor, Class: className(d.Class), PCI: d.PCI, Part: d.Parent != "", parent: d.Parent,
		Image: imageOf(d),
		Model: strings.TrimPrefix(strings.TrimPrefix(cmp.Or(d.Model, className(d.Class), "unknown device"), "NVIDIA "), "AMD "), State: stateOf(d),
	}
	if profile := Label(d, collector.DeviceInfo, "profile"); profile != "" {
		r.Model = profile
	}
	if d.Down != "" && !judgedDown(d) {
		r.Reasons = append(r.Reasons, Down(d.Down)+".")
	}
	if d.Verdict == nil {
		r.Doc = Runbook("", d.Down, "")
	} else {
		r.Since = d.Verdict.Since
		r.unread = d.Verdict.State == "unknown" && d.Down == "" && len(d.Verdict.Reasons) == 1 && d.Verdict.Reasons[0].Code == health.NoAnswer
		r.Action, r.Code = Action(d.Verdict.Action), d.Verdict.Action
		switch { // the work of a degraded device continues
		case d.Verdict.State == "degraded" && r.Code == "reset":
			r.Action = Action("drain_and_reset")
		case d.Verdict.State == "degraded" && (r.Code == "reboot" || r.Code == "restart_vm"):
			r.Action = "Let running work finish. " + r.Action
		}
		r.Doc = Runbook(d.Verdict.State, d.Down, d.Verdict.Action)
		for _, x := range d.Verdict.Reasons {
			r.Reasons = append(r.Reasons, sentence(x.Text))
		}
	}
	if age := now.Sub(d.Sampled); d.Down == "" && !d.Sampled.IsZero() && age >= old {
		r.Age = Ago(age)
		if r.Tone == good && answered.Sub(d.Sampled) >= old {
			r.State = State{silent, warn}
		}
	}
	r.clients(d, a)
	r.More = max(0, len(r.Reasons)-maxReasons)
	r.Reasons = r.Reasons[:len(r.Reasons)-r.More]
	if a == nil {
		return r
	}
	for i := range a.Holders {
		r.Holders = append(r.Holders, allocationOf(&a.Holders[i], &r, now))
	}
	if len(a.Holders) > 0 && len(a.NotAllocatable) > 0 {
		r.Holders[0].Notes = strings.TrimPrefix(r.Holders[0].Notes+"; no longer allocatable as "+strings.Join(a.NotAllocatable, ", "), "; ")
	}
	r.Pods, r.MorePods = first(r.Holders, maxHolders)
	r.MoreHolders = a.OmittedHolders
	switch {
	case len(a.Holders) > 0:
	case a.Availability == allocation.Unmanaged && a.Processes == nil:
		r.Free = "processes not known"
	case a.Availability == allocation.Unmanaged && *a.Processes == 0:
		r.Free = "no process"
	default:
		r.Free, r.Why = strings.ReplaceAll(string(a.Availability), "_", " "), a.Why
	}
	return r
}

// judgedDown reports whether a reason of the verdict is that the device does not answer.
func judgedDown(d *collector.Device) bool {
	return d.Verdict != nil && slices.ContainsFunc(d.Verdict.Reasons, func(r collector.Reason) bool {
		return r.Severity == "failed" && strings.HasPrefix(r.Code, "device_")
	})
}

// Name is the device in a text, as "GPU 2".
func (r *Device) Name() string {
	if r.Index == "" && strings.HasPrefix(r.Short, r.Class) {
		return r.Short
	}
	return strings.TrimSpace(r.Class + " " + cmp.Or(r.Index, r.Short))
}

// className is the class as people write it.
func className(c collector.Class) string {
	if c == collector.Switch {
		return "NVSwitch"
	}
	return strings.ToUpper(string(c))
}

// stateOf returns the state of a device. One without a verdict is never healthy.
func stateOf(d *collector.Device) State {
	switch {
	case d.Verdict != nil:
		return State{d.Verdict.State, cmp.Or(states[d.Verdict.State], warn)}
	case d.Down != "":
		return State{"down", bad}
	}
	return State{"not judged", neutral}
}

// sentence begins a text with a capital letter and ends it with a full stop.
func sentence(s string) string {
	if s == "" {
		return s
	}
	if s[0] >= 'a' && s[0] <= 'z' {
		s = string(s[0]-'a'+'A') + s[1:]
	}
	return strings.TrimSuffix(s, ".") + "."
}

func allocationOf(a *allocation.Allocation, d *Device, now time.Time) Allocation {
	out := Allocation{Device: d.ID, Index: cmp.Or(d.Index, d.Short), Pod: a.Namespace + "/" + a.Pod, Held: Ago(now.Sub(a.Since))}
	out.Containers = "[" + strings.Join(a.Containers, ",") + "] " + strings.Join(a.Resources, ",")
	if a.SinceAtLeast {
		out.Held = "at least " + out.Held
	}
	if a.Utilization != nil {
		out.Utilization = percent(float32(*a.Utilization))
	}
	if a.MemoryUsed != nil {
		out.Memory = size(float32(*a.MemoryUsed))
	}
	if a.Idle != nil {
		out.Idle, out.IdleSeconds = "no", *a.Idle
		if *a.Idle > 0 {
			out.Idle = Ago(time.Duration(*a.Idle * float64(time.Second)))
		}
	}
	if a.IdleCost != nil {
		out.Cost, out.IdleCost = fmt.Sprintf("%.2f %s", *a.IdleCost, a.Currency), *a.IdleCost
	}
	notes := a.Notes()
	for _, f := range a.Faults {
		notes = append(notes, f.Name+" "+Ago(now.Sub(f.Time))+" ago")
	}
	out.Notes = strings.Join(notes, "; ")
	return out
}

// allocations adds the pods, and the allocations and processes that belong to no
// device or pod.
func (v *View) allocations(r *allocation.Report) {
	index := map[string]string{}
	for i := range v.Devices {
		d := &v.Devices[i]
		index[d.ID] = cmp.Or(d.Index, d.Short)
		v.Allocations = append(v.Allocations, d.Holders...)
	}
	v.Resources, v.Uncertain, v.Unmanaged = r.Resources, r.Uncertain(), r.State == podmap.StateAbsent
	for i := range r.Unresolved {
		v.Strays = append(v.Strays, r.Unresolved[i].Sentence())
	}
	for i := range r.Unattributed {
		p := &r.Unattributed[i]
		v.Strays = append(v.Strays, p.Sentence("device "+cmp.Or(index[p.Device], p.Device)))
	}
}

// events adds the latest events, the latest first.
func (v *View) events(s *collector.Snapshot) {
	index := map[string]string{}
	for i := range v.Devices {
		index[v.Devices[i].ID] = cmp.Or(v.Devices[i].Index, v.Devices[i].Short)
	}
	for i := len(s.Events) - 1; i >= 0 && len(v.Events) < maxEvents; i-- {
		v.Events = append(v.Events, eventOf(&s.Events[i], index))
	}
}

func eventOf(e *collector.Event, index map[string]string) Event {
	out := Event{
		Time: e.Time, Detail: e.Detail, Past: e.Past, Tone: neutral, Sources: cmp.Or(strings.Join(e.Witnesses, ", "), e.Source),
		What: EventName(e),
	}
	if known, ok := health.Builtin().Lookup(e); ok {
		out.Meaning = sentence(known.Text)
		switch known.Severity {
		case health.Failed:
			out.Tone = bad
		case health.Degraded:
			out.Tone = warn
		}
	}
	out.Device = cmp.Or(e.Partition, e.Device)
	if _, ok := index[out.Device]; !ok {
		out.Device = e.Device // the partition is gone
	}
	out.Index = index[out.Device]
	if out.Index == "" {
		out.Index, out.Device = cmp.Or(ShortID(out.Device), e.PCI, "none"), "" // no page to link to
	}
	return out
}

// notice adds a device that needs attention: to the notice of its source or its parent
// if that is the cause.
func (v *View) notice(d *Device) {
	for i := range v.Notices {
		n := &v.Notices[i]
		switch {
		case d.unread && n.Tone == bad && (n.What == "source "+d.Vendor || n.What == "source fpga" && d.Class == "FPGA"):
			n.Devices = append(n.Devices, d.Name())
		case d.Part && n.Link == d.parent && n.Word == d.Word:
		default:
			continue
		}
		n.addPods(d)
		return
	}
	n := Notice{State: d.State, Link: d.ID, What: d.Name() + ", " + d.Model, Cure: d.Action, Doc: d.Doc, Since: d.Since}
	if len(d.Reasons) > 0 {
		n.Why = d.Reasons[0]
	} else if d.Age != "" {
		n.Why = "Its values are of " + d.Age + " ago."
	}
	n.addPods(d)
	v.Notices = append(v.Notices, n)
}

// headline adds the summary and what needs attention.
func (v *View) headline() {
	for i := range v.Sources {
		s := &v.Sources[i]
		if s.Word != inPart && (s.Tone == bad || s.Tone == warn) {
			v.Notices = append(v.Notices, Notice{State: s.State, What: "source " + s.Name, Why: cmp.Or(s.Err, s.Meaning), Cure: s.Cure, Doc: s.Doc})
		}
	}
	for _, r := range v.Remarks {
		if r.Tone == bad {
			v.Notices = append(v.Notices, Notice{State: State{"refused", warn}, What: r.What, Why: strings.ReplaceAll(r.Found, "\n", "; "), Cure: r.Cure, Since: r.Since})
		}
	}
	count, parts := map[string]int{}, 0
	for i := range v.Devices {
		d := &v.Devices[i]
		if d.Part {
			parts++
		}
		count[d.Word]++
		if d.Tone != good && d.Tone != neutral {
			v.notice(d)
		}
	}
	slices.SortStableFunc(v.Notices, func(a, b Notice) int { return cmp.Compare(a.Tone, b.Tone) }) // bad before warn
	var words []string
	for _, w := range []string{"failed", "down", silent, "degraded", "unknown", "not judged", "healthy"} {
		if count[w] > 0 {
			words = append(words, fmt.Sprintf("%d %s", count[w], w))
		}
	}
	v.Tone = good
	switch {
	case len(v.Devices) == 0:
		v.Headline, v.Tone = "No accelerator was found", neutral
	case len(v.Devices) == 1:
		v.Headline = "1 device: " + v.Devices[0].Word
	default:
		v.Headline = number(len(v.Devices)-parts, "device")
		if parts > 0 {
			v.Headline += " and " + number(parts, "partition")
		}
		v.Headline += ": " + strings.Join(words, ", ")
	}
	if a := v.Alerts; a != nil && a.Firing > 0 {
		v.Headline += "; " + number(a.Firing, "alert") + " firing"
	}
	for i := range v.Notices {
		if v.Notices[i].Tone == bad || v.Tone != bad {
			v.Tone = v.Notices[i].Tone
		}
	}
}

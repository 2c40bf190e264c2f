package status

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"html"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/accel-exporter/accel-exporter/collector"
	"github.com/accel-exporter/accel-exporter/internal/judge/allocation"
	"github.com/accel-exporter/accel-exporter/internal/judge/health"
	"github.com/accel-exporter/accel-exporter/internal/status/history"
	"github.com/accel-exporter/accel-exporter/podmap"
	"github.com/accel-exporter/accel-exporter/podmap/kube"
)

var now = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// world is what a page is made from.
type world struct {
	snap    *collector.Snapshot
	report  *allocation.Report
	kubelet *podmap.Status
	alerts  *Alerts
	history history.Ring
}

// record adds a round with the readings of now.
func (w *world) record(at time.Time) {
	w.history.Add(&collector.Snapshot{Time: at, Devices: w.snap.Devices})
}

func (w *world) page() *Page {
	return New(Options{
		Node: "node1", Version: "accel-exporter 1.2.3",
		Snapshot:    func() *collector.Snapshot { return w.snap },
		History:     &w.history,
		Allocations: func() (*allocation.Report, *podmap.Status, *kube.Status) { return w.report, w.kubelet, nil },
		Alerts:      func() *Alerts { return w.alerts },
		Log:         slog.New(slog.DiscardHandler),
	})
}

func get(t testing.TB, h http.Handler, path string, header ...string) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequest(http.MethodGet, path, nil)
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

func handler(p *Page) http.Handler {
	mux := http.NewServeMux()
	p.Register(mux)
	return mux
}

func gpu(n int) collector.Device {
	d := collector.Device{
		ID: fmt.Sprintf("GPU-%08d-0000-0000-0000-000000000000", n), Class: collector.GPU, Vendor: "nvidia", Model: "NVIDIA H100 80GB HBM3",
		PCI: fmt.Sprintf("0000:%02x:00.0", n), Sampled: now, Verdict: &collector.Verdict{State: "healthy", Action: "none", Since: now},
	}
	info := make([]string, len(collector.DeviceInfo.Labels))
	for i, name := range collector.DeviceInfo.Labels {
		if name == "index" {
			info[i] = fmt.Sprint(n)
		}
	}
	d.Set(collector.DeviceInfo, 1, info...)
	d.Set(collector.UtilizationRatio, 0.5, "compute")
	d.Set(collector.TemperatureCelsius, 61, "gpu")
	d.Set(collector.TemperatureCelsius, 88, "memory")
	d.Set(collector.PowerWatts, 612)
	d.Set(collector.MemoryUsed, 40*gib)
	d.Set(collector.MemoryTotal, 80*gib)
	return d
}

func mig(of *collector.Device, n int) collector.Device {
	d := collector.Device{
		ID: fmt.Sprintf("MIG-%s-%02d", of.ID[4:], n), Parent: of.ID, Class: collector.GPU, Vendor: "nvidia", Model: of.Model, Sampled: now,
		Verdict: &collector.Verdict{State: "healthy", Action: "none"},
	}
	info := make([]string, len(collector.DeviceInfo.Labels))
	for i, name := range collector.DeviceInfo.Labels {
		switch name {
		case "index":
			info[i] = fmt.Sprintf("%s:%d:0", Label(of, collector.DeviceInfo, "index"), n)
		case "profile":
			info[i] = "1g.10gb"
		}
	}
	d.Set(collector.DeviceInfo, 1, info...)
	d.Set(collector.ActivityRatio, 0.25, "graphics")
	d.Set(collector.MemoryUsed, gib)
	d.Set(collector.MemoryTotal, 10*gib)
	return d
}

// node returns a world with n GPUs of seven partitions each, all allocated.
func node(gpus, parts int) *world {
	w := &world{
		snap:   &collector.Snapshot{Seq: 1, Time: now, Sources: []collector.Status{{Source: "nvidia", Up: true, LastSuccess: now}}},
		report: &allocation.Report{State: podmap.StateFresh},
	}
	for i := range gpus {
		d := gpu(i)
		w.snap.Devices = append(w.snap.Devices, d)
		for j := range parts {
			w.snap.Devices = append(w.snap.Devices, mig(&d, j))
		}
	}
	for i := range w.snap.Devices {
		d := &w.snap.Devices[i]
		a := allocation.Device{ID: d.ID, Availability: allocation.Partitioned, Why: "split into 7 partitions"}
		if parts == 0 || d.Parent != "" {
			a.Availability = allocation.Allocated
			a.Holders = []allocation.Allocation{{Holder: allocation.Holder{Namespace: "training", Pod: fmt.Sprintf("llm-%d", i)}, Since: now.Add(-time.Hour), Idle: new(float64)}}
		}
		w.report.Devices = append(w.report.Devices, a)
	}
	return w
}

var tags = regexp.MustCompile(`<[^>]*>`)

// words is the text of a page as a reader sees it, with single spaces.
func words(page string) string {
	_, body, _ := strings.Cut(page, "<body>")
	return strings.Join(strings.Fields(html.UnescapeString(tags.ReplaceAllString(body, " "))), " ")
}

// TestPages: each state of a node is on its page, in words.
func TestPages(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*world)
		want   []string
		not    []string
	}{
		"healthy": {
			change: func(*world) {},
			want: []string{
				"node1", "2 devices: 2 healthy", "Nothing needs attention.", "GPU 0", "61 °C", "612 W", "50 %", "40.0 of 80 GiB", "training/llm-1",
				"No rules are evaluated on this node", "No Xid, reset, reconfiguration or other event", "accel-exporter 1.2.3",
			},
			not: []string{"88 °C"},
		},
		"failed": {
			change: func(w *world) {
				d := &w.snap.Devices[1]
				d.Down, d.Readings = collector.ReasonLost, d.Readings[:1]
				d.Verdict = &collector.Verdict{State: "failed", Action: "reboot", Since: now, Reasons: []collector.Reason{{Code: "xid_79", Text: "Xid 79: the GPU no longer answers over PCIe", Severity: "failed"}}}
				w.snap.Events = []collector.Event{{Time: now, Source: "kernellog", Device: d.ID, Kind: collector.EventXid, Code: 79, Detail: "NVRM: Xid (PCI:0000:01:00): 79"}}
				w.alerts = &Alerts{Rules: 3, Firing: 1, List: []Alert{{Labels: map[string]string{"alertname": "AcceleratorFailed", "severity": "critical", "device": d.ID}, State: "firing", Since: now, Summary: "Accelerator 1 is gone", Runbook: "https://example.com/lost"}}}
			},
			want: []string{
				"2 devices: 1 failed, 1 healthy; 1 alert firing", "failed GPU 1, H100 80GB HBM3 since 2026-03-01 12:00:00 The driver reports it as lost. Pods: training/llm-1 Restart the node, with a power cycle if possible Read more",
				"Xid 79: the GPU no longer answers over PCIe.", "firing, critical AcceleratorFailed", "Accelerator 1 is gone", "Xid 79 The GPU no longer answers over PCIe.", "NVRM: Xid (PCI:0000:01:00): 79",
			},
			not: []string{"Nothing needs attention."},
		},
		"degraded": {
			change: func(w *world) {
				w.snap.Devices[1].Verdict = &collector.Verdict{State: "degraded", Action: "reboot", Reasons: []collector.Reason{{Code: "xid_79", Text: "Xid 79", Severity: "degraded"}}}
			},
			want: []string{"Let running work finish. Restart the node, with a power cycle if possible"},
		},
		"no verdict": {
			change: func(w *world) { w.snap.Devices[0].Verdict = nil },
			want:   []string{"2 devices: 1 not judged, 1 healthy"},
		},
		"versions differ": {
			change: func(w *world) {
				w.snap.Devices, w.report.Devices = nil, nil
				w.snap.Sources[0] = collector.Status{Source: "nvidia", Reason: collector.SourceMismatch, Err: "driver 570, library 575"}
			},
			want: []string{"No accelerator was found", "down: version mismatch source nvidia driver 570, library 575", "Drain the node and reboot it"},
		},
		"a partitioned device fails": {
			change: func(w *world) {
				*w = *node(1, 2)
				for i := range w.snap.Devices {
					w.snap.Devices[i].Verdict = &collector.Verdict{State: "failed", Action: "reboot", Reasons: []collector.Reason{{Code: "xid_79", Text: "Xid 79", Severity: "failed"}}}
				}
			},
			want: []string{"failed GPU 0, H100 80GB HBM3 Xid 79. Pods: training/llm-1 , training/llm-2 Restart the node, with a power cycle if possible Read more Devices"},
		},
		"versions differ while devices are known": {
			change: func(w *world) {
				for i := range w.snap.Devices {
					w.snap.Devices[i].Verdict = &collector.Verdict{State: "unknown", Reasons: []collector.Reason{{Code: health.NoAnswer, Text: "no source has an answer from the device"}}}
				}
				w.snap.Sources[0] = collector.Status{Source: "nvidia", Reason: collector.SourceMismatch, Err: "driver 570, library 575"}
			},
			want: []string{"source nvidia driver 570, library 575 Without values: GPU 0 , GPU 1 Pods: training/llm-0 , training/llm-1 Drain the node and reboot it", "Read more Devices"},
		},
		"no driver": {
			change: func(w *world) {
				w.snap.Devices, w.report.Devices = nil, nil
				w.snap.Sources[0] = collector.Status{Source: "nvidia", Reason: collector.SourceAbsent, Err: "nothing to read on this machine"}
			},
			want: []string{"not on this machine", "No NVIDIA driver was found", "install the driver"},
		},
		"kubelet": {
			change: func(w *world) {
				w.kubelet = &podmap.Status{State: podmap.StateStale, Reason: "the kubelet does not answer", Age: time.Minute}
				w.report.State, w.report.Reason = podmap.StateStale, "the kubelet does not answer"
				w.report.Unattributed = []allocation.Process{{Device: w.snap.Devices[0].ID, PID: 4711, Command: "python", Reason: "host_process"}}
				w.report.Unresolved = []allocation.Unresolved{{Resource: "example.com/widget", ID: "left", How: podmap.HowUnknown, Namespace: "lab", Pod: "c"}}
			},
			want: []string{
				"stale source kubelet the kubelet does not answer", "The allocations are not certain (stale)",
				"Process 4711 (python) outside every pod uses device 0.", `Pod lab/c has example.com/widget "left", which matches no device`,
			},
		},
		"unknown values": {
			change: func(w *world) { w.snap.Devices[0].Readings = w.snap.Devices[0].Readings[:1] },
			want:   []string{"GPU 0 H100 80GB HBM3 GPU-00000000 healthy not known not known not known not known training/llm-0"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := node(2, 0)
			c.change(w)
			body := get(t, handler(w.page()), "/").Body.String()
			text := words(body)
			for _, s := range c.want {
				if !strings.Contains(text, s) {
					t.Errorf("%q is not on the page", s)
				}
			}
			for _, s := range c.not {
				if strings.Contains(text, s) {
					t.Errorf("%q is on the page", s)
				}
			}
			if t.Failed() {
				t.Log(text)
			}
			wellFormed(t, body)
		})
	}
}

// wellFormed checks that every element is closed and that no id is used twice.
func wellFormed(t *testing.T, body string) {
	t.Helper()
	d := xml.NewDecoder(strings.NewReader(body))
	d.Strict, d.AutoClose, d.Entity = false, xml.HTMLAutoClose, xml.HTMLEntity
	ids, open := map[string]bool{}, 0
	for {
		token, err := d.Token()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Errorf("the page is not well-formed: %v", err)
			return
		}
		switch e := token.(type) {
		case xml.StartElement:
			open++
			for _, a := range e.Attr {
				if a.Name.Local == "style" || strings.HasPrefix(a.Name.Local, "on") {
					t.Errorf("<%s %s>: the policy forbids it", e.Name.Local, a.Name.Local)
				}
				if a.Name.Local == "id" {
					if ids[a.Value] {
						t.Errorf("two elements have the id %q", a.Value)
					}
					ids[a.Value] = true
				}
			}
		case xml.EndElement:
			open--
		}
	}
	if open != 0 {
		t.Errorf("%d elements are not closed", open)
	}
}

// TestDevicePage: a device has a page with all that is known of it.
func TestDevicePage(t *testing.T) {
	w := node(2, 7)
	p := w.page()
	h := handler(p)
	text := words(get(t, h, "/device?id="+w.snap.Devices[0].ID).Body.String())
	for _, s := range []string{"GPU 0: healthy", "61 °C", "40.0 of 80 GiB", "Partitions", "GPU 0:6:0", "0000:00:00.0", "accel_power_watts", `sensor="memory"`, "split into 7 partitions"} {
		if !strings.Contains(text, s) {
			t.Errorf("%q is not on the page\n%s", s, text)
		}
	}
	if strings.Contains(text, "GPU 1:0:0") {
		t.Error("a partition of another device is on the page")
	}
	if code := get(t, h, "/device?id=GPU-other").Code; code != http.StatusNotFound {
		t.Errorf("a device that does not exist: %d", code)
	}
	if code := get(t, h, "/device").Code; code != http.StatusBadRequest {
		t.Errorf("without id: %d", code)
	}
}

// TestLines: the lines have the samples of the last ten minutes, with gaps.
func TestLines(t *testing.T) {
	w := node(1, 0)
	p := w.page()
	at := now
	for i := range 5 {
		w.snap.Devices[0].Readings = gpu(0).Readings
		if i == 2 {
			w.snap.Devices[0].Readings = w.snap.Devices[0].Readings[:1]
		}
		w.record(at.Add(time.Duration(i) * step))
	}
	page := get(t, handler(p), "/").Body.String()
	if want := `aria-label="10 min: 50 %"><path d="M55 8h0h1M58 8h0h1"/>`; !strings.Contains(page, want) {
		t.Errorf("%s is not on the page\n%s", want, regexp.MustCompile(`<svg.*?</svg>`).FindAllString(page, -1))
	}
	w.record(at.Add(time.Hour)) // the node was suspended
	if page = get(t, handler(w.page()), "/").Body.String(); strings.Contains(page, "<svg") {
		t.Error("a line with less than two samples")
	}
}

// TestAnswers: a page is rendered once for a Snapshot and sent again by its ETag, and
// viewers that do not read are limited in number.
func TestAnswers(t *testing.T) {
	w := node(8, 7)
	p := w.page()
	h := handler(p)
	first := get(t, h, "/")
	for name, want := range map[string]string{"Content-Security-Policy": policy, "X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer"} {
		if got := first.Header().Get(name); got != want {
			t.Errorf("%s: %q", name, got)
		}
	}
	tag := first.Header().Get("ETag")
	if again := get(t, h, "/", "If-None-Match", tag); again.Code != http.StatusNotModified || again.Body.Len() > 0 {
		t.Errorf("with the ETag: %d", again.Code)
	}
	if zipped := get(t, h, "/", "Accept-Encoding", "gzip"); zipped.Header().Get("Content-Encoding") != "gzip" || zipped.Body.Len()*3 > first.Body.Len() {
		t.Errorf("compressed: %d bytes", zipped.Body.Len())
	}
	w.snap = &collector.Snapshot{Seq: 2, Time: now.Add(time.Second)}
	if changed := get(t, h, "/", "If-None-Match", tag); changed.Code != http.StatusOK {
		t.Errorf("after another Snapshot: %d", changed.Code)
	}
	p.sending.Add(maxAnswers)
	if limited := get(t, h, "/"); limited.Code != http.StatusServiceUnavailable {
		t.Errorf("one viewer too many: %d", limited.Code)
	}
	p.sending.Add(-maxAnswers)
	w.snap = nil
	if none := get(t, h, "/"); none.Code != http.StatusServiceUnavailable {
		t.Errorf("without a Snapshot: %d", none.Code)
	}
}

// TestWords: every reason of a source, every reason of a device and every action is
// explained.
func TestWords(t *testing.T) {
	for _, reason := range []string{
		collector.SourceAbsent, collector.SourceReleased, collector.SourceCrashed, collector.SourceGarbage, collector.SourceTimeout, collector.SourceMismatch,
		collector.SourceDriver, collector.SourceLibrary, collector.SourceReloaded, collector.SourceEngine, collector.SourceStarting, collector.SourceError,
	} {
		if _, ok := troubles[[2]string{"", reason}]; !ok {
			t.Errorf("source: %s is not explained", reason)
		}
	}
	for _, reason := range []string{
		collector.ReasonLost, collector.ReasonResetRequired, collector.ReasonStuck, collector.ReasonMissing, collector.ReasonUnbound, collector.ReasonError, collector.ReasonUnavailable,
	} {
		if downs[reason] == "" {
			t.Errorf("device: %s is not explained", reason)
		}
	}
	for a := health.Inspect; a <= health.Replace; a++ {
		if actions[a.String()] == "" {
			t.Errorf("action: %s is not explained", a)
		}
	}
}

func BenchmarkPage(b *testing.B) {
	w := node(8, 7)
	p := w.page()
	for i := range int(history.Length / time.Second) {
		w.record(now.Add(time.Duration(i) * time.Second))
	}
	b.ReportAllocs()
	for b.Loop() {
		w.snap = &collector.Snapshot{Time: now, Sources: w.snap.Sources, Devices: w.snap.Devices}
		if body, _, text := p.render(request{}); bytes.Contains(body, []byte("No accelerator")) {
			b.Fatal(text)
		}
	}
}

// TestImageAndUse: the image of an FPGA is beside its model, that of the user before that
// of the board, and a free device that works is not only free.
func TestImageAndUse(t *testing.T) {
	w := node(1, 0)
	w.report.Devices[0] = allocation.Device{ID: w.snap.Devices[0].ID, Availability: allocation.Free, Why: "not allocated"}
	card := collector.Device{ID: "0000:5e:00.1", Class: collector.FPGA}
	card.Set(collector.FPGABitstreamInfo, 1, "static", "shell", "xilinx_u250")
	card.Set(collector.FPGABitstreamInfo, 1, "slot0", "xclbin", "2a44fc56")
	w.snap.Devices = append(w.snap.Devices, card)
	body := words(get(t, handler(w.page()), "/").Body.String())
	for _, text := range []string{"free, in use", "xclbin 2a44fc56"} {
		if !strings.Contains(body, text) {
			t.Errorf("no %q: %s", text, body)
		}
	}
}

// TestView: the view is served as JSON, with the details of a device that is listed,
// and is empty before the first Snapshot. Values that are not of now have their age,
// and a line of the last ten minutes.
func TestView(t *testing.T) {
	w := node(2, 0)
	d := &w.snap.Devices[1]
	d.Sampled = now.Add(-9 * time.Second)
	d.Clients = []collector.Client{{PID: 7, Type: "compute"}}
	w.report.Devices = []allocation.Device{{ID: d.ID, ProcessList: []allocation.Process{{PID: 7, Command: "python3", UID: "1000", Job: "42", Utilization: new(0.25)}}}}
	p := w.page()
	for i := range 6 {
		d.Readings[1].Value = float64(i) / 5 // of the compute engine
		w.record(now.Add(time.Duration(i) * step))
	}
	view := func(device string) *View {
		t.Helper()
		r := httptest.NewRecorder()
		p.JSON().ServeHTTP(r, httptest.NewRequest(http.MethodGet, "/debug/status?device="+url.QueryEscape(device), nil))
		v := &View{}
		if err := json.Unmarshal(r.Body.Bytes(), v); err != nil || r.Code != http.StatusOK {
			t.Fatalf("%d: %v", r.Code, err)
		}
		return v
	}
	v := view(d.ID)
	if v.Headline != "2 devices: 1 not answering, 1 healthy" || v.Notices[0].Why != "Its values are of 9 s ago." || v.Device == nil || v.Device.ID != d.ID || len(v.Device.Readings) != len(d.Readings) || v.Devices[1].Age != "" {
		t.Errorf("%+v", v)
	}
	got := &v.Devices[0] // the most urgent first
	want := Client{PID: 7, Type: "compute", Command: "python3", UID: "1000", Job: "42", Utilization: "25 %"}
	if got.Age != "9 s" || got.Utilization.Value != 1 || got.Utilization.Bars != strings.Repeat(" ", barsWidth-2)+"▄█" || len(got.Clients) != 1 || got.Clients[0] != want {
		t.Errorf("%+v", got)
	}
	if v := view("GPU-none"); v.Device != nil || len(v.Devices) != 2 {
		t.Errorf("of no device: %+v", v)
	}
	w.snap = nil
	if v := view(""); !v.Time.IsZero() || len(v.Devices) != 0 {
		t.Errorf("before the first: %+v", v)
	}
}

package tools

import (
	"context"
	"flag"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	cdplog "github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"github.com/accel-exporter/accel-exporter/collector"
	"github.com/accel-exporter/accel-exporter/internal/judge/allocation"
	"github.com/accel-exporter/accel-exporter/internal/status"
	"github.com/accel-exporter/accel-exporter/podmap"
	"github.com/accel-exporter/accel-exporter/podmap/kube"
)

var (
	pictures      = flag.String("pictures", "", "directory to write pictures of the status page to")
	picturesAfter = flag.Duration("pictures-after", 10*time.Minute, "time before the pictures, for the lines of the last ten minutes")
)

// browser starts one Chromium for the tests of this package. Tabs may be opened at the
// same time, the browser may not.
var browser = sync.OnceValues(func() (context.Context, error) {
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(os.Getenv("CHROMIUM")), chromedp.WSURLReadTimeout(patience))
	if os.Getuid() == 0 {
		options = append(options, chromedp.NoSandbox) // it refuses to run as root with one
	}
	allocator, _ := chromedp.NewExecAllocator(context.Background(), options...)
	ctx, _ := chromedp.NewContext(allocator)
	started = true
	return ctx, chromedp.Do(ctx)
})

var started bool // the browser was, which TestMain ends

// TestMain ends the browser, if a test has started one.
func TestMain(m *testing.M) {
	code := m.Run()
	if started {
		ctx, _ := browser()
		_ = chromedp.Cancel(ctx)
	}
	os.Exit(code)
}

// tab is a tab of the browser.
type tab struct {
	t   *testing.T
	ctx context.Context

	mu     sync.Mutex
	faults []string
}

// open returns a new tab, in which errors of scripts, violations of the policy and
// requests to other hosts fail the test.
func open(t *testing.T, address string) *tab {
	t.Helper()
	parent, err := browser()
	if err != nil {
		t.Fatalf("%s does not start: %v", os.Getenv("CHROMIUM"), err)
	}
	ctx, cancel := chromedp.NewContext(parent)
	v := &tab{t: t, ctx: ctx}
	fault := func(format string, args ...any) {
		v.mu.Lock()
		defer v.mu.Unlock()
		v.faults = append(v.faults, fmt.Sprintf(format, args...))
	}
	err = chromedp.Listen(ctx, func(event any) {
		switch e := event.(type) {
		case *runtime.EventConsoleAPICalled:
			fault("console: %s", e.Type)
		case *runtime.EventExceptionThrown:
			fault("exception: %s", e.ExceptionDetails.Text)
		case *cdplog.EventEntryAdded:
			fault("log: %s %s %s", e.Entry.Level, e.Entry.Text, e.Entry.URL)
		case *page.EventJavascriptDialogOpening:
			fault("dialog: %s", e.Message)
		case *network.EventRequestWillBeSent:
			if u, err := url.Parse(e.Request.URL); err != nil || u.Host != address {
				fault("request to %s", e.Request.URL)
			}
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cancel()
		v.mu.Lock()
		defer v.mu.Unlock()
		for _, f := range v.faults {
			t.Error(f)
		}
	})
	call(v, network.Enable, network.EnableParams{})
	call(v, cdplog.Enable, cdp.Empty{})
	call(v, runtime.Enable, cdp.Empty{})
	return v
}

func call[P, R any](v *tab, command cdp.Command[P, R], params P) {
	v.t.Helper()
	ctx, cancel := context.WithTimeout(v.ctx, patience)
	defer cancel()
	if _, err := chromedp.Call(ctx, command, params); err != nil {
		v.t.Fatal(err)
	}
}

func run[T any](v *tab, action chromedp.Action[T]) T {
	v.t.Helper()
	ctx, cancel := context.WithTimeout(v.ctx, patience)
	defer cancel()
	result, err := chromedp.Run(ctx, action)
	if err != nil {
		v.t.Fatal(err)
	}
	return result
}

func eval[T any](v *tab, script string) T {
	v.t.Helper()
	return run(v, chromedp.Evaluate[T](script))
}

// look sets the size of the window and the theme.
func (v *tab) look(width, height int64, theme string) {
	v.t.Helper()
	call(v, emulation.SetDeviceMetricsOverride, emulation.SetDeviceMetricsOverrideParams{Width: width, Height: height, DeviceScaleFactor: 1, Mobile: width < 600})
	call(v, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: theme}}})
}

func (v *tab) text() string {
	v.t.Helper()
	return eval[string](v, `document.body ? document.body.innerText : ''`)
}

// until waits until the page shows a text, which comes without an event.
func (v *tab) until(want string) {
	v.t.Helper()
	eventually(v.t, "the page shows "+want, func() error {
		if text := v.text(); !strings.Contains(text, want) {
			return fmt.Errorf("it shows %.2000s", text)
		}
		return nil
	})
}

// unreadable returns what is hard to read: text of a contrast below 4.5, parts that
// are wider than the window, controls and pictures without a name.
const unreadable = `(() => {
	const out = [];
	const channel = (c) => (c /= 255) <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4;
	const rgb = (s) => s.match(/[\d.]+/g).map(Number);
	const light = ([r, g, b]) => 0.2126 * channel(r) + 0.7152 * channel(g) + 0.0722 * channel(b);
	const ground = (e) => {
		for (; e; e = e.parentElement) {
			const c = rgb(getComputedStyle(e).backgroundColor);
			if (c.length < 4 || c[3] > 0) return c;
		}
		return [255, 255, 255];
	};
	for (const e of document.body.querySelectorAll('*')) {
		const s = getComputedStyle(e);
		if (![...e.childNodes].some((n) => n.nodeType === 3 && n.data.trim()) || !e.checkVisibility() || s.clipPath !== 'none' || s.fontSize === '0px') continue;
		const [a, b] = [light(rgb(s.color)), light(ground(e))].sort((x, y) => y - x);
		if ((a + 0.05) / (b + 0.05) < 4.5) out.push('contrast ' + ((a + 0.05) / (b + 0.05)).toFixed(2) + ': ' + e.textContent.slice(0, 40));
	}
	if (document.documentElement.scrollWidth > document.documentElement.clientWidth) out.push('wider than the window: ' + document.documentElement.scrollWidth);
	for (const e of document.querySelectorAll('a, button, summary, svg, th')) {
		if (!(e.getAttribute('aria-label') || e.textContent).trim()) out.push('without a name: ' + e.outerHTML.slice(0, 100));
	}
	return [...new Set(out)];
})()`

// legible checks both themes at the width of a desktop and of a telephone.
func (v *tab) legible(what string) {
	v.t.Helper()
	for _, width := range []int64{1366, 390} {
		for _, theme := range []string{"light", "dark"} {
			v.look(width, 900, theme)
			if found := eval[[]string](v, unreadable); len(found) > 0 {
				v.t.Errorf("%s, %d pixels, %s: %q", what, width, theme, found)
			}
		}
	}
}

// TestStatusPage draws the page of every scenario, and of a device of it, in a real
// browser.
func TestStatusPage(t *testing.T) {
	want := map[string]string{
		"driver-mismatch": "down: version mismatch", "no-driver": "down: driver", "no-gpu": "No accelerator was found",
		"one-lost": "1 failed", "mixed-node": "ALVEO U250", "h100-mig-16x7": "GPU 15:", "h100-8": "training/llm-0",
	}
	scenarios, err := filepath.Glob(filepath.Join(root, "fixtures/scenarios/*.yaml"))
	if err != nil || len(scenarios) == 0 {
		t.Fatal(err)
	}
	for _, path := range scenarios {
		name := strings.TrimSuffix(filepath.Base(path), ".yaml")
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			program(t, "CHROMIUM")
			var flags []string
			if name == "grace" || name == "hgx-nvswitch" {
				flags = []string{"--dcgm.embedded"}
			}
			address, _ := simulated{name: name, scenario: name, flags: append(flags, "--rules.file="+filepath.Join(root, "rules/*.yaml"))}.run(t)
			v := open(t, address)
			run(v, chromedp.Navigate("http://"+address+"/"))
			v.until("Latest events")
			v.until(want[name])
			v.until("Live")
			v.legible(name)
			devices := eval[[]string](v, `[...document.querySelectorAll('#devices ~ table th a')].map((a) => a.href)`)
			if len(devices) > 0 {
				run(v, chromedp.Navigate(devices[0]))
				v.until("Identity")
				eval[chromedp.Void](v, `document.querySelectorAll('details').forEach((d) => { d.open = true; })`)
				v.legible(name + ", a device")
			}
		})
	}
}

// TestStatusPageIsLive: a fault appears on an open page, which keeps its focus and its
// open parts; lines of the kernel log and names of pods run nothing; and the page is
// complete without its script.
func TestStatusPageIsLive(t *testing.T) {
	t.Parallel()
	program(t, "CHROMIUM")
	address, inject := simulated{name: "live", scenario: "h100-8"}.run(t)
	v := open(t, address)
	run(v, chromedp.Navigate("http://"+address+"/"))
	v.until("8 devices and 4 partitions: 12 healthy")
	eval[chromedp.Void](v, `window.same = true; [...document.querySelectorAll('th a')].find((a) => a.textContent === 'GPU 3').focus()`)
	device := open(t, address)
	run(device, chromedp.Navigate(eval[string](v, `document.querySelector('#devices ~ table th a').href`)))
	device.until("Identity")
	eval[chromedp.Void](device, `document.getElementById('series').open = true`)
	inject("xid 79 2")
	v.until("1 failed")
	inject("kernel-log NVRM: Xid (PCI:0000:53:00): 13, <img/src=x/onerror=alert(1)></td><script>alert(1)</script>")
	v.until("<script>alert(1)</script>")
	device.until("<script>alert(1)</script>")
	if !eval[bool](device, `document.getElementById('series').open`) {
		t.Error("the page of a device has lost its open part")
	}
	if !eval[bool](v, `window.same === true && document.activeElement.textContent === 'GPU 3'`) {
		t.Error("the page was loaded again, or has lost its focus")
	}
	run(v, chromedp.Click("#pause"))
	v.until("Paused")

	plain := open(t, address)
	call(plain, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: true})
	run(plain, chromedp.Navigate("http://"+address+"/"))
	plain.until("1 failed")
	if strings.Contains(plain.text(), "Pause") {
		t.Error("without its script, the page has a button that does nothing")
	}
}

// foreign are elements and attributes that the page never has.
const foreign = `[...document.querySelectorAll('img, iframe, object, embed, base, form, input, audio, video, math, foreignObject, ' +
	'[onerror], [onload], [onmouseover], [style], a[href^="javascript:" i], body meta, script:not([src="-/status.js"])')].map((e) => e.outerHTML.slice(0, 200))`

// TestStatusPageHostileTexts: texts from outside, on the page of the node and of a device, as
// they are loaded and as the page's own script brings them in, run nothing. A dialog,
// a request elsewhere and a violation of the policy fail the test too.
func TestStatusPageHostileTexts(t *testing.T) {
	t.Parallel()
	program(t, "CHROMIUM")
	data, err := os.ReadFile(filepath.Join(root, "internal/status/testdata/hostile.txt"))
	if err != nil {
		t.Fatal(err)
	}
	var texts []string
	for line := range strings.Lines(string(data)) {
		text, err := strconv.Unquote(strings.TrimSuffix(line, "\n"))
		if err != nil {
			t.Fatal(err)
		}
		texts = append(texts, text)
	}
	var arrived atomic.Bool
	began := time.Now()
	haunted := func() (*collector.Snapshot, *allocation.Report, *status.Alerts) {
		snap, report, alerts := &collector.Snapshot{Time: began}, &allocation.Report{}, &status.Alerts{}
		for _, s := range texts {
			if !arrived.Load() {
				s = "harmless"
			}
			d := collector.Device{
				ID: s, Class: collector.GPU, Vendor: s, Model: s, PCI: s, Down: s, Clients: []collector.Client{{PID: 1, Type: s}},
				Verdict: &collector.Verdict{State: "failed", Action: s, Since: began, Reasons: []collector.Reason{{Code: s, Text: s, Severity: s, Action: s}}},
			}
			d.Set(collector.DeviceInfo, 1, slices.Repeat([]string{s}, len(collector.DeviceInfo.Labels))...)
			snap.Devices = append(snap.Devices, d)
			snap.Sources = append(snap.Sources, collector.Status{Source: s, Reason: s, Err: s})
			snap.Events = append(snap.Events, collector.Event{Time: began, Source: s, Device: s, Kind: collector.EventKind(s), Sub: s, Detail: "NVRM: " + s})
			holder := allocation.Allocation{Holder: allocation.Holder{Namespace: s, Pod: s}, Faults: []allocation.Fault{{Name: s}}}
			report.Devices = append(report.Devices, allocation.Device{ID: s, Availability: allocation.Allocated, Holders: []allocation.Allocation{holder}})
			report.Unattributed = append(report.Unattributed, allocation.Process{Device: s, PID: 1, Command: s, Reason: "other_pod", Namespace: s, Pod: s})
			alerts.List = append(alerts.List, status.Alert{Labels: map[string]string{"alertname": s, "severity": s, "device": s}, Summary: s, Description: s, Runbook: s, State: s})
			if !arrived.Load() {
				break
			}
		}
		return snap, report, alerts
	}
	p := status.New(status.Options{
		Node: "node1", Log: slog.New(slog.DiscardHandler),
		Snapshot: func() *collector.Snapshot { snap, _, _ := haunted(); return snap },
		Allocations: func() (*allocation.Report, *podmap.Status, *kube.Status) {
			_, report, _ := haunted()
			return report, nil, nil
		},
		Alerts: func() *status.Alerts { _, _, alerts := haunted(); return alerts },
	})
	mux := http.NewServeMux()
	p.Register(mux)
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	v := open(t, server.Listener.Addr().String())
	check := func(what string) {
		t.Helper()
		if found := eval[[]string](v, foreign); len(found) > 0 {
			t.Errorf("%s has %q", what, found)
		}
	}
	run(v, chromedp.Navigate(server.URL+"/"))
	v.until("1 device: failed")
	arrived.Store(true)
	v.until("NVRM: " + texts[0])
	check("the page, as its script changed it")
	run(v, chromedp.Navigate(server.URL+"/"))
	v.until("NVRM: " + texts[0])
	check("the page")
	for _, s := range texts {
		run(v, chromedp.Navigate(server.URL+"/device?id="+url.QueryEscape(s)))
		v.until("Identity")
		check("the page of the device " + strconv.Quote(s))
	}
}

// TestPictures writes the pictures of the documentation.
func TestPictures(t *testing.T) {
	if *pictures == "" {
		t.Skip("-pictures is not set: make screenshots")
	}
	address, inject := simulated{
		name: "pictures", scenario: "h100-8", config: nodes[0].config, flags: []string{"--rules.file=" + filepath.Join(root, "rules/*.yaml"), "--kubernetes.node=node1"},
	}.run(t)
	time.Sleep(*picturesAfter)
	inject("xid 79 2")
	inject("lost 2")
	inject("nvlink 3 down 1")
	for _, p := range []struct {
		name, path, theme string
		shows             []string
		width, height     int64
	}{
		{"status-node.png", "/", "light", []string{"1 failed", "NVLink"}, 1366, 900},
		{"status-phone.png", "/", "dark", []string{"1 failed", "NVLink"}, 390, 844},
		{"status-device.png", "/device?id=GPU-11114707-9d28-0ab5-175a-3cf7e5e24303", "light", []string{"lost", "AcceleratorFailed"}, 1366, 900},
	} {
		v := open(t, address)
		v.look(p.width, p.height, p.theme)
		run(v, chromedp.Navigate("http://"+address+p.path))
		for _, text := range p.shows {
			v.until(text)
		}
		picture := run(v, chromedp.CaptureScreenshot())
		if len(picture) > 200<<10 {
			t.Errorf("%s has %d bytes", p.name, len(picture))
		}
		write(t, filepath.Join(*pictures, p.name), string(picture))
	}
}

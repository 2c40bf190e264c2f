package main

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/accel-exporter/accel-exporter/internal/sim/golden"
	"github.com/accel-exporter/accel-exporter/internal/status"
)

// exampleView is a node with a device in every state.
func exampleView() *status.View {
	good := status.State{Word: "healthy", Tone: "good"}
	gpu := func(id, index string) status.Device {
		return status.Device{
			ID: "GPU-" + id + "-0000-0000-0000-000000000000", Short: "GPU-" + id, Index: index, Class: "GPU", Model: "H100 80GB HBM3", PCI: "0000:" + index + "1:00.0",
			State: good, Code: "none", Temperature: status.Cell{Text: "61 °C", Value: 61}, Utilization: status.Cell{Text: "90 %", Value: 0.9}, Memory: status.Cell{Text: "70.0 of 80 GiB", Value: 70},
		}
	}
	busy := gpu("aaaaaaaa", "0")
	busy.Holders = []status.Allocation{{Pod: "training/llm-0", Held: "3 h 2 min", Idle: "no", Containers: "[main] nvidia.com/gpu"}}
	failed := gpu("bbbbbbbb", "1")
	failed.State, failed.Code, failed.Action, failed.Doc = status.State{Word: "failed", Tone: "bad"}, "reset", "Reset the device now", "runbooks/AcceleratorFailed.md"
	failed.Reasons, failed.Age = []string{"Xid 79: the GPU has fallen off the bus."}, "9 s"
	failed.Temperature, failed.Utilization, failed.Memory = status.Cell{}, status.Cell{}, status.Cell{}
	failed.Holders = []status.Allocation{{Pod: "training/llm-1", Held: "at least 2 d 2 h", Notes: "not allocatable again as nvidia.com/gpu"}}
	shared := gpu("cccccccc", "2")
	shared.Holders = []status.Allocation{
		{Pod: "lab/a", Held: "1 min 30 s", Utilization: "20 %", Memory: "4.0 GiB", Idle: "no", Notes: "shared"},
		{Pod: "lab/b", Held: "20 s", Idle: "30 min 0 s", IdleSeconds: 1800, Cost: "1.25 EUR", Notes: "shared; not in the latest list of the kubelet"},
	}
	cut := gpu("dddddddd", "3")
	cut.Free, cut.Why = "partitioned", "split into 1 partition, which is allocated instead"
	part := status.Device{ID: "MIG-eeeeeeee-0000-0000-0000-000000000000", Short: "MIG-eeeeeeee", Index: "3:0:0", Part: true, Class: "GPU", Model: "1g.10gb", State: good, Free: "free, in use", Why: "not allocated"}
	occupied := gpu("ffffffff", "10")
	occupied.Free, occupied.Why = "occupied", "not allocated, and used by 1 process (python)"
	occupied.Clients = []status.Client{{PID: 4711, Command: "python3", UID: "4000001", Job: "812", Utilization: "90 %", Memory: "40.0 GiB"}, {PID: 4712, Command: "a\x1b[2Jb\u202ec", UID: "4000002"}}
	card := status.Device{ID: "0000:5e:00.1", Short: "0000:5e:00.1", Class: "FPGA", Model: "Alveo U250", Image: "xclbin 2a44fc56-4eba-430c-95a4-13fa87dee9cc", PCI: "0000:5e:00.1", State: status.State{Word: "not judged", Tone: "neutral"}, Free: "not allocatable"}
	return &status.View{
		Time: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC), Headline: "6 devices and 1 partition: 1 failed, 1 not judged, 5 healthy", Tone: "bad",
		Sources: []status.Source{
			{Name: "nvidia", State: status.State{Word: "up", Tone: "good"}},
			{Name: "fpga", State: status.State{Word: "down: driver error", Tone: "bad"}, Err: "no answer", Trouble: status.Trouble{Cure: "Load it.", Doc: "privileges.md"}},
			{Name: "pcie", State: status.State{Word: "not on this machine", Tone: "neutral"}},
		},
		Devices:   []status.Device{failed, busy, shared, cut, part, occupied, card},
		Uncertain: "The allocations are not certain (unconfirmed): 3 of 9 pods are listed.", Strays: []string{"Process 4712 (python) outside every pod uses device 10."},
	}
}

// viewServer serves what view returns.
func viewServer(t *testing.T, view func(device string) *status.View) string {
	t.Helper()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if user, password, ok := r.BasicAuth(); r.URL.Path != "/debug/status" || ok && user+password != "opsecret" {
			http.Error(w, "wrong path or password", http.StatusUnauthorized)
			return
		}
		body, err := json.Marshal(view(r.URL.Query().Get("device")))
		if err != nil {
			t.Error(err)
		}
		_, _ = w.Write(body) // the client may have left
	}))
	t.Cleanup(srv.Close)
	return srv.URL
}

// TestWho compares what is printed with golden files: with pods, with full ids, and
// with processes, where no text reaches the terminal as a command. No line is wider
// than the screen.
func TestWho(t *testing.T) {
	for name, c := range map[string]struct {
		width  int
		change func(f *frame)
	}{
		"all":  {0, func(*frame) {}},
		"wide": {0, func(f *frame) { f.wide, f.filters = true, []string{"2", "eeee"} }},
		"processes": {0, func(f *frame) {
			f.view.Unmanaged, f.view.Devices = true, f.view.Devices[5:]
			f.view.Devices[1].Free = "processes not known"
		}},
		"width-80":  {80, func(*frame) {}},
		"width-200": {200, func(*frame) {}},
	} {
		f := &frame{view: exampleView()}
		c.change(f)
		var out strings.Builder
		f.print(&screen{Writer: &out, width: c.width})
		golden.Compare(t, filepath.Join("testdata", "who", name+".txt"), out.String())
		for line := range strings.Lines(out.String()) {
			if n := utf8.RuneCountInString(strings.TrimRight(line, "\n")); c.width > 0 && n > c.width {
				t.Errorf("%d columns on a screen with %d: %s", n, c.width, line)
			}
		}
	}
}

// TestWhoSelects: each way to name a device finds the named ones, and an exporter with
// a password is asked with it.
func TestWhoSelects(t *testing.T) {
	url := viewServer(t, func(string) *status.View { return exampleView() })
	dir := t.TempDir()
	writeFile(t, filepath.Join(dir, "http.yml"), "basic_auth: {username: op, password_file: password}\n")
	writeFile(t, filepath.Join(dir, "password"), "secret\n")
	for what, want := range map[string]string{
		"0": "GPU-a", "10": "GPU-f", "gpu-dddd": "GPU-d", "MIG-eeee": "MIG-e", "5e:00.1": "0000:", "0000:21:00.0": "GPU-c", "training": "GPU-b GPU-a", "free": "MIG-e",
		"lab/b": "GPU-c", "not allocatable": "0000:", "failed": "GPU-b", "idle": "GPU-c", "reset": "GPU-b", "Alveo U250": "0000:", "1g.10gb": "MIG-e", "gpu-a llm": "GPU-a",
		"812": "GPU-f", "4711": "GPU-f", "4000001": "GPU-f", "python3": "GPU-f", "7": "", "lab/c": "", "GPU-12": "", "gpu-a lab": "",
	} {
		out, _, err := outcome(t.Context(), "who", "--json", "--url="+url, "--http.config.file="+filepath.Join(dir, "http.yml"), what)
		if want == "" {
			if err == nil || !strings.Contains(err.Error(), what) {
				t.Errorf("%s finds %v\n%s", what, err, out)
			}
			continue
		}
		var v status.View
		if err := json.Unmarshal([]byte(out), &v); err != nil {
			t.Fatal(what, err)
		}
		var got []string
		for _, d := range v.Devices {
			got = append(got, d.ID[:5])
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s finds %s, want %s", what, got, want)
		}
	}
	if out, _, err := outcome(t.Context(), "who", "--url="+url, "--http.config.file="+filepath.Join(dir, "http.yml"), "degraded"); err != nil || !strings.Contains(out, "No device is degraded.\n") {
		t.Errorf("no degraded device: %v\n%s", err, out)
	}
	for args, want := range map[string]string{
		"--url=localhost":             "http://HOST:PORT",
		"--url=127.0.0.1:1":           "no exporter answers at --url",
		"--http.config.file=/none/at": "/none/at",
	} {
		if _, _, err := outcome(t.Context(), "who", args); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", args, err)
		}
	}
}

// still gives a view of a stopped node the same times in every run.
func still(v *status.View) {
	at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	moved := func(t *time.Time) { // keep whether there is one
		if !t.IsZero() {
			*t = at.Add(-90 * time.Second)
		}
	}
	v.Time = at
	alerts := func(list []status.Alert) {
		for i := range list {
			moved(&list[i].Since)
		}
	}
	events := func(list []status.Event) {
		for i := range list {
			moved(&list[i].Time)
		}
	}
	device := func(d *status.Device) {
		for i := range d.Holders {
			d.Holders[i].Held = "at least 1 h 2 min"
		}
		for _, c := range []*status.Cell{&d.Temperature, &d.Power, &d.Utilization, &d.Memory} {
			if c.Bars = ""; c.Text != "" {
				c.Bars = "          ▁▂▃▄▅▆▇█▇▆"
			}
		}
	}
	for i := range v.Devices {
		device(&v.Devices[i])
	}
	events(v.Events)
	if v.Alerts != nil {
		alerts(v.Alerts.List)
	}
	if d := v.Device; d != nil {
		device(&d.Device)
		alerts(d.Alerts)
		// The log of before is read sooner or later.
		d.Events = slices.DeleteFunc(d.Events, func(e status.Event) bool { return e.Past })
		events(d.Events)
		moved(&d.Since)
		for i := range d.Reasons {
			moved(&d.Reasons[i].Since)
		}
		for i := range d.Charts {
			d.Charts[i].Bars = "          ▁▂▃▄▅▆▇█▇▆"
		}
		for i := range d.Parts {
			device(&d.Parts[i])
		}
		d.Facts = slices.DeleteFunc(d.Facts, func(f status.Fact) bool { return f.Name == "last answer" })
		// Other series come and go with the rounds of the sources.
		d.Readings = slices.DeleteFunc(d.Readings, func(r status.Reading) bool { return !strings.Contains(r.Name, "_limit_") })
	}
}

var ownStart = regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\dZ`) // of an incident

// TestFrames compares what who prints of scenarios with a stopped clock, and all that
// top shows of a device, with golden files.
func TestFrames(t *testing.T) {
	t.Parallel()
	for name, device := range map[string]string{"h100-8": "analytics", "one-lost": "failed", "mixed-node": "1b:00.0", "driver-mismatch": ""} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			run := start
			if name == "h100-8" {
				run = startPods
			}
			n := run(t, name, []string{"--frozen=600"}, "--health.catalogue="+patient(t), "--kubernetes.node=node1", "--podresources.interval=1s",
				"--rules.file=../../rules/devices.yaml") // alerts of other files become pending while a test runs
			settle(n)
			if name == "h100-8" {
				n.until(`^accel_podmap_state\{state="fresh"\} 1$`, `^accel_allocation_info\{`)
			}
			if name == "one-lost" {
				n.poll(func() bool { _, body := n.get("/debug/status"); return strings.Contains(body, "AcceleratorFailed") }, func() string { return "the alert" })
			}
			get := func(device string) *status.View {
				v, err := (&askFlags{url: n.url}).getStatus(t.Context(), device)
				if err != nil {
					t.Fatal(err)
				}
				still(v)
				return v
			}
			compare := func(file string, print func(s *screen)) {
				t.Helper()
				file, text := filepath.Join("testdata", "who", file+".txt"), ""
				n.rounds(func(string) bool {
					var out strings.Builder
					print(&screen{Writer: &out, width: 120})
					text = ownStart.ReplaceAllString(out.String(), "2026-03-01T11:58Z")
					return golden.Matches(file, text)
				})
				golden.Compare(t, file, text)
			}
			compare(name, func(s *screen) { (&frame{view: get("")}).print(s) })
			if device == "" {
				return
			}
			v := get("")
			f := &frame{view: v}
			id := v.Devices[slices.IndexFunc(v.Devices, func(d status.Device) bool { return f.fits(&d, device) })].ID
			compare(name+"-device", func(s *screen) {
				m := newTopView("", false)
				m.view, m.shows, m.device = get(id), showDevice, id
				m.body(s)
			})
		})
	}
}

package main

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/accel-exporter/accel-exporter/internal/exposition/status"
	"github.com/accel-exporter/accel-exporter/internal/golden"
	"github.com/accel-exporter/accel-exporter/internal/sim/terminal"
)

// console is a terminal with a program on it.
type console struct {
	t *testing.T
	*terminal.Terminal
}

// topOn runs `accel-exporter top` on a terminal.
func topOn(t *testing.T, width, height int, env []string, args ...string) *console {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = slices.DeleteFunc(os.Environ(), func(v string) bool {
		name, _, _ := strings.Cut(v, "=")
		return slices.Contains([]string{"NO_COLOR", "LC_ALL", "LC_CTYPE", "LINES", "COLUMNS"}, name)
	})
	cmd.Env = append(append(cmd.Env, "TERM=xterm-256color", "LANG=C.UTF-8", "ACCEL_TEST_RUN="+strings.Join(append([]string{"top"}, args...), "\n")), env...)
	cmd.Stderr = os.Stderr
	term, err := terminal.Start(cmd, width, height)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(term.Kill)
	return &console{t, term}
}

func (c *console) keys(keys string) {
	c.t.Helper()
	if err := c.Type(keys); err != nil {
		c.t.Fatal(err)
	}
}

// until waits until the screen matches every pattern, or none where it begins with
// "!".
func (c *console) until(patterns ...string) string {
	c.t.Helper()
	text, err := c.Await(patience, func(text string) bool {
		return !slices.ContainsFunc(patterns, func(p string) bool {
			p, absent := strings.CutPrefix(p, "!")
			return regexp.MustCompile("(?m)"+p).MatchString(text) == absent
		})
	})
	if err != nil {
		c.t.Fatalf("%q: %v\n%s", patterns, err, text)
	}
	return text
}

// quit presses q. The program ends without an error and gives the screen back.
func (c *console) quit() {
	c.t.Helper()
	c.keys("q")
	if err := c.End(patience); err != nil {
		c.t.Error(err)
	}
	if text, _ := c.Await(0, func(string) bool { return true }); strings.Contains(text, "accel-exporter top") {
		c.t.Errorf("the screen is left behind:\n%s", text)
	}
}

const (
	keyUp, keyDown, keyEscape, keyEnter, keyF6 = "\x1b[A", "\x1b[B", "\x1b", "\r", "\x1b[17~"
)

// viewServer serves what view returns.
func viewServer(t *testing.T, view func(device string) *status.View) string {
	t.Helper()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := json.Marshal(view(r.URL.Query().Get("device")))
		if err != nil {
			t.Error(err)
		}
		_, _ = w.Write(body) // the client may have left
	}))
	t.Cleanup(srv.Close)
	return srv.URL
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

var (
	ownAddress = regexp.MustCompile(`127\.0\.0\.1:\d{5}`)
	ownStart   = regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\dZ`) // of an incident
)

// TestTopScreens compares the screens of scenarios with a stopped clock with golden
// ones, at 80 and at 200 columns.
func TestTopScreens(t *testing.T) {
	t.Parallel()
	for name, device := range map[string]string{"h100-8": "analytics", "one-lost": "failed", "h100-mig-16x7": "", "mixed-node": "1b:00.0", "driver-mismatch": ""} {
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
			var later atomic.Int64
			c := topOn(t, 80, 24, nil, "--interval=1s", "--url="+viewServer(t, func(device string) *status.View {
				_, body := n.get("/debug/status?device=" + device)
				v := &status.View{}
				if err := json.Unmarshal([]byte(body), v); err != nil {
					t.Error(err)
				}
				still(v)
				v.Time = v.Time.Add(time.Duration(later.Add(1)))
				return v
			}))
			compare := func(screen string, patterns ...string) {
				t.Helper()
				file, text := filepath.Join("testdata", "top", name+screen+".txt"), ""
				n.rounds(func(string) bool {
					text = ownStart.ReplaceAllString(ownAddress.ReplaceAllString(c.until(patterns...), "127.0.0.1:19400"), "2026-03-01T11:58Z")
					return golden.Matches(file, text)
				})
				golden.Compare(t, file, text)
			}
			resize := func(width, height int) {
				if err := c.Resize(width, height); err != nil {
					t.Fatal(err)
				}
			}
			// The last line is drawn last. Until there is a sample it is "q quit".
			compare("-80", `devices: `, `\? help  q quit$`)
			resize(200, 50)
			compare("-200", `(?s)\A.{180,200}12:00:00 UTC$`, `(?s)(.*\n){49}.* q quit$`)
			if device != "" {
				c.keys("/" + device + keyEnter + keyEnter)
				compare("-device-200", `^.Allocations$`, `(?s)\A(.*\n){49}[^\n]*scroll  esc back  \? help  q quit\n\z`)
				resize(80, 24)
				compare("-device-80", `(?s)\A.{60,80}12:00:00 UTC$`, `(?s)\A(.*\n){23}.* q quit\n\z`)
			}
			c.quit()
		})
	}
}

// TestTopIsLive: the view of a running exporter sorts, filters and shows a device, a
// fault appears on it, and it keeps the last picture while the exporter is away.
func TestTopIsLive(t *testing.T) {
	t.Parallel()
	state, flags := compile(t, scenario)
	serveKubelet(t, state)
	flags = append(flags, "--rules.builtin", "--podresources.interval=1s")
	n, process := startProcess(t, state, nil, flags...)
	c := topOn(t, 80, 24, nil, "--url="+n.url, "--interval=200ms")
	c.until(`12 devices: 12 healthy`, `^>0 `, `training/llm-0`)

	c.keys("jj" + keyDown)
	c.until(`^>3 `)
	c.keys(keyUp + "G")
	c.until(`^>7 .* free`)
	c.keys("g")
	c.until(`^>0 `)

	c.keys("s" + keyF6 + "ssS")
	c.until(`TEMP▼`, `sorted by TEMP`)
	c.keys("r")
	c.until(`TEMP▲\s+POWER.*\n.(6|7) `) // the idle ones are the coolest
	c.keys("r<<<")
	c.until(`!sorted by`)

	c.keys("/ANALYTICS gpu-3a1x\x7f")
	c.until(`Filter: ANALYTICS gpu-3a1█`, `^>5 `, `!^.0 `)
	c.keys(keyEnter)
	c.until(`Filter: ANALYTICS gpu-3a1 \(1 of 12 devices\)`)
	c.keys(keyEnter)
	c.until(`^ GPU 5, .*: healthy`, `^ analytics/explore-0 `, `^ \d+ +\S+ +julia `)
	c.keys("G")
	c.until(`accel_\w+ .* \d+$`, `!% +↑↓`)
	c.keys(keyEscape)
	c.until(`^>5 `)
	c.keys(keyEscape)
	c.until(`^ 0 `, `^>5 `)
	c.keys("/none such" + keyEnter)
	c.until(`No device matches the filter`)
	c.keys(keyEnter + keyEscape)
	c.until(`^>`)

	n.sim("inject", "xid", "79", "2")
	n.sim("inject", "lost", "2")
	c.until(`1 failed, 11 healthy; \d alerts? firing`, `^ ?2 .* failed +– +– +– `, `^ critical +AcceleratorFailed +GPU 2 +firing`)
	c.keys("a")
	c.until(`critical AcceleratorFailed`, `docs/runbooks/AcceleratorFailed.md`)
	c.keys("e")
	c.until(`device 2: Xid 79 `)
	c.keys("?")
	c.until(`select a device, scroll`)
	c.keys(keyEscape)
	c.until(`1 failed`)

	if err := process.Kill(); err != nil {
		t.Fatal(err)
	}
	c.until(`No answer for .*: .*refused`, `UTC, .* old$`, `1 failed, 11 healthy`, `^ ?2 .* failed `)
	again, _ := startProcess(t, state, nil, append(flags, "--web.listen-address="+strings.TrimPrefix(n.url, "http://"))...)
	again.until(`^accel_device_up\{`)
	c.until(`!No answer`, `!s old$`, `1 failed`)
	c.quit()
}

// TestTopSamples: without an exporter the view samples the machine itself.
func TestTopSamples(t *testing.T) {
	t.Parallel()
	state, flags := compile(t, "mixed-node")
	flags = append(append(flags, isolated(t, flags)...), "--local", "--interval=200ms")
	c := topOn(t, 120, 30, []string{"ACCEL_SIM_STATE=" + state}, flags...)
	c.until(`this machine, sampled by top`, `6 devices: 6 healthy`, `^.5e:00.1 +ALVEO U250 `, `No rules are evaluated`)
	accelSim(t, state, "inject", "lost", "1")
	c.until(`1 failed, 5 healthy`)
	c.keys("G" + keyEnter)
	c.until(`^ FPGA .*: healthy`)
	c.quit()
}

// TestTopRefuses: what cannot be shown is an error that names another command.
func TestTopRefuses(t *testing.T) {
	t.Parallel()
	if _, _, err := outcome(t.Context(), "top"); err == nil || !strings.Contains(err.Error(), "needs a terminal") || !strings.Contains(err.Error(), "accel-exporter who") {
		t.Errorf("without a terminal: %v", err)
	}
	closed := httptest.NewServer(http.NotFoundHandler())
	closed.Close()
	for _, c := range []struct {
		env, arg, want string
	}{
		{"TERM=dumb", "--url=" + closed.URL, "needs a terminal"},
		{"", "--url=" + closed.URL, "no exporter answers there"},
		{"", "--url=ftp://x", "--url is not of the form"},
		{"", "--intervall=1s", "--interval"},
	} {
		cmd := exec.Command(os.Args[0])
		var stderr strings.Builder
		cmd.Env, cmd.Stderr = append(os.Environ(), "TERM=xterm", c.env, "ACCEL_TEST_RUN=top\n"+c.arg), &stderr
		term, err := terminal.Start(cmd, 80, 24)
		if err != nil {
			t.Fatal(err)
		}
		if err := term.End(patience); err == nil || !strings.Contains(stderr.String(), c.want) {
			t.Errorf("%s %s: %v: %s", c.env, c.arg, err, stderr.String())
		}
	}
}

// TestTopIsPlain: names that are not ours give no command to the terminal, values
// that were not measured are no zeros, values of earlier have their age, and NO_COLOR
// is obeyed.
func TestTopIsPlain(t *testing.T) {
	t.Parallel()
	const evil = "a\x1b]0;owned\x07\x1b[2J\x9b31m\u202eb"
	view := func(string) *status.View {
		d := status.Device{
			ID: "GPU-1", Short: "GPU-1", Index: "0", Class: "GPU", Model: evil, State: status.State{Word: "healthy", Tone: "good"}, Age: "9 s",
			Holders: []status.Allocation{{Pod: "lab/" + evil}}, Clients: []status.Client{{PID: 1, Command: evil}},
		}
		v := &status.View{
			Node: evil, Time: time.Now(), Headline: "1 device: healthy", Devices: []status.Device{d},
			Sources: []status.Source{{Name: "nvidia", State: status.State{Word: "up", Tone: "good"}}},
			Notices: []status.Notice{{State: status.State{Word: "failed", Tone: "bad"}, What: evil, Why: evil}},
			Alerts:  &status.Alerts{List: []status.Alert{{Name: evil, Summary: evil, Firing: true, Since: time.Now()}}},
			Events:  []status.Event{{What: evil, Detail: evil}},
		}
		v.Device = &status.Detail{Device: d, Readings: []status.Reading{{Name: evil, Labels: evil, Value: "1"}}, Facts: []status.Fact{{Name: "id", Value: evil}}}
		return v
	}
	url := viewServer(t, view)
	c := topOn(t, 120, 40, nil, "--url="+url)
	c.until(`^>0 +a\?\]0;owned\?\?\[2J.* healthy, 9 s old +– +– +– +– +lab/a\?`)
	if !c.Colored() {
		t.Error("no colours")
	}
	for _, keys := range []string{keyEnter, "a", "e"} {
		c.keys(keys)
		c.until(`a\?\]0;owned\?\?\[2J`, `scroll`)
	}
	c.keys("/" + "\x1b")
	if title := c.Title(); title != "" {
		t.Errorf("the title is %q", title)
	}
	c.quit()
	c = topOn(t, 120, 40, []string{"NO_COLOR=1"}, "--url="+url)
	c.until(`^>0 `)
	if c.Colored() {
		t.Error("colours despite NO_COLOR")
	}
	c.quit()
}

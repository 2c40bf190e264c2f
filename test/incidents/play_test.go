package incidents_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/accel-exporter/accel-exporter/test/incidents"
)

// standIn makes this binary stand in for the programs of a play: which one
// follows from its arguments.
const standIn = "INCIDENTS_STAND_IN"

func TestMain(m *testing.M) {
	if os.Getenv(standIn) != "" {
		if err := stand(os.Args[1:]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	goleak.VerifyTestMain(m)
}

func stand(args []string) error {
	flags := map[string]string{}
	for _, a := range args {
		name, value, _ := strings.Cut(a, "=")
		flags[name] = value
	}
	if flags["--storage.path"] != "" {
		return standAlertmanager(flags["--config.file"])
	}
	return standExporter(flags)
}

func serve(h http.HandlerFunc) error {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Printf("level=INFO msg=\"Listening on\" address=%s\n", l.Addr())
	return http.Serve(l, h)
}

// standAlertmanager hands on what it gets, for the pager but the watchdog.
func standAlertmanager(config string) error {
	data, err := os.ReadFile(config)
	if err != nil {
		return err
	}
	hooks := regexp.MustCompile(`url: "?(http://[^/]+/(?:pager)?)(?:"|\s)`).FindSubmatch(data)
	if hooks == nil {
		return fmt.Errorf("no webhook in %s", data)
	}
	return serve(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil || bytes.HasSuffix(hooks[1], []byte("pager")) && bytes.Contains(body, []byte("PlayWatchdog")) {
			return
		}
		resp, err := http.Post(string(hooks[1]), "application/json", bytes.NewReader(body))
		if err == nil {
			resp.Body.Close()
		}
	})
}

// standExporter raises the alert of the watchdog, and one when its configuration file
// changes.
func standExporter(flags map[string]string) error {
	send := func(alert, device string) {
		body, _ := json.Marshal(map[string]any{"alerts": []any{map[string]any{
			"status": "firing", "labels": map[string]string{"alertname": alert, "severity": "critical", "device": device},
		}}})
		for url := range strings.SplitSeq(given("--alertmanager.url="), ",") {
			resp, err := http.Post(url, "application/json", bytes.NewReader(body))
			if err == nil {
				resp.Body.Close()
			}
		}
	}
	go func() {
		send("PlayWatchdog", "")
		for ; ; time.Sleep(5 * time.Millisecond) {
			if config, err := os.ReadFile(flags["--config.file"]); err == nil && string(config) == "send" {
				send("Configured", given("--podresources.interval="))
				return
			}
		}
	}()
	return serve(func(http.ResponseWriter, *http.Request) {})
}

// given are the values of a flag of this process, by comma.
func given(flag string) string {
	var values []string
	for _, a := range os.Args {
		if v, ok := strings.CutPrefix(a, flag); ok {
			values = append(values, v)
		}
	}
	return strings.Join(values, ",")
}

func settings(t *testing.T) *incidents.Settings {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	// The path of a socket must be short.
	dir, err := os.MkdirTemp("", "play")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	t.Setenv(standIn, "1")
	t.Cleanup(http.DefaultClient.CloseIdleConnections)
	return &incidents.Settings{Root: root, Exporter: self, Simulator: self, Alertmanager: self, Dir: dir, Factor: 60}
}

// A step replaces the configuration file, and a flag of the incident stands in
// the stead of the player's.
func TestPlayConfig(t *testing.T) {
	i := &incidents.Incident{
		Name: "test", Scenario: "h100-busy", Lasts: 6 * s, Flags: []string{"--podresources.interval=7s"},
		Timeline: []incidents.Step{{At: s / 2, Config: "send"}},
		Expect:   []incidents.Expectation{{Alert: "Configured", Labels: map[string]string{"device": "7s"}, Since: s / 2, By: 6 * s}},
	}
	if v := settings(t).Play(t.Context(), i); !v.Good() || len(v.Findings) != 1 {
		t.Errorf("%+v", v)
	}
}

// What cannot be played is an error and leaves nothing running.
func TestNotPlayed(t *testing.T) {
	play := func(change func(*incidents.Settings, *incidents.Incident)) error {
		st, i := settings(t), &incidents.Incident{Name: "test", Scenario: "h100-busy", Lasts: time.Minute}
		change(st, i)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		return st.Play(ctx, i).Err
	}
	for _, tc := range []struct {
		name, want string
		change     func(*incidents.Settings, *incidents.Incident)
	}{
		{"no such scenario", "scenario", func(_ *incidents.Settings, i *incidents.Incident) { i.Scenario = "none" }},
		{"no such device", "has no gpu 9", func(_ *incidents.Settings, i *incidents.Incident) {
			i.Allow = []incidents.Pattern{{Alert: "A", Labels: map[string]string{"device": "gpu 9"}}}
		}},
		{"no exporter", "no such file", func(st *incidents.Settings, _ *incidents.Incident) { st.Exporter = "/nonexistent/exporter" }},
		{"the exporter ends", "ended", func(st *incidents.Settings, _ *incidents.Incident) { st.Exporter = "/bin/false" }},
		{"no Alertmanager", "no such file", func(st *incidents.Settings, _ *incidents.Incident) { st.Alertmanager = "/nonexistent/alertmanager" }},
		{"a step cannot be done", "attach nvidia", func(_ *incidents.Settings, i *incidents.Incident) {
			i.Timeline = []incidents.Step{{Attach: "nvidia"}}
		}},
		{"the simulator refuses", "inject gone 2", func(st *incidents.Settings, i *incidents.Incident) {
			st.Simulator = "/bin/false"
			i.Timeline = []incidents.Step{{Inject: "gone 2"}}
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if err := play(tc.change); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("found %v; want %s", err, tc.want)
			}
		})
	}
}

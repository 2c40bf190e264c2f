package alertmanager_test

import (
	"bufio"
	"context"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"time"

	openapi "github.com/go-openapi/runtime/client"
	"github.com/go-openapi/strfmt"
	"github.com/prometheus/alertmanager/api/v2/client/alert"
	"github.com/prometheus/alertmanager/api/v2/models"

	"github.com/accel-exporter/accel-exporter/rules/alertmanager"
)

const alertmanagerConfig = `
route: {receiver: nobody}
receivers: [{name: nobody}]
`

// alertmanagerPath returns the program to test against: what the environment
// names, what docs/alertmanager.md tells to put into .cache, or Debian's.
func alertmanagerPath(t *testing.T) string {
	for _, name := range []string{os.Getenv("ACCEL_ALERTMANAGER"), "../../.cache/alertmanager/alertmanager", "prometheus-alertmanager"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	t.Skip("no Alertmanager; ACCEL_ALERTMANAGER names one")
	return ""
}

var listening = regexp.MustCompile(`Listening on.* address=(\S+)`)

// startAlertmanager starts the program at an address, and returns the one that
// it has, and what ends it.
func startAlertmanager(t *testing.T, program, listen string) (at string, stop func()) {
	t.Helper()
	dir := t.TempDir()
	cmd := exec.Command(program, "--config.file="+write(t, dir, "config.yml", alertmanagerConfig),
		"--storage.path="+dir, "--web.listen-address="+listen, "--web.route-prefix=/am", "--cluster.listen-address=")
	out, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	lines := bufio.NewScanner(out)
	for at == "" && lines.Scan() {
		text.WriteString(lines.Text() + "\n")
		if m := listening.FindStringSubmatch(lines.Text()); m != nil {
			at = m[1]
		}
	}
	read := make(chan struct{})
	go func() {
		defer close(read)
		for lines.Scan() {
		}
	}()
	ended := false
	stop = func() {
		if !ended {
			ended = true
			_ = cmd.Process.Kill()
			<-read
			_ = cmd.Wait()
		}
	}
	t.Cleanup(stop)
	if at == "" {
		stop()
		t.Fatalf("it does not listen:\n%s", &text)
	}
	return at, stop
}

// known returns the alerts that fire for an Alertmanager, by their name.
func known(t *testing.T, at string) map[string]*models.GettableAlert {
	t.Helper()
	api := alert.New(openapi.New(at, "/am/api/v2", []string{"http"}), strfmt.Default)
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	ok, err := api.GetAlerts(alert.NewGetAlertsParamsWithContext(ctx))
	if err != nil {
		t.Fatal(err)
	}
	byName := map[string]*models.GettableAlert{}
	for _, a := range ok.Payload {
		byName[a.Labels["alertname"]] = a
	}
	return byName
}

// TestAlertmanager: a real one is told that alerts fire, that they still do,
// and that they no longer do, also what happened while it was away.
func TestAlertmanager(t *testing.T) {
	program := alertmanagerPath(t)
	at, stop := startAlertmanager(t, program, "127.0.0.1:0")
	s := settings((&url.URL{Scheme: "http", Host: at, Path: "/am/"}).String())
	s.ExternalLabels = map[string]string{"cluster": "east"}
	n := start(t, alertmanager.Options{Settings: s})
	sent := func(count float64) func() bool {
		return func() bool { m := n.metrics(); return m["alerts_sent_total"] == count && m["queue_length"] == 0 }
	}

	first, backwards, elsewhere := firing("first"), firing("backwards"), firing("elsewhere")
	backwards.EndsAt, backwards.StartsAt = backwards.StartsAt, backwards.EndsAt
	elsewhere.GeneratorURL = "no address"
	n.Send(first, backwards, elsewhere, firing("second"))
	wait(t, "what is valid is taken", sent(2))
	if got := n.metrics()["alerts_dropped_total refused"]; got != 2 {
		t.Errorf("%v refused, log:\n%s", got, n.log)
	}
	alerts := known(t, at)
	a := alerts["first"]
	if a == nil || alerts["second"] == nil || len(alerts) != 2 {
		t.Fatalf("it knows %v", alerts)
	}
	if a.Labels["cluster"] != "east" || a.Annotations["summary"] != first.Annotations["summary"] || string(a.GeneratorURL) != first.GeneratorURL {
		t.Errorf("%v %v %q", a.Labels, a.Annotations, a.GeneratorURL)
	}
	same := func(got *strfmt.DateTime, want time.Time) bool {
		return got != nil && time.Time(*got).Equal(want.Truncate(time.Millisecond))
	}
	if !same(a.StartsAt, first.StartsAt) || !same(a.EndsAt, first.EndsAt) {
		t.Errorf("from %v to %v, want %v to %v", a.StartsAt, a.EndsAt, first.StartsAt, first.EndsAt)
	}

	first.EndsAt = first.EndsAt.Add(time.Minute)
	n.Send(first)
	wait(t, "it is told again", sent(3))
	if got := known(t, at)["first"]; !same(got.EndsAt, first.EndsAt) || !same(got.StartsAt, first.StartsAt) {
		t.Errorf("told again: to %v", got.EndsAt)
	}
	first.EndsAt = time.Now()
	n.Send(first)
	wait(t, "it is resolved", sent(4))
	if got := fmt.Sprint(known(t, at)); strings.Contains(got, "first") || !strings.Contains(got, "second") {
		t.Errorf("after the end of the first: %s", got)
	}

	stop()
	n.Send(firing("third"))
	wait(t, "its absence is noticed", func() bool { return strings.Contains(n.log.String(), "does not accept alerts") })
	n.Send(resolved("second"))
	_, _ = startAlertmanager(t, program, at)
	wait(t, "it is told", sent(6))
	if got := known(t, at); got["third"] == nil || len(got) != 1 {
		t.Errorf("after its absence: %v", got)
	}
	n.stop()
}

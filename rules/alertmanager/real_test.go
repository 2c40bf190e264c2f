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
route: {receiver: none}
receivers: [{name: none}]
`

// alertmanagerPath returns the Alertmanager program for the test: the value of
// ACCEL_ALERTMANAGER, the program that docs/alertmanager.md installs in .cache, or
// the one of Debian. It skips the test if there is none.
func alertmanagerPath(t *testing.T) string {
	for _, name := range []string{os.Getenv("ACCEL_ALERTMANAGER"), "../../.cache/alertmanager/alertmanager", "prometheus-alertmanager"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	t.Skip("no Alertmanager program; set ACCEL_ALERTMANAGER to its path")
	return ""
}

var listening = regexp.MustCompile(`Listening on.* address=(\S+)`)

// startAlertmanager starts the program. It returns the address at which it listens,
// and a function that ends it.
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
		t.Fatalf("Alertmanager does not listen:\n%s", &text)
	}
	return at, stop
}

// known returns the firing alerts of an Alertmanager by name.
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

// TestAlertmanager: a real Alertmanager receives alerts that fire, continue to fire
// and resolve, also those that change while it is unreachable.
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
	wait(t, "the valid alerts are sent", sent(2))
	if got := n.metrics()["alerts_dropped_total refused"]; got != 2 {
		t.Errorf("%v refused, log:\n%s", got, n.log)
	}
	alerts := known(t, at)
	a := alerts["first"]
	if a == nil || alerts["second"] == nil || len(alerts) != 2 {
		t.Fatalf("known alerts: %v", alerts)
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
	wait(t, "the alert is sent again", sent(3))
	if got := known(t, at)["first"]; !same(got.EndsAt, first.EndsAt) || !same(got.StartsAt, first.StartsAt) {
		t.Errorf("sent again: ends at %v", got.EndsAt)
	}
	first.EndsAt = time.Now()
	n.Send(first)
	wait(t, "the resolved alert is sent", sent(4))
	if got := fmt.Sprint(known(t, at)); strings.Contains(got, "first") || !strings.Contains(got, "second") {
		t.Errorf("after the first has resolved: %s", got)
	}

	stop()
	n.Send(firing("third"))
	wait(t, "the failure is logged", func() bool { return strings.Contains(n.log.String(), "does not accept alerts") })
	n.Send(resolved("second"))
	_, _ = startAlertmanager(t, program, at)
	wait(t, "the queue is sent", sent(6))
	if got := known(t, at); got["third"] == nil || len(got) != 1 {
		t.Errorf("after the restart: %v", got)
	}
}

package alertmanager_test

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/accel-exporter/accel-exporter/rules/alertmanager"
)

// FuzzAnswer: after any response, an alert is counted once as sent or dropped, and
// the log does not show the credential.
func FuzzAnswer(f *testing.F) {
	for _, s := range []string{
		"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
		"HTTP/1.1 400 Bad Request\r\nContent-Type: application/json\r\n\r\n\"no TOKEN\"",
		"HTTP/1.1 422 x\r\n\r\n{\"code\":601,\"message\":\"TOKEN\"}",
		"HTTP/1.1 429 x\r\nRetry-After: 99999999999999999999\r\n\r\n",
		"HTTP/1.1 503 x\r\nRetry-After: Fri, 31 Dec 9999 23:59:59 GMT\r\nContent-Length: 99\r\n\r\nshort",
		"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 500 TOKEN\r\nTransfer-Encoding: chunked\r\n\r\nzz",
		"HTTP/1.1 307 x\r\nLocation: http://u:TOKEN@h/\r\nContent-Encoding: gzip\r\n\r\n",
		"TOKEN", "", "HTTP/1.1 200 OK\r\nTOKEN\r\n\r\n", "HTTP/1.1 101 x\r\nUpgrade: y\r\nConnection: upgrade\r\n\r\n",
	} {
		f.Add([]byte(s))
	}
	const token = "hunter2.hunter2"
	f.Fuzz(func(t *testing.T, raw []byte) {
		s := settings(address)
		s.HTTP.CredentialsFile = write(t, t.TempDir(), "token", token)
		raw = bytes.ReplaceAll(raw, []byte("TOKEN"), []byte(token))
		n := create(t, alertmanager.Options{Settings: s, Dial: func(context.Context, string, string) (net.Conn, error) {
			mine, theirs := net.Pipe()
			go func() {
				defer theirs.Close()
				if r, err := http.ReadRequest(bufio.NewReader(theirs)); err == nil {
					_, _ = io.Copy(io.Discard, r.Body)
					_ = theirs.SetWriteDeadline(time.Now().Add(time.Minute))
					_, _ = theirs.Write(raw)
				}
			}()
			return mine, nil
		}})
		n.Send(firing("a"))
		ended, end := context.WithCancel(context.Background())
		end()
		n.Run(ended) // one attempt
		var counted float64
		for name, v := range n.metrics() {
			if strings.HasPrefix(name, "alerts_") {
				counted += v
			}
		}
		if counted != 1 {
			t.Errorf("counted %v times: %v", counted, n.metrics())
		}
		if strings.Contains(n.log.String(), token) {
			t.Errorf("log:\n%s", n.log)
		}
	})
}

// FuzzRelabel: New accepts every step that Check accepts. An alert is either queued
// or counted as dropped.
func FuzzRelabel(f *testing.F) {
	f.Add("replace", "alertname", ";", "(.*)", "a_$1", "$1", 0)
	f.Add("LabelMap", "", "", "(.+)", "", "${1}x", 0)
	f.Add("hashmod", "severity", "", "", "shard", "", 3)
	f.Add("labelkeep", "", "", "", "", "", 0)
	f.Add("keepequal", "severity", "", "", "alertname", "", 0)
	f.Add("drop", "severity", "\xff", "(?i:P.*)", "", "", -1)
	f.Fuzz(func(t *testing.T, action, source, separator, regex, target, replacement string, modulus int) {
		text := func(s string) alertmanager.Text { return alertmanager.Text{Value: s, Set: s != ""} }
		r := alertmanager.Relabel{
			Action: action, Separator: text(separator), Regex: text(regex),
			TargetLabel: target, Replacement: text(replacement), Modulus: modulus,
		}
		if source != "" {
			r.SourceLabels = []string{source, "alertname"}
		}
		s := settings(address)
		s.Relabel = []alertmanager.Relabel{r}
		n, err := alertmanager.New(alertmanager.Options{Settings: s})
		if (err == nil) != (r.Check() == nil) {
			t.Fatalf("Check returns %v, New %v", r.Check(), err)
		}
		if err != nil {
			return
		}
		n.Send(firing("a"))
		m := (&rig{Notifier: n, t: t}).metrics()
		if m["queue_length"]+m["alerts_relabel_dropped_total"] != 1 {
			t.Errorf("%v", m)
		}
	})
}

package main

import (
	"fmt"
	stdlog "log"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/accel-exporter/accel-exporter/collector"
)

// counts returns how often each text is in the log.
func counts(log string, texts ...string) string {
	var b strings.Builder
	for _, text := range texts {
		fmt.Fprintf(&b, "%d ", strings.Count(log, text))
	}
	return strings.TrimSpace(b.String())
}

// The log has the beginning and the end of a flood, and no more than a few lines
// of it, whatever the flood is of.
func TestFloods(t *testing.T) {
	for _, c := range []struct {
		name, line, about string
		event             func(c *changes, server *stdlog.Logger, n int)
	}{
		{"failed TLS handshakes", "TLS handshake error from", "TLS handshake error", func(_ *changes, server *stdlog.Logger, n int) {
			server.Printf("http: TLS handshake error from 10.0.0.1:%d: EOF", 1024+n)
		}},
		{"a GPU that comes and goes", "Device is gone", "device 0000:1b:00.0", func(c *changes, _ *stdlog.Logger, _ int) {
			c.logSnapshot(&collector.Snapshot{Devices: []collector.Device{{ID: "GPU-1", PCI: "0000:1b:00.0"}}})
			c.logSnapshot(&collector.Snapshot{})
		}},
		{"partitions that are created and destroyed", "Device is gone", "device GPU-1", func(c *changes, _ *stdlog.Logger, n int) {
			c.logSnapshot(&collector.Snapshot{Devices: []collector.Device{{ID: fmt.Sprint("MIG-", n), Parent: "GPU-1", PCI: "0000:1b:00.0"}}})
			c.logSnapshot(&collector.Snapshot{})
		}},
		{"a source that fails and answers", "Source fails", "source nvidia", func(c *changes, _ *stdlog.Logger, _ int) {
			c.logSnapshot(&collector.Snapshot{Sources: []collector.Status{{Source: "nvidia", Reason: collector.SourceDriver}}})
			c.logSnapshot(&collector.Snapshot{Sources: []collector.Status{{Source: "nvidia", Up: true}}})
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				out := newLogBuffer()
				log := slog.New(slog.NewTextHandler(out, nil))
				changes, server := newChanges(log), stdlog.New(&serverLog{log: log, lines: flood{log: log}}, "", 0)
				for n := range 1000 {
					c.event(changes, server, n)
					time.Sleep(time.Second)
				}
				if lines := strings.Count(out.String(), "\n"); lines > floodLines+1 || strings.Count(out.String(), "Further lines are left out") != 1 || !strings.Contains(out.String(), `about="`+c.about) {
					t.Errorf("%d lines:\n%s", lines, out.String())
				}
				time.Sleep(2 * floodQuiet)
				synctest.Wait()
				if got := counts(out.String(), "Lines were left out"); got != "1" {
					t.Errorf("the end is logged %s times:\n%s", got, out.String())
				}
				end := len(out.String())
				c.event(changes, server, 0)
				if got := counts(out.String()[end:], c.line); got != "1" {
					t.Errorf("the next one is logged %s times:\n%s", got, out.String())
				}
				time.Sleep(2 * floodQuiet)
			})
		})
	}
}

// A message of another kind is logged during a flood.
func TestFloodOfAnotherKind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		out := newLogBuffer()
		log := slog.New(slog.NewTextHandler(out, nil))
		server := stdlog.New(&serverLog{log: log, lines: flood{log: log}}, "", 0)
		for range 2 * floodLines {
			server.Print("http: TLS handshake error from 10.0.0.1:1024: EOF")
		}
		server.Print("http: panic serving 10.0.0.1:1025: boom")
		if got := counts(out.String(), "TLS handshake", "boom"); got != fmt.Sprint(floodLines+1, " 1") {
			t.Errorf("%s:\n%s", got, out.String())
		}
		time.Sleep(2 * floodQuiet)
	})
}

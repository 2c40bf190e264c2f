package alertmanager_test

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/accel-exporter/accel-exporter/rules/alertmanager"
)

// TestAway: an Alertmanager that was unreachable for an hour receives the current
// state of each alert.
func TestAway(t *testing.T) {
	bubble(t, settings(address), func(t *testing.T, m *manager, n *rig) {
		n.Send(firing("before"), firing("all along"))
		synctest.Wait()
		if got := m.knows(); got != "all along before/" {
			t.Fatalf("before: %q", got)
		}
		m.set(func() { m.down = true; m.server.CloseClientConnections() })
		for minute := range 60 {
			n.Send(firing("all along"))
			switch {
			case minute == 50:
				n.Send(resolved("before"))
			case minute > 10 && minute < 20:
				n.Send(firing("short"))
			case minute == 20:
				n.Send(resolved("short"))
			case minute > 30:
				n.Send(firing("short"), firing("late"))
			}
			time.Sleep(time.Minute)
		}
		if got := n.metrics(); got["queue_length"] != 4 || got["alerts_sent_total"] != 2 {
			t.Errorf("while it is unreachable: %v", got)
		}
		n.Send(firing("all along"), firing("short"), firing("late"))
		m.set(func() { m.down = false })
		time.Sleep(16 * time.Second) // the longest time between two attempts
		synctest.Wait()
		if got := m.knows(); got != "all along late short/before" {
			t.Errorf("after: %q", got)
		}
		got := n.metrics()
		for name, v := range got {
			if strings.HasPrefix(name, "alerts_dropped") && v != 0 {
				t.Errorf("%s: %v", name, v)
			}
		}
		if got["queue_length"] != 0 || got["alerts_sent_total"] != 6 {
			t.Errorf("after: %v", got)
		}
		if text := n.log.String(); strings.Count(text, "\n") != 2 || !strings.Contains(text, "does not accept alerts") || !strings.Contains(text, "accepts alerts again") {
			t.Errorf("log:\n%s", text)
		}
	})
}

// TestExpired: a firing alert is dropped when its end has passed without a newer
// notification, and a resolved one after 15 minutes.
func TestExpired(t *testing.T) {
	bubble(t, settings(address), func(t *testing.T, m *manager, n *rig) {
		m.down = true
		n.Send(resolved("old"))
		time.Sleep(6 * time.Minute)
		n.Send(firing("forgotten"), resolved("resolved"))
		time.Sleep(10 * time.Minute)
		m.set(func() { m.down = false })
		time.Sleep(16 * time.Second)
		synctest.Wait()
		if got := m.knows(); got != "/resolved" {
			t.Errorf("%q", got)
		}
		if got := n.metrics()["alerts_dropped_total expired"]; got != 2 {
			t.Errorf("expired: %v", got)
		}
	})
}

// TestHanging: an endpoint that does not answer does not delay the others.
func TestHanging(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		good, bad := serve(t), serve(t)
		release := make(chan struct{})
		bad.answer = func(http.ResponseWriter, *http.Request, []string) bool { <-release; return true }
		dial := func(ctx context.Context, network, addr string) (net.Conn, error) {
			if strings.HasPrefix(addr, "bad") {
				return bad.dial(ctx, network, addr)
			}
			return good.dial(ctx, network, addr)
		}
		n := start(t, alertmanager.Options{Settings: settings("http://bad.example", address), Dial: dial})
		for i := range 20 {
			n.Send(firing(fmt.Sprint("alert ", i)))
			synctest.Wait()
			if _, known := good.alerts[fmt.Sprint("alert ", i)]; !known {
				t.Errorf("alert %d is delayed", i)
			}
			time.Sleep(time.Second)
		}
		got := n.metricsOf("http://bad.example")
		if got["queue_length"] != 20 || got["request_failures_total timeout"] != 1 {
			t.Errorf("endpoint that hangs: %v", got)
		}
		if _, ok := got["last_success_timestamp_seconds"]; ok {
			t.Error("the endpoint that hangs has a last_success_timestamp_seconds")
		}
		begin := time.Now()
		n.stop()
		if took := time.Since(begin); took > 5*time.Second {
			t.Errorf("stopping took %v", took)
		}
		if got := n.metricsOf("http://bad.example"); got["queue_length"] != 0 || got["alerts_dropped_total shutdown"] != 20 {
			t.Errorf("after the stop: %v", got)
		}
		close(release)
	})
}

// TestStates: the newest state of an alert is sent, also if a request with the
// previous state is in flight.
func TestStates(t *testing.T) {
	bubble(t, settings(address), func(t *testing.T, m *manager, n *rig) {
		first := make(chan struct{})
		m.answer = func(http.ResponseWriter, *http.Request, []string) bool { <-first; return false }
		n.Send(firing("a"), firing("b"))
		synctest.Wait()
		n.Send(resolved("a"))
		n.Send(firing("c"))
		n.Send(resolved("c"))
		n.Send(resolved("d"))
		n.Send(firing("d"))
		close(first)
		synctest.Wait()
		if got := m.knows(); got != "b d/a c" {
			t.Errorf("%q", got)
		}
		if diff := cmp.Diff([][]string{{"a", "b"}, {"a", "c", "d"}}, m.batches); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
}

// TestFlush: Run sends the queue in batches before it returns.
func TestFlush(t *testing.T) {
	bubble(t, settings(address), func(t *testing.T, m *manager, n *rig) {
		m.down = true
		for i := range 150 {
			n.Send(firing(fmt.Sprint(i)))
		}
		time.Sleep(time.Minute)
		m.set(func() { m.down = false })
		n.stop()
		if len(m.alerts) != 150 || len(m.batches) != 3 || len(m.batches[0]) != 64 {
			t.Errorf("%d alerts in %d batches", len(m.alerts), len(m.batches))
		}
		n.Send(firing("after the stop"))
		if got := n.metrics(); got["alerts_dropped_total shutdown"] != 1 || got["queue_length"] != 0 {
			t.Errorf("%v", got)
		}
	})
}

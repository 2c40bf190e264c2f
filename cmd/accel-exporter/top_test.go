package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/gdamore/tcell/v3/vt"

	"github.com/accel-exporter/accel-exporter/internal/status"
)

// console is a terminal with top on it.
type console struct {
	t *testing.T
	vt.MockTerm
	end chan error
}

// screen returns the text on the terminal. A line in reverse video has ">" before it.
func (c *console) screen() string {
	var b strings.Builder
	size, _ := c.WindowSize()
	for y := range size.Height {
		line := " "
		for x := range size.Width {
			cell := c.GetCell(vt.Coord{X: vt.Col(x), Y: vt.Row(y)})
			if x == 0 && cell.S.Attr()&vt.Reverse != 0 {
				line = ">"
			}
			if cell.C == "" {
				cell.C = " "
			}
			line += cell.C
		}
		b.WriteString(strings.TrimRight(line, " ") + "\n")
	}
	return b.String()
}

// until waits until the screen has every text.
func (c *console) until(texts ...string) {
	c.t.Helper()
	for end := time.Now().Add(patience); ; time.Sleep(pollInterval / 10) {
		missing, screen := "", c.screen()
		for _, text := range texts {
			if !strings.Contains(screen, text) {
				missing = text
			}
		}
		if missing == "" {
			return
		}
		if time.Now().After(end) {
			c.t.Fatalf("%q is not on\n%s", missing, screen)
		}
	}
}

// TestTop: keys select and show a device, alerts and events; the last
// picture stays, with its age, while the exporter is away; and texts that are not ours
// give the terminal no command.
func TestTop(t *testing.T) {
	t.Parallel()
	const evil = "a\x1b]0;owned\x07\x1b[2J\x9b31m\u202eb"
	view := func(device string) *status.View {
		v := exampleView()
		v.Node, v.Devices[6].Model = "node1", evil
		v.Alerts = &status.Alerts{Firing: 1, List: []status.Alert{{Labels: map[string]string{"alertname": "AcceleratorFailed", "severity": "critical"}, State: "firing", Summary: "GPU 1 failed", Since: v.Time}}}
		v.Events = []status.Event{{What: "Xid 79", Index: "1", Time: v.Time}}
		for i := range v.Devices {
			if v.Devices[i].ID == device {
				v.Device = &status.Detail{Device: v.Devices[i], Facts: []status.Fact{{Name: "serial", Value: evil}}}
			}
		}
		return v
	}
	away := make(chan bool, 1)
	c := &console{t: t, MockTerm: vt.NewMockTerm(vt.MockOptSize{X: 140, Y: 24}), end: make(chan error, 1)}
	m := newTopView("http://node1:19400", true)
	go func() {
		c.end <- m.run(t.Context(), c.MockTerm, 10*time.Millisecond, func(_ context.Context, device string) (*status.View, error) {
			select {
			case gone := <-away:
				away <- gone
				return nil, errors.New("connection refused")
			default:
				return view(device), nil
			}
		})
	}()
	c.until("accel-exporter top: node1, http://node1:19400", ">1 ", "failed, 9 s old", "6 devices and 1 partition: 1 failed", "e events  q quit")
	c.SendRaw([]byte("jj\x1b[B"))
	c.until(">3 ", "split into 1 partition")
	c.SendRaw([]byte("G"))
	c.until(">- ", "a?]0;owned??[2J")
	c.SendRaw([]byte("gjj\r"))
	c.until("GPU 2, H100 80GB HBM3: healthy", "IDENTITY", "a?]0;owned??[2J", "esc back")
	c.SendRaw([]byte("a"))
	c.until("critical AcceleratorFailed", "GPU 1 failed")
	c.SendRaw([]byte("e"))
	c.until("device 1: Xid 79")
	away <- true
	c.until("No answer for ", "connection refused")
	if title := c.GetTitle(); title != "" {
		t.Errorf("the title is %q", title)
	}
	c.SendRaw([]byte("q"))
	if err := <-c.end; err != nil {
		t.Error(err)
	}
}

// TestTopRefuses: without a terminal, the error names another command.
func TestTopRefuses(t *testing.T) {
	t.Parallel()
	if _, _, err := outcome(t.Context(), "top"); err == nil || !strings.Contains(fmt.Sprint(err), "accel-exporter who") {
		t.Error(err)
	}
}

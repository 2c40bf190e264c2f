package remediation

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"strings"
	"time"
)

// noteAge is for how long after its cause a note is created; Kubernetes keeps Events for 1 h.
const noteAge = time.Hour

// maxMessage is the size in bytes of the longest message that Kubernetes accepts
// in an Event.
const maxMessage = 1024

// note creates the Events of a step, also Events that an earlier process did not
// create before it ended.
func (c *Controller) note(ctx context.Context, s *Step) {
	now := c.o.Now()
	alerts := strings.Join(s.Alerts, ", ")
	switch {
	case s.Ends:
		message := "No alert requires an action any more; the node is let in again."
		if d := s.Node.Device; d != nil {
			message = fmt.Sprintf("No alert on the device %s requires an action any more; DeviceTaintRule %s has no effect any more.", d.ID, d.Rule)
		}
		c.put(ctx, &Note{Node: s.Node, Reason: "AcceleratorsRecovered", Message: message}, s, now)
	case now.Sub(s.Failed) < noteAge:
		c.put(ctx, &Note{Node: s.Node, Warning: true, Reason: "AcceleratorsTestFailed", Message: s.Missing}, s, now)
	case !s.Since.IsZero() && now.Sub(s.Since) < noteAge && len(s.Alerts) > 0:
		what, kind, name := "Taken out", "node", s.Node.Name
		if d := s.Node.Device; d != nil {
			what, kind, name = fmt.Sprintf("Device %s (%s) taken out by DeviceTaintRule %s", d.ID, d.Place, d.Rule), "devicetaintrule", d.Rule
		}
		message := fmt.Sprintf("%s for %s: %s", what, alerts, s.Summary)
		reason := "AcceleratorsUnhealthy"
		if s.Inspect || s.Node.inspected() {
			reason = "AcceleratorsNeedInspection"
			message = fmt.Sprintf("%s repeatedly, now for %s. Inspect the hardware, then remove the annotation %s of %s %s.", what, alerts, InspectAnnotation, kind, name)
		}
		if s.Evidence != "" {
			message = strings.TrimSuffix(message, ".") + ". " + s.Evidence
		}
		c.put(ctx, &Note{Node: s.Node, Warning: true, Reason: reason, Message: message}, s, now)
	}
	for _, pod := range s.Hurt {
		if now.Sub(pod.Before) < noteAge {
			c.put(ctx, &Note{
				Node: s.Node, Pod: pod, Warning: true, Reason: "AcceleratorFault",
				Message: fmt.Sprintf("%s on device %s of node %s.", pod.Alert, pod.Device, s.Node.Name),
			}, s, now)
		}
	}
}

// put creates a note unless it exists.
func (c *Controller) put(ctx context.Context, n *Note, s *Step, now time.Time) {
	n.Message = strings.ToValidUTF8(n.Message[:min(len(n.Message), maxMessage)], "")
	about := strings.Join(s.Alerts, ",") // the message may contain a measured value
	if n.Pod.Name != "" || !s.Failed.IsZero() {
		about = n.Message
	}
	sum := sha256.Sum256(fmt.Append(nil, s.Node.key(), "\x00", s.Since.Unix(), "\x00", n.Pod.Namespace, "\x00", n.Pod.Name, "\x00", n.Reason, "\x00", about))
	n.Key, n.Time = hex.EncodeToString(sum[:8]), now
	if _, exists := c.noted[n.Key]; exists {
		return
	}
	err := c.o.Cluster.Note(ctx, n)
	c.done("event", map[bool]string{true: "done", false: "error"}[err == nil])
	if err != nil { // the next pass tries again, while there is a reason for the note
		c.logOnce("note "+n.Node.Name, "An Event cannot be created", "node", n.Node.Name, "err", err)
		return
	}
	c.noted[n.Key] = n.Time
}

// logStep logs the planned and the withheld actions of a node when they change.
func (c *Controller) logStep(s *Step) {
	var what []any
	if !s.Patch.Empty() {
		what = append(what, "action", action(s))
	}
	if len(s.Evict) > 0 {
		what = append(what, "evict", len(s.Evict))
	}
	if len(s.Call) > 0 {
		what = append(what, "call", s.Call)
	}
	if s.Withheld != "" {
		what = append(what, "withheld", s.Withheld)
	}
	if s.Missing != "" {
		what = append(what, "missing", s.Missing)
	}
	if len(what) == 0 {
		return
	}
	message := "Planned"
	if !c.o.Act {
		message = "Planned, not done in a dry run"
	}
	c.logOnce(s.Node.key(), message, append([]any{"node", s.Node.Name, "device", s.Node.device(), "alerts", s.Alerts}, what...)...)
}

// logEntry is a message and the latest pass that had it.
type logEntry struct {
	text string
	pass int
}

// logOnce logs a message about a subject unless the last pass logged the same.
func (c *Controller) logOnce(subject, message string, args ...any) {
	text := fmt.Sprint(append([]any{message}, args...)...)
	if c.logged[subject].text != text {
		c.o.Log.Info(message, args...)
	}
	c.logged[subject] = logEntry{text, c.passes}
}

// forget drops the state of old notes, calls and messages.
func (c *Controller) forget(now time.Time) {
	for _, times := range []map[string]time.Time{c.noted, c.called} {
		maps.DeleteFunc(times, func(_ string, at time.Time) bool { return now.Sub(at) > 2*noteAge })
	}
	maps.DeleteFunc(c.logged, func(_ string, e logEntry) bool { return e.pass != c.passes })
}

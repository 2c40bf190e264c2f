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
	names := s.Alerts
	if r := s.Node.record(); r != nil && len(names) == 0 { // resolved before the Event was created
		names = r.Alerts
	}
	alerts := strings.Join(names, ", ")
	switch {
	case now.Sub(s.Failed) < noteAge:
		c.put(ctx, &Note{Node: s.Node, Warning: true, Reason: "AcceleratorsTestFailed", Message: s.Missing}, s.Since, s.Missing)
	case !s.Since.IsZero() && now.Sub(s.Since) < noteAge && len(names) > 0:
		what, kind, name := "Taken out", "node", s.Node.Name
		if d := s.Node.Device; d != nil {
			what, kind, name = fmt.Sprintf("Device %s (%s) taken out by DeviceTaintRule %s", d.ID, d.Place, d.Rule), "devicetaintrule", d.Rule
		}
		message := strings.TrimSuffix(fmt.Sprintf("%s for %s: %s", what, alerts, s.Summary), ": ")
		reason := "AcceleratorsUnhealthy"
		if s.Inspect || s.Node.inspected() {
			reason = "AcceleratorsNeedInspection"
			message = fmt.Sprintf("%s repeatedly, now for %s. Inspect the hardware, then remove the annotation %s of %s %s.", what, alerts, InspectAnnotation, kind, name)
		}
		if s.Evidence != "" {
			message = strings.TrimSuffix(message, ".") + ". " + s.Evidence
		}
		// The message may contain a measured value.
		c.put(ctx, &Note{Node: s.Node, Warning: true, Reason: reason, Message: message}, s.Since, strings.Join(names, ","))
	}
	for _, pod := range s.Hurt {
		if now.Sub(pod.Before) < noteAge {
			message := fmt.Sprintf("%s on device %s of node %s.", pod.Alert, pod.Device, s.Node.Name)
			c.put(ctx, &Note{Node: s.Node, Pod: pod, Warning: true, Reason: "AcceleratorFault", Message: message}, s.Since, message)
		}
	}
}

// noteReturn creates the Event of the last return. It comes from the annotation that the
// return has set, so that no Event is lost that could not be created at that moment.
func (c *Controller) noteReturn(ctx context.Context, n *Node) {
	at := n.returned()
	if !inHour(at, c.o.Now()) {
		return
	}
	message := "No alert requires an action any more; the node is let in again."
	if d := n.Device; d != nil {
		message = fmt.Sprintf("No alert on the device %s requires an action any more; DeviceTaintRule %s has no effect any more.", d.ID, d.Rule)
	}
	c.put(ctx, &Note{Node: *n, Reason: "AcceleratorsRecovered", Message: message}, at, "")
}

// put creates a note unless it exists. A note on the same node or device with the same
// since and about is the same note.
func (c *Controller) put(ctx context.Context, n *Note, since time.Time, about string) {
	n.Message = strings.ToValidUTF8(n.Message[:min(len(n.Message), maxMessage)], "")
	sum := sha256.Sum256(fmt.Append(nil, n.Node.key(), "\x00", since.Unix(), "\x00", n.Pod.Namespace, "\x00", n.Pod.Name, "\x00", n.Reason, "\x00", about))
	n.Key, n.Time = hex.EncodeToString(sum[:8]), c.o.Now()
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
	maps.DeleteFunc(c.slow, func(_ string, s slow) bool { return now.Sub(s.last) > 2*noteAge })
	maps.DeleteFunc(c.logged, func(_ string, e logEntry) bool { return e.pass != c.passes })
}

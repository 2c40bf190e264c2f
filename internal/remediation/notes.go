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

// noteAge is how long a note is remembered; Kubernetes keeps Events an hour.
const noteAge = time.Hour

// maxMessage is how many bytes of a message an Event may have; Kubernetes
// refuses longer ones.
const maxMessage = 1024

// note makes the Events that go with a step. Where the one before was ended
// between deed and Event, the Event is made now.
func (c *Controller) note(ctx context.Context, s *Step) {
	now := c.o.Now()
	alerts := strings.Join(s.Alerts, ", ")
	switch {
	case s.Ends:
		c.put(ctx, &Note{Node: s.Node, Reason: "AcceleratorsRecovered", Message: "No alert asks for anything any more; the node is let in again."}, s, now)
	case !s.Since.IsZero() && now.Sub(s.Since) < noteAge && len(s.Alerts) > 0:
		message := fmt.Sprintf("Taken out for %s: %s", alerts, s.Summary)
		reason := "AcceleratorsUnhealthy"
		if s.Inspect || s.Node.inspected() {
			reason = "AcceleratorsNeedInspection"
			message = fmt.Sprintf("Taken out again and again, now for %s. The hardware should be inspected; then remove the annotation %s.", alerts, InspectAnnotation)
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

// put makes a note unless it was made before.
func (c *Controller) put(ctx context.Context, n *Note, s *Step, now time.Time) {
	n.Message = strings.ToValidUTF8(n.Message[:min(len(n.Message), maxMessage)], "")
	about := strings.Join(s.Alerts, ",") // not the message, which may have a measured value in it
	if n.Pod.Name != "" {
		about = n.Message
	}
	sum := sha256.Sum256(fmt.Append(nil, s.Node.Name, "\x00", s.Since.Unix(), "\x00", n.Pod.Namespace, "\x00", n.Pod.Name, "\x00", n.Reason, "\x00", about))
	n.Key, n.Time = hex.EncodeToString(sum[:8]), now
	if _, made := c.noted[n.Key]; made || c.owed[n.Key] != nil {
		return
	}
	c.make(ctx, n)
}

// maxOwed is how many Events are tried again at most.
const maxOwed = 1000

// make makes an Event. One that cannot be made is owed: the next pass tries
// again, also where its reason has gone meanwhile.
func (c *Controller) make(ctx context.Context, n *Note) {
	err := c.o.Cluster.Note(ctx, n)
	c.m.done("event", map[bool]string{true: "done", false: "error"}[err == nil])
	if err != nil {
		c.once("note "+n.Node.Name, "An Event cannot be made", "node", n.Node.Name, "err", err)
		if len(c.owed) < maxOwed {
			c.owed[n.Key] = n
		}
		return
	}
	delete(c.owed, n.Key)
	c.noted[n.Key] = n.Time
}

// repay makes the Events that are owed.
func (c *Controller) repay(ctx context.Context) {
	for _, n := range c.owed {
		if ctx.Err() == nil {
			c.make(ctx, n)
		}
	}
}

// tell logs what is to be done and what is withheld, when that changes.
func (c *Controller) tell(s *Step) {
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
	if len(what) == 0 {
		return
	}
	message := "To be done"
	if !c.o.Act {
		message = "Would be done; this is a dry run"
	}
	c.once(s.Node.Name, message, append([]any{"node", s.Node.Name, "alerts", s.Alerts}, what...)...)
}

// saying is what was said, and in which pass last.
type saying struct {
	text string
	pass int
}

// once logs unless it said the same of the same thing in the last pass.
func (c *Controller) once(of, message string, args ...any) {
	text := fmt.Sprint(append([]any{message}, args...)...)
	if c.said[of].text != text {
		c.o.Log.Info(message, args...)
	}
	c.said[of] = saying{text, c.passes}
}

// forget drops what was remembered of notes, calls and sayings that are over.
func (c *Controller) forget(now time.Time) {
	for _, made := range []map[string]time.Time{c.noted, c.told} {
		maps.DeleteFunc(made, func(_ string, at time.Time) bool { return now.Sub(at) > 2*noteAge })
	}
	maps.DeleteFunc(c.owed, func(_ string, n *Note) bool { return now.Sub(n.Time) > noteAge })
	maps.DeleteFunc(c.said, func(_ string, s saying) bool { return s.pass != c.passes })
}

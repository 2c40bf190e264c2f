package health

import (
	"fmt"
	"reflect"
	"regexp"
	"time"

	"github.com/accel-exporter/accel-exporter/internal/config/strict/wording"
)

// Entry is the catalogue entry of one event: an Xid, an SXid or another kind. An
// omitted key has the value of the entry of the code without Sub, or of unknown codes.
type Entry struct {
	// Code is the number of an Xid or SXid.
	Code int `yaml:"code" accept:"1..99999999"`
	// Event is the kind of an event that has no number.
	Event string `yaml:"event"`
	// Sub restricts the entry to events with this Sub; empty matches all others.
	Sub string `yaml:"sub"`
	// Name is short, in lower snake case.
	Name string `yaml:"name"`
	// Text describes what happened.
	Text string `yaml:"text"`
	// Class is the component with the fault.
	Class string `yaml:"class" accept:"application|bus|consequence|display|driver|engine|firmware|hardware|memory|nvlink|power|security|switch|test|verdict|vgpu"`
	// Fault is the cause of the event.
	Fault string `yaml:"fault" accept:"application|application_or_hardware|driver|hardware|link|none|setup|unknown"`
	// Severity is None if the event does not affect the device.
	Severity Severity `yaml:"severity"`
	Action   Action   `yaml:"action"`
	// Ends is when the event no longer counts.
	Ends Ends `yaml:"ends"`
	// Rules is driver if the driver reports a recovery action after this
	// event, which then takes precedence over the entry.
	Rules string `yaml:"rules" accept:"driver|catalogue"`
	// While names conditions: once they can be read and none is true, the event
	// no longer counts.
	While []string `yaml:"while"`
	// Cures are the codes of the faults that this event ends.
	Cures []int `yaml:"cures"`
	// Heals are the kinds of events whose faults this event ends; reset stands
	// for all that last until a reset.
	Heals []string `yaml:"heals"`
	// Grace is the time in which the driver may end the fault by itself. Until
	// then a failure is Degraded.
	Grace time.Duration `yaml:"grace" accept:"1s..1h"`
	// As is the number of the Xid that an event of another kind is equivalent to.
	As int `yaml:"as" accept:"1..99999999"`
	// SameAs is the reason of the condition that reads the same fault: the event counts only
	// while that cannot be read.
	SameAs string `yaml:"same_as"`
	// From are the sources, by their keys in the catalogue.
	From []string `yaml:"from"`
}

// entry is an Entry of a catalogue.
type entry struct {
	Entry
	reason string // code of the reason; empty for unknown codes
	while  []int  // positions of While
	sameAs int    // position of SameAs
}

var token = regexp.MustCompile(`^[a-z][a-z0-9_]*$`)

// maxText is the maximum length of a text in a file, in bytes.
const maxText = 300

func checkText(text string) error {
	if len(text) > maxText || !printable(text) {
		return fmt.Errorf("found text %s; accepted is one line of at most %d bytes", wording.Quote(text), maxText)
	}
	return nil
}

func printable(s string) bool {
	for _, r := range s {
		if r < ' ' || r == 0x7f || r == '\ufffd' {
			return false
		}
	}
	return true
}

// over returns base, an Entry or a Condition, with the fields that change sets.
func over[T any](base, change T) T {
	to, from := reflect.ValueOf(&base).Elem(), reflect.ValueOf(change)
	for i := range from.NumField() {
		if v := from.Field(i); !v.IsZero() {
			to.Field(i).Set(v)
		}
	}
	return base
}

// Ends is when an event no longer counts.
type Ends struct {
	// Reset: with the next reset of the device, load of its driver or boot.
	Reset bool
	// Load: with the next load of its driver or boot.
	Load bool
	// Answer: once the device answers again.
	Answer bool
	// After is the time after the event, if none of these is set.
	After time.Duration
}

const maxAfter = 30 * 24 * time.Hour

// UnmarshalText parses reset, load, answer or a duration from 1s to 720h.
func (e *Ends) UnmarshalText(text []byte) error {
	*e = Ends{}
	switch s := string(text); s {
	case "reset":
		e.Reset = true
	case "load":
		e.Load = true
	case "answer":
		e.Answer = true
	default:
		d, err := time.ParseDuration(s)
		if err != nil || d < time.Second || d > maxAfter {
			return fmt.Errorf("found %s; accepted is reset, load, answer or a duration from 1s to 720h", wording.Quote(s))
		}
		e.After = d
	}
	return nil
}

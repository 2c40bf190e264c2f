package health

import (
	"errors"
	"fmt"
	"regexp"
	"time"

	"github.com/accel-exporter/accel-exporter/internal/strict/wording"
)

// Entry is what the catalogue says of one event: an Xid, an SXid or a kind of
// its own. In a file that overrides the catalogue, a key that is left out
// keeps its value; for a code that the catalogue lacks it is that of unknown
// codes.
type Entry struct {
	// Code is the number of an Xid or SXid.
	Code int `yaml:"code" accept:"1..99999999"`
	// Event is the kind of an event that has no number.
	Event string `yaml:"event"`
	// Sub narrows the entry to events with this Sub; empty is every other.
	Sub string `yaml:"sub"`
	// Name is short, in lower snake case.
	Name string `yaml:"name"`
	// Text says what happened.
	Text string `yaml:"text"`
	// Class is the part that the fault is in.
	Class string `yaml:"class" accept:"application|bus|consequence|display|driver|engine|firmware|hardware|memory|nvlink|power|security|switch|test|verdict|vgpu"`
	// Fault is whose it is.
	Fault string `yaml:"fault" accept:"application|application_or_hardware|driver|hardware|link|nobody|setup|unknown"`
	// Total is the kind under which accel_gpu_xid_events_total counts an Xid,
	// where it is not other. A sub-code makes no difference.
	Total string `yaml:"total" accept:"hardware|application"`
	// Severity is None where the event does not speak against the device.
	Severity Severity `yaml:"severity"`
	Action   Action   `yaml:"action"`
	// Ends says when the event no longer counts.
	Ends Ends `yaml:"ends"`
	// Rules is driver where the driver states a recovery action after this
	// event, which then goes before the entry's.
	Rules string `yaml:"rules" accept:"driver|catalogue"`
	// While names conditions: once they can be read and none holds, the event
	// no longer counts.
	While []string `yaml:"while"`
	// Cures are the numbers of codes that this one ends.
	Cures []int `yaml:"cures"`
	// As is the number of the Xid that an event of another kind stands for.
	As int `yaml:"as" accept:"1..99999999"`
	// From are the sources, by their keys in the catalogue.
	From []string `yaml:"from"`
}

// entry is an Entry in its place in a catalogue.
type entry struct {
	Entry
	reason string // the code of the verdict's reason, empty for unknown codes
	while  []int  // positions of While
}

var token = regexp.MustCompile(`^[a-z][a-z0-9_]*$`)

// maxText is the most bytes that a text of a file may have.
const maxText = 300

// Check refuses what could not stand in a label or on a line.
func (e *Entry) Check() error {
	if (e.Code == 0) == (e.Event == "") {
		return errors.New("found neither code nor event, or both; accepted is one of them")
	}
	if e.Event != "" && !token.MatchString(e.Event) {
		return fmt.Errorf("found event %s; accepted is lower snake case", wording.Quote(e.Event))
	}
	if e.Sub != "" && subToken(e.Sub) != e.Sub {
		return fmt.Errorf("found sub %s; accepted is lower snake case: %s", wording.Quote(e.Sub), subToken(e.Sub))
	}
	return checkWords(e.Name, e.Text)
}

func checkWords(name, text string) error {
	if name != "" && !token.MatchString(name) {
		return fmt.Errorf("found name %s; accepted is lower snake case", wording.Quote(name))
	}
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

// over returns e with what o says in its stead.
func (e *Entry) over(o *Entry) Entry {
	n := *e
	set(&n.Name, o.Name)
	set(&n.Text, o.Text)
	set(&n.Class, o.Class)
	set(&n.Fault, o.Fault)
	set(&n.Total, o.Total)
	set(&n.Severity, o.Severity)
	set(&n.Action, o.Action)
	set(&n.Ends, o.Ends)
	set(&n.Rules, o.Rules)
	if o.While != nil {
		n.While = o.While
	}
	if o.Cures != nil {
		n.Cures = o.Cures
	}
	set(&n.As, o.As)
	if o.From != nil {
		n.From = o.From
	}
	return n
}

func set[T comparable](to *T, v T) {
	if v != *new(T) {
		*to = v
	}
}

// Ends says when an event no longer counts.
type Ends struct {
	// Reset: with the next reset of the device, load of its driver or boot.
	Reset bool
	// Answer: once the device answers again.
	Answer bool
	// After is how long after the event, where neither holds.
	After time.Duration
}

const maxAfter = 30 * 24 * time.Hour

// String returns the form of the catalogue.
func (e Ends) String() string {
	switch {
	case e.Reset:
		return "reset"
	case e.Answer:
		return "answer"
	}
	return e.After.String()
}

// UnmarshalText takes reset, answer or a duration from 1s to 720h.
func (e *Ends) UnmarshalText(text []byte) error {
	*e = Ends{}
	switch s := string(text); s {
	case "reset":
		e.Reset = true
	case "answer":
		e.Answer = true
	default:
		d, err := time.ParseDuration(s)
		if err != nil || d < time.Second || d > maxAfter {
			return fmt.Errorf("found %s; accepted is reset, answer or a duration from 1s to 720h", wording.Quote(s))
		}
		e.After = d
	}
	return nil
}

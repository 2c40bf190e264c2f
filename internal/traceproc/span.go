package traceproc

import "time"

// Span is a span that has ended.
type Span struct {
	// Trace and ID are 32 and 16 hexadecimal digits, and Parent is an ID or
	// empty. All are the same whenever the same thing is told again.
	Trace  string `json:"trace"`
	ID     string `json:"id"`
	Parent string `json:"parent,omitempty"`
	// Context is the trace context that the pod was annotated with, as it was
	// found. Where it is valid its trace takes the place of Trace, and a span
	// without Parent is a child of its span.
	Context string    `json:"context,omitempty"`
	Name    string    `json:"name"`
	Start   time.Time `json:"start"`
	End     time.Time `json:"end"`
	Pod     Pod       `json:"pod"`
	Attrs   []Attr    `json:"attrs,omitempty"`
	Events  []Event   `json:"events,omitempty"`
	// Error says why the status is Error; it is unset where Error is empty.
	Error string `json:"error,omitempty"`
}

// Pod is what a span is of. UID is empty where it is not known.
type Pod struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	UID       string `json:"uid,omitempty"`
}

// Event is a moment of a span.
type Event struct {
	Name  string    `json:"name"`
	Time  time.Time `json:"time"`
	Attrs []Attr    `json:"attrs,omitempty"`
}

// Attr is an attribute: one of its values is set, or it is the number 0, the
// text "" or false by its Type.
type Attr struct {
	Key  string   `json:"k"`
	Type AttrType `json:"t"`
	Text string   `json:"s,omitempty"`
	List []string `json:"l,omitempty"`
	Int  int64    `json:"i,omitempty"`
	Yes  bool     `json:"b,omitempty"`
}

// AttrType is the type of an attribute's value.
type AttrType string

// The types of attributes.
const (
	TextAttr AttrType = "s"
	ListAttr AttrType = "l"
	IntAttr  AttrType = "i"
	BoolAttr AttrType = "b"
)

// attrs is a list of attributes in the making. What is not known is not added.
type attrs []Attr

func (a *attrs) text(key, value string) {
	if value != "" {
		*a = append(*a, Attr{Key: key, Type: TextAttr, Text: value})
	}
}

func (a *attrs) list(key string, values []string) {
	if len(values) > 0 {
		*a = append(*a, Attr{Key: key, Type: ListAttr, List: values})
	}
}

func (a *attrs) int(key string, value int64) {
	*a = append(*a, Attr{Key: key, Type: IntAttr, Int: value})
}

func (a *attrs) bool(key string, value bool) {
	*a = append(*a, Attr{Key: key, Type: BoolAttr, Yes: value})
}
